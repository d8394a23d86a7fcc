package target

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/refusal"
)

// Offsets in the Go runtime's structures (runtime/runtime2.go, go1.22 to go1.26).
const (
	fsG       = -8
	fsGsignal = -64
	gM        = 48
	gSchedSP  = 56
)

var errNotGo = errors.New("its Go runtime isn't as expected")

// wordAt reads 8 bytes.
func wordAt(p *process.Process, addr uint64) (uint64, error) {
	var b [8]byte
	_, err := p.ReadAt(b[:], addr)
	return binary.LittleEndian.Uint64(b[:]), err
}

// goThread is what the runtime says of a thread.
type goThread struct {
	m, g, gsignal uint64
	sigLo, sigHi  uint64 // the stack of signal handlers
}

// goThreadOf reads what the runtime says of a thread; ok is false for one that is only being set up.
func goThreadOf(p *process.Process, t *process.Thread) (gt goThread, ok bool, err error) {
	base, err := t.ThreadPointer()
	if err != nil || base == 0 {
		return gt, false, err
	}
	var b [72]byte
	if _, err := p.ReadAt(b[:], base-uint64(len(b))); err != nil {
		return gt, false, err
	}
	le := binary.LittleEndian
	gt.g, gt.gsignal = le.Uint64(b[len(b)+fsG:]), le.Uint64(b[len(b)+fsGsignal:])
	tid := le.Uint64(b[0:])
	if tid == 0 || gt.g == 0 {
		return gt, false, nil
	}
	info := uint64(t.TID)
	if i, err := t.Info(); err == nil {
		info = uint64(i.NSTID)
	}
	if tid != info {
		return gt, false, fmt.Errorf("thread %d: %w: it has %d for the thread's ID", t.TID, errNotGo, tid)
	}
	if gt.m, err = wordAt(p, gt.g+gM); err != nil {
		return gt, false, fmt.Errorf("thread %d: %w: %w", t.TID, errNotGo, err)
	}
	if gt.m >= base || base-gt.m > 1024 {
		return gt, false, fmt.Errorf("thread %d: %w: its m is at %#x, its FS base %#x", t.TID, errNotGo, gt.m, base)
	}
	if gt.gsignal != 0 {
		var stack [16]byte
		if _, err := p.ReadAt(stack[:], gt.gsignal); err != nil {
			return gt, false, fmt.Errorf("thread %d: %w: %w", t.TID, errNotGo, err)
		}
		gt.sigLo, gt.sigHi = le.Uint64(stack[:]), le.Uint64(stack[8:])
	}
	return gt, true, nil
}

// checkGo makes sure that the runtime's structures are as the stubs expect them.
func (s *Target) checkGo(st *process.Stopped) error {
	for _, t := range st.Threads() {
		if _, _, err := goThreadOf(s.Process, t); err != nil {
			return fmt.Errorf("callreel: process %d: %w: %w", s.Process.Pid(), refusal.Err, err)
		}
	}
	s.Runtime.TIDOffset = golang.ProcID
	return nil
}

// prepareGo finds what it takes to look at goroutines.
func (s *Target) prepareGo() error {
	o := s.Arenas[0].Images[0].Object
	f, err := findAsyncFrame(o, s.Go, s.Arenas[0].Images[0].Slide)
	if err != nil {
		return err
	}
	if err := s.findAllgs(o, f, s.Arenas[0].Images[0].Slide); err != nil && !errors.Is(err, errNoAllgs) {
		return err
	}
	s.async, s.Skipped = f, map[uint32]bool{}
	return nil
}
