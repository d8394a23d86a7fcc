package viewer

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sort"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// statesJSON splits a time by what the thread did, in nanoseconds. What is missing to the whole isn't known.
type statesJSON struct {
	CPUNS     uint64 `json:"cpu_ns"`
	ReadyNS   uint64 `json:"ready_ns"`
	BlockedNS uint64 `json:"blocked_ns"`
}

func splitJSON(f *reel.File, s reel.StateTimes) *statesJSON {
	ns := f.Clock().Nanoseconds
	return &statesJSON{ns(s.Running), ns(s.Ready), ns(s.Blocked)}
}

// stateJSON is a time in which a thread was in one state.
type stateJSON struct {
	Lane   uint32 `json:"lane"`
	State  string `json:"state"` // cpu, ready, blocked or unknown
	FromNS uint64 `json:"from_ns"`
	ToNS   uint64 `json:"to_ns"`
	CPU    *int32 `json:"cpu,omitempty"`
	// Preempted says of ready that it was running before; Uninterruptible of blocked that it was in state D.
	Preempted       bool       `json:"preempted,omitempty"`
	Uninterruptible bool       `json:"uninterruptible,omitempty"`
	Waker           *wakerJSON `json:"waker,omitempty"`
	Wait            *waitJSON  `json:"wait,omitempty"`
	// ReadyNS is, of blocked, how long the thread was then ready before it ran.
	ReadyNS uint64 `json:"ready_ns,omitempty"`
	// In is the innermost call that was open when it began.
	In *callerJSON `json:"in,omitempty"`
	// Holders are the threads that were waited for and what they did meanwhile, the last one first.
	Holders []holderJSON `json:"holders,omitempty"`
}

// holderJSON is what a thread did while it was waited for.
type holderJSON struct {
	Lane     *uint32 `json:"lane"`
	TID      int     `json:"tid"`
	Name     string  `json:"name,omitempty"`
	FromNS   uint64  `json:"from_ns"`
	ToNS     uint64  `json:"to_ns"`
	Function string  `json:"function,omitempty"` // that it was in for the most part
	HeldNS   uint64  `json:"held_ns"`            // and for how long
	In       string  `json:"in,omitempty"`       // the function below it in which nearly all of that went
}

// wakerJSON is who ended a wait.
type wakerJSON struct {
	TID    int     `json:"tid,omitempty"`
	Kernel bool    `json:"kernel,omitempty"` // an interrupt, a timer
	Name   string  `json:"name,omitempty"`
	Lane   *uint32 `json:"lane"` // null: it is no thread of the reel
}

// waitJSON is what was waited for.
type waitJSON struct {
	Syscall int32  `json:"syscall"` // number, -1 if it isn't known
	Name    string `json:"name,omitempty"`
	Kind    string `json:"kind,omitempty"` // mutex, rwlock, condition, semaphore, barrier, join, futex
	Object  string `json:"object,omitempty"`
	Address string `json:"address,omitempty"` // of a futex
}

// lookup finds lanes by the threads' IDs.
type lookup struct {
	tl    *timeline.Timeline
	f     *reel.File
	lanes []timeline.Lane
	ends  map[uint32]uint64 // ticks, by key
}

func newLookup(tl *timeline.Timeline) *lookup {
	l := &lookup{tl: tl, f: tl.File(), lanes: tl.Lanes(), ends: map[uint32]uint64{}}
	for _, t := range l.f.Threads() {
		l.ends[t.Key] = l.f.EndOf(&t)
	}
	return l
}

// waker describes who woke a thread at a tick; nil if that isn't known.
func (l *lookup) waker(tid int32, tick uint64) *wakerJSON {
	switch tid {
	case 0:
		return nil
	case reel.WakerKernel:
		return &wakerJSON{Kernel: true}
	}
	w := &wakerJSON{TID: int(tid)}
	for i := range l.lanes {
		x := &l.lanes[i]
		if x.TID == int(tid) && x.Goroutine == 0 && l.ends[x.Thread] >= tick {
			w.Lane, w.Name = &x.ID, cut(x.Name, maxLaneName)
			break
		}
	}
	return w
}

// state describes an interval, whose times are in ticks.
func (l *lookup) state(lane uint32, x *reel.StateInterval) stateJSON {
	j := stateJSON{Lane: lane, State: x.State.String(), FromNS: l.tl.NS(x.From), ToNS: l.tl.NS(x.To), Preempted: x.Preempted, Uninterruptible: x.Uninterruptible}
	if x.State == reel.StateRunning && x.CPU >= 0 {
		j.CPU = &x.CPU
	}
	if x.State == reel.StateBlocked {
		j.Waker = l.waker(x.Waker, x.To)
		wait := l.wait(l.lanes[lane].Thread, x.From)
		if j.Wait = l.waitJSON(wait); j.Waker == nil && wait != nil && wait.Ender != 0 {
			j.Waker = l.ender(wait.Ender)
		}
	}
	return j
}

