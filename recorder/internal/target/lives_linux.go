package target

import (
	"errors"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Runs says whether the process is there and runs the program still that recording began with: with that the probes would be gone.
func (s *Target) Runs() bool {
	if !s.Process.Alive() {
		return false
	}
	var word [8]byte
	_, err := s.Process.ReadAt(word[:], s.Runtime.Ring)
	return !errors.Is(err, process.ErrExec)
}

// PID is the process's ID as seen from here.
func (s *Target) PID() int { return s.Process.Pid() }

// OuterTID is the ID, as seen from here, of the thread of a process that has an ID in the process's own namespace; that ID where there is
// no such thread.
func OuterTID(p *process.Process, nstid int) int {
	threads, err := p.Threads()
	if err == nil {
		for _, t := range threads {
			if t.NSTID == nstid {
				return t.TID
			}
		}
	}
	return nstid
}

// ThreadSet is the set of a process's threads, nil of one that has ended.
func ThreadSet(pid int) map[int]bool {
	tids, err := process.ThreadIDs(pid)
	if err != nil {
		return nil
	}
	live := make(map[int]bool, len(tids))
	for _, tid := range tids {
		live[tid] = true
	}
	return live
}

// ReopenGatesAfter opens the gates that the target's threads have closed, as there was no heartbeat for so long: the recorder was stopped, by
// Ctrl-Z or SIGSTOP, or by the clock that threads go by there was none, since the machine slept. Where the process has restricted its system
// calls just then they stay closed.
func (s *Target) ReopenGatesAfter(silent time.Duration, notice func(format string, args ...any)) error {
	slept, until := s.Memory.Silence()
	if silent <= ring.LongSilence && slept == 0 || s.Memory.Sandboxed() || !s.hasClosedGate() {
		return nil
	}
	switch {
	case silent > ring.LongSilence:
		notice("callreel stood still for %d s, so the process went on without recording: its calls of that time are missing, and not counted", int(silent.Seconds()))
	case until != s.toldSilence:
		notice("the machine stood still, or its time-stamp counter was set, by %d s: calls of a moment behind that are missing, and not counted", int(slept.Seconds()))
	}
	s.toldSilence = until
	if err := s.ReopenGates(); err != nil && s.Process.Alive() {
		return err
	}
	if s.Memory.Sandboxed() { // just then
		return s.CloseGates()
	}
	return nil
}

func (s *Target) hasClosedGate() bool {
	s.Mu.Lock()
	arenas := slices.Clone(s.Arenas)
	s.Mu.Unlock()
	var word [8]byte
	for _, a := range arenas {
		if _, err := s.Process.ReadAt(word[:], a.Gate()); err != nil {
			return false // it has ended, which others notice
		}
		if !stub.IsOpen(word) {
			return true
		}
	}
	return false
}

// IDsAreOurs says whether the process, and its threads, have the same IDs for themselves as for us: it is in our PID namespace.
func (s *Target) IDsAreOurs() bool {
	st, err := s.Process.Status()
	return err == nil && len(st.NSPIDs) <= 1
}
