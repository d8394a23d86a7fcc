package scheduling

import (
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/reel"
)

// sums are the kernel's own of a thread: those when recording began, and those when it ended.
type sums struct {
	begin, end times
	there      bool // at the beginning, so that begin counts; of one that was born later it is nothing
	known      bool // end is
}

type times struct{ ran, queued time.Duration }

func readTimes(w who) (t times, ok bool) {
	t.ran, t.queued, ok = process.Scheduled(w.pid, w.tid)
	return t, ok
}

// beginSums reads the sums of the threads that a process has when its recording begins.
func (w *Watch) beginSums(pid int) {
	tids, _ := process.ThreadIDs(pid) // none of one that has ended
	for _, tid := range tids {
		who := who{pid, tid}
		k := w.lives.latest(who)
		if k == nil {
			k = w.lives.add(who, 0)
		}
		k.base.begin, k.base.there = readTimes(who)
	}
}

// endSums reads the sums of all threads that there are.
func (w *Watch) endSums() {
	for who, list := range w.lives.by {
		if k := list[len(list)-1]; k.ended == 0 {
			k.base.end, k.base.known = readTimes(who)
		}
	}
}

// since is what a thread did during the recording.
func (s *sums) since() (reel.SchedSums, bool) {
	return reel.SchedSums{Running: uint64(max(0, s.end.ran-s.begin.ran)), Ready: uint64(max(0, s.end.queued-s.begin.queued))}, s.known
}
