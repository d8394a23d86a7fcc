package target

import (
	"errors"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// ReopenGates opens the gates that are closed, CloseGates closes all.
func (s *Target) ReopenGates() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var closed []*Arena
	for _, a := range s.Arenas {
		var word [8]byte
		if _, err := s.Process.ReadAt(word[:], a.Gate()); err != nil {
			return err
		}
		if !stub.IsOpen(word) {
			closed = append(closed, a)
		}
	}
	return s.open(closed)
}

// open opens gates. The caller holds Mu.
func (s *Target) open(arenas []*Arena) error {
	for _, a := range arenas {
		if err := stub.OpenGate(s.Process, a.Gate(), (s.Runtime.Ring+ring.SlotsOff)|gateTag); err != nil {
			return err
		}
	}
	return nil
}

func (s *Target) CloseGates() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, a := range s.Arenas {
		if err := stub.CloseGate(s.Process, a.Gate()); err != nil {
			return err
		}
	}
	return nil
}

// writeFirstStack tells an arena's code where the first stack is, and whose, if it goes by that.
func (s *Target) writeFirstStack(a *Arena) error {
	if !s.Runtime.NoTLS {
		return nil
	}
	return errors.Join(s.WriteWord(a.Gate()+stub.GateThread, uint64(s.FirstStack.TID)),
		s.WriteWord(a.Gate()+stub.GateStack, s.FirstStack.Start), s.WriteWord(a.Gate()+stub.GateStackSize, s.FirstStack.Size))
}

func (s *Target) WriteWord(addr, v uint64) error {
	b := [8]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)}
	_, err := s.Process.WriteAt(b[:], addr)
	return err
}
