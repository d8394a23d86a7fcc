package madereel

import (
	"testing"

	"github.com/callreel/callreel/reel"
)

// States are what a thread did, one after the other: words for its Sched.
type States struct {
	Words []reel.SchedEvent
}

// Runs has it come onto processor 0 at the tick, and wait from another one on.
func (s *States) Runs(from, to uint64) *States {
	return s.add(from, reel.SchedIn, 0).add(to, reel.SchedBlocked, 0)
}

// Woken has it be ready from the tick on, woken by the thread with that ID.
func (s *States) Woken(at uint64, waker int32) *States { return s.add(at, reel.SchedWoken, waker) }

// Preempted has it run between the ticks, and be ready then.
func (s *States) Preempted(from, to uint64) *States {
	return s.add(from, reel.SchedIn, 0).add(to, reel.SchedPreempted, 0)
}

// Lost says that words are missing before the tick.
func (s *States) Lost(at uint64) *States { return s.add(at, reel.SchedLost, 0) }

// Fault is a page fault.
func (s *States) Fault(at uint64, major bool) *States {
	if major {
		return s.add(at, reel.SchedMajorFault, 0)
	}
	return s.add(at, reel.SchedMinorFault, 0)
}

func (s *States) add(at uint64, kind reel.SchedKind, waker int32) *States {
	s.Words = append(s.Words, reel.SchedEvent{Time: at, Kind: kind, Waker: waker})
	return s
}

// Write adds them to the thread.
func (s *States) Write(t testing.TB, tw *reel.ThreadWriter) {
	t.Helper()
	if err := tw.Sched(s.Words); err != nil {
		t.Fatal(err)
	}
}