// wait is what a thread waited for that became blocked at a tick; nil if that isn't known.
func (l *lookup) wait(thread uint32, tick uint64) *reel.Wait {
	list := l.f.Waits(thread)
	// States are kept in a coarser unit than waits may be.
	const near = 1 << 10
	i := sort.Search(len(list), func(i int) bool { return list[i].Time+near > tick })
	best := -1
	for ; i < len(list) && list[i].Time <= tick+near; i++ {
		if off := distance(list[i].Time, tick); best < 0 || off < distance(list[best].Time, tick) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return &list[best]
}

// waitJSON describes it.
func (l *lookup) waitJSON(x *reel.Wait) *waitJSON {
	if x == nil {
		return nil
	}
	j := &waitJSON{Syscall: x.Syscall, Name: syscallName(l.f.Header().Arch, x.Syscall), Object: cut(x.Object, maxLaneName)}
	if x.Lock != 0 {
		j.Address = fmt.Sprintf("%#x", x.Lock)
	}
	return j
}

// ender describes a thread that is known to have let another go on, by its key.
func (l *lookup) ender(thread uint32) *wakerJSON {
	for i := range l.lanes {
		if x := &l.lanes[i]; x.Thread == thread && x.Goroutine == 0 {
			return &wakerJSON{TID: x.TID, Name: cut(x.Name, maxLaneName), Lane: &x.ID}
		}
	}
	return nil
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// stateAt is api/state: what a lane's thread did at a time, or null.
func (r *recording) stateAt(w http.ResponseWriter, q *query) error {
	lane, at := q.integer("lane", 0, 0, math.MaxUint32), q.time("at", 0)
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	l := newLookup(tl)
	if lane >= len(l.lanes) || !l.lanes[lane].States {
		return writeJSON(w, nil)
	}
	tick := tl.Tick(at)
	sr := l.f.States(l.lanes[lane].Thread)
	sr.Seek(tick)
	x, ok := sr.Next()
	if !ok || x.From > tick {
		return writeJSON(w, nil)
	}
	j := l.state(uint32(lane), &x)
	in := j.FromNS
	if x.State == reel.StateRunning { // in which it may have made many calls
		in = at
	}
	if err := l.around(q.ctx, sr, &x, &j, in); err != nil {
		return err
	}
	if err := r.holders(q, l, uint32(lane), x.From, x.To, []reel.StateInterval{x}, []*stateJSON{&j}); err != nil {
		return err
	}
	return writeJSON(w, j)
}

// around adds to an interval which call was the innermost at a time, and to a blocked one how long its thread was ready then, which sr goes on with.
func (l *lookup) around(ctx context.Context, sr *reel.StateReader, x *reel.StateInterval, j *stateJSON, at uint64) error {
	if next, ok := sr.Next(); ok && x.State == reel.StateBlocked && next.State == reel.StateReady && !next.Preempted {
		j.ReadyNS = l.tl.NS(next.To) - l.tl.NS(next.From)
	}
	var err error
	j.In, err = l.innermost(ctx, j.Lane, at)
	return err
}

// innermost is the innermost call of a lane that is open at a time, on the stack that runs then.
func (l *lookup) innermost(ctx context.Context, lane uint32, at uint64) (*callerJSON, error) {
	if l.f.Header().Goroutines {
		return nil, nil
	}
	var best *reel.Call
	var ended uint64
	waits := map[int]bool{}
	open := map[int]reel.Call{} // innermost, by stack
	err := l.tl.Visit(ctx, []uint32{lane}, at, at+1, timeline.Visitor{
		Enter: func(_ uint32, c *reel.Call) {
			if o, ok := open[c.Stack]; !ok || c.Depth > o.Depth {
				open[c.Stack] = *c
			}
		},
		Leave: func(_ uint32, c *reel.Call) bool {
			if o, ok := open[c.Stack]; ok && o.Depth == c.Depth && o.Start == c.Start {
				o.End = c.End
				open[c.Stack] = o
			}
			return true
		},
		Paused: func(_ uint32, stack int, _ uint64) { waits[stack] = true },
	})
	if err != nil {
		return nil, err
	}
	for stack, c := range open {
		if !waits[stack] && (best == nil || c.Depth > best.Depth) {
			best, ended = &c, c.End
		}
	}
	if best == nil {
		return nil, nil
	}
	name, _ := nameOf(l.f, best.Func)
	start := l.tl.NS(best.Start)
	return &callerJSON{Row: l.tl.Row(lane, best.Stack, best.Depth), Func: best.Func, Name: name, StartNS: start, DurationNS: l.tl.NS(ended) - min(start, l.tl.NS(ended))}, nil
}
