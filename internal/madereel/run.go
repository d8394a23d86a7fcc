package madereel

import (
	"testing"

	"github.com/callreel/callreel/reel"
)

// Run is what a thread does, call by call and state by state. Times are in ticks.
type Run struct {
	Now    uint64
	Events []reel.Event
	Sched  []reel.SchedEvent
	Waited []reel.Wait
	sp     uint32
}

// NewRun begins at a tick, on a processor.
func NewRun(at uint64) *Run {
	return &Run{Now: at, sp: 0x7fff0000, Sched: []reel.SchedEvent{{Time: at, Kind: reel.SchedIn}}}
}

// Call is a call of a function, by its ID, in which it does what body says; nil for nothing.
func (r *Run) Call(fn uint32, body func()) {
	r.sp -= 64
	r.Events = append(r.Events, reel.Entry(r.Now, r.sp, fn))
	if body != nil {
		body()
	}
	r.Events = append(r.Events, reel.Exit(r.Now, r.sp, fn))
	r.sp += 64
}

// Work lets it run.
func (r *Run) Work(ticks uint64) { r.Now += ticks }

// Wait lets it wait until a thread wakes it, reel.WakerKernel for none; 0 if nobody knows.
func (r *Run) Wait(ticks uint64, waker int32) {
	r.Sched = append(r.Sched, reel.SchedEvent{Time: r.Now, Kind: reel.SchedBlocked})
	r.Now += ticks
	r.Sched = append(r.Sched, reel.SchedEvent{Time: r.Now, Kind: reel.SchedWoken, Waker: waker}, reel.SchedEvent{Time: r.Now, Kind: reel.SchedIn})
}

// WaitFor is Wait in a system call.
func (r *Run) WaitFor(ticks uint64, waker int32, w reel.Wait) {
	w.Time = r.Now
	r.Waited = append(r.Waited, w)
	r.Wait(ticks, waker)
}

// Preempted lets it be ready, but on no processor.
func (r *Run) Preempted(ticks uint64) {
	r.Sched = append(r.Sched, reel.SchedEvent{Time: r.Now, Kind: reel.SchedPreempted})
	r.Now += ticks
	r.Sched = append(r.Sched, reel.SchedEvent{Time: r.Now, Kind: reel.SchedIn})
}

// Idle lets it wait up to a tick, for the kernel.
func (r *Run) Idle(until uint64) {
	if until > r.Now {
		r.Wait(until-r.Now, reel.WakerKernel)
	}
}

// Write adds the thread to a reel, with its states if the reel is to have them.
func (r *Run) Write(t testing.TB, w *reel.Writer, thread reel.Thread, states bool) *reel.ThreadWriter {
	t.Helper()
	tw := Thread(t, w, thread, r.Events...)
	if states {
		for _, err := range []error{tw.Sched(r.Sched), tw.Waits(r.Waited)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		w.SchedKnown(r.Now)
	}
	return tw
}
