package why

import (
	"context"
	"fmt"
	"slices"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/waiting"
)

const (
	maxSteps    = 8   // of a chain
	maxWaits    = 32  // stretches of a cause that are looked into
	mostWaiting = 0.5 // part of a wait in which a thread was blocked itself, so that it goes on with whom that waited for
)

// spansOf are the longest stretches of a place in a state, up to most of it.
func (a *aligned) spansOf(marks []bool, state reel.RunState) (list []stretch, whole uint64) {
	for _, s := range a.slow.spans {
		if s.State == state && marks[a.slow.of[s.node]] {
			list = append(list, s)
			whole += s.To - s.From
		}
	}
	longestFirst(list)
	covered, n := uint64(0), 0
	for n < len(list) && n < maxWaits && 10*covered < 9*whole {
		covered += list[n].To - list[n].From
		n++
	}
	return list[:n], whole
}

// waitsFor finds out whom a blocked place waited for.
func (x *explainer) waitsFor(ctx context.Context, a *aligned, c *Cause, marks []bool) {
	spans, _ := a.spansOf(marks, reel.StateBlocked)
	if a.slow.flags&reel.Unfinished != 0 { // what ended its last wait was the recording
		for i := range spans {
			if spans[i].To+x.ticks(20e6) >= a.slow.end {
				spans[i].Waker = 0
			}
		}
	}
	if len(spans) == 0 {
		return
	}
	c.FromNS, c.ToNS = x.since(spans[0].From), x.since(spans[0].To)
	total := map[int32]uint64{}
	for i := range spans {
		total[x.waker(&spans[i])] += spans[i].To - spans[i].From
	}
	waker := x.waker(&spans[0])
	for w, n := range total {
		if n > total[waker] || n == total[waker] && w > waker {
			waker = w
		}
	}
	spans = slices.DeleteFunc(spans, func(s stretch) bool { return x.waker(&s) != waker })
	c.waits = x.waitIn(&spans[0], x.name(a.slow.nodes[spans[0].node].fn))
	var steps []Waiter
	if a.slow.goroutine == 0 {
		steps = x.follow(ctx, spans, a.slow.nodes[spans[0].node].fn)
	} else {
		var timer bool
		if steps, timer = x.followGoroutines(ctx, &spans[0], a.slow.goroutine, a.slow.tree); timer {
			c.waits += ", until a timer of Go's runtime went off"
		}
	}
	if len(steps) == 0 {
		return
	}
	at := 0 // who waits for the same itself keeps nobody waiting
	for at < len(steps)-1 && steps[at].same {
		at++
	}
	c.WaitsFor, c.Chain = &steps[at], steps
}

// waker is the thread that ended a wait: WakerKernel for timers, whoever's time the interrupt took; 0 if nobody knows.
func (x *explainer) waker(s *stretch) int32 {
	if k := x.waitAt(s); k != nil && sleeps[x.syscall(k.Syscall)] {
		return reel.WakerKernel
	}
	return s.Waker
}

// follow goes from thread to thread: what each did while it was waited for.
// inner is the innermost function of the one that waits.
func (x *explainer) follow(ctx context.Context, spans []stretch, inner uint32) (steps []Waiter) {
	seen := map[uint32]bool{spans[0].thread: true}
	for len(steps) < maxSteps && ctx.Err() == nil {
		tid := x.waker(&spans[0])
		if tid == 0 {
			tid = x.unlocker(&spans[0])
		}
		if tid <= 0 {
			break
		}
		thread, ok := x.threadOf(tid, spans[0].To)
		if !ok {
			steps = append(steps, Waiter{TID: int(tid), Path: []string{}, NS: x.ns(length(spans)), Text: "a thread of another process"})
			break
		}
		var windows []window
		for _, s := range spans {
			windows = append(windows, window{s.From, s.To})
		}
		t := x.during(ctx, thread.Key, windows)
		steps = append(steps, x.step(t, thread, windows))
		next := x.longestWait(t, thread.Key, windows[0])
		if next == nil || seen[thread.Key] && len(steps) > 2 {
			break
		}
		steps[len(steps)-1].same = x.sameWait(&spans[0], next, inner, t.nodes[next.node].fn)
		inner = t.nodes[next.node].fn
		seen[thread.Key] = true
		spans = []stretch{*next}
	}
	return steps
}

func length(spans []stretch) (n uint64) {
	for i := range spans {
		n += spans[i].To - spans[i].From
	}
	return n
}

// step says what a thread did while it was waited for.
func (x *explainer) step(t *tree, thread *reel.Thread, windows []window) Waiter {
	s := t.total()
	whole := uint64(0)
	for _, w := range windows {
		whole += w.to - w.from
	}
	w := Waiter{TID: thread.TID, Thread: thread.Name, NS: x.ns(whole), Path: []string{}}
	path, one, _ := t.hot(windows[0])
	for _, at := range path {
		w.Path = append(w.Path, x.name(t.nodes[at].fn))
	}
	if len(path) > 0 {
		at := path[len(path)-1]
		if one >= 0 {
			at = one
		}
		for k := len(path) - 1; k > 0; k-- { // waiting itself is nobody's work
			if path[k] == at && isWait(x.name(t.nodes[at].fn)) {
				at = path[k-1]
			}
		}
		w.Function = x.name(t.nodes[at].fn)
	}
	var v [4]int64
	for i := range s {
		v[i] = int64(s[i])
	}
	w.State = stateName(largest(v))
	return w
}

// longestWait is the longest wait of a thread in a window, if it waited for most of it.
func (x *explainer) longestWait(t *tree, thread uint32, w window) *stretch {
	blocked := uint64(0)
	var best *stretch
	c := newStateClock(x.f, thread, w.from)
	for at := w.from; at < w.to; {
		s, _ := c.piece(at, w.to)
		if at = s.To; s.State != reel.StateBlocked {
			continue
		}
		blocked += s.To - s.From
		if best == nil || s.To-s.From > best.To-best.From {
			best = &stretch{StateInterval: s, thread: thread}
		}
	}
	if best == nil || float64(blocked) < mostWaiting*float64(w.to-w.from) {
		return nil
	}
	for _, s := range t.spans {
		if s.From < best.To && s.To > best.From {
			best.node = s.node
		}
	}
	return best
}

// sameWait says whether two waits are for the same lock: by its address, or, where that isn't known, in the same function.
func (x *explainer) sameWait(a, b *stretch, fnA, fnB uint32) bool {
	b = x.whole(b) // it may have begun before
	v, w := x.waitAt(a), x.waitAt(b)
	if v != nil && w != nil && v.Lock != 0 && w.Lock != 0 {
		return v.Lock == w.Lock
	}
	if p, q := x.addressSpace(v), x.addressSpace(w); p && (q || b.faults(w)) || q && a.faults(v) {
		return true
	}
	if v != nil && w != nil && v.Syscall >= 0 && w.Syscall >= 0 {
		return v.Syscall == w.Syscall && v.Args[0] == w.Args[0]
	}
	return fnA == fnB
}

// whole is a stretch from where it began, if that was cut off.
func (x *explainer) whole(s *stretch) *stretch {
	r := x.f.States(s.thread)
	r.Seek(s.From)
	if iv, ok := r.Next(); ok && iv.State == s.State && iv.From < s.From && iv.To > s.From {
		whole := *s
		whole.From = iv.From
		return &whole
	}
	return s
}

// addressSpace says whether a wait is in a system call that works on the process's address space, which has one lock.
func (x *explainer) addressSpace(w *reel.Wait) bool {
	if w == nil {
		return false
	}
	switch x.syscall(w.Syscall) {
	case "mmap", "munmap", "mprotect", "madvise", "brk":
		return true
	}
	return false
}

// faults says whether a stretch may be of a page fault, which takes that lock, too: a wait in the kernel in no system call.
func (s *stretch) faults(w *reel.Wait) bool {
	return s.Uninterruptible && (w == nil || w.Syscall < 0 && w.Lock == 0 && w.Object == "")
}

// threadOf is the thread that had an ID at a moment.
func (x *explainer) threadOf(tid int32, at uint64) (*reel.Thread, bool) {
	if x.byTID == nil {
		x.byTID = map[int][]reel.Thread{}
		for _, t := range x.f.Threads() {
			x.byTID[t.TID] = append(x.byTID[t.TID], t)
		}
	}
	list := x.byTID[int(tid)]
	for i := range list { // in order of appearance
		if list[i].EndTick == 0 || list[i].EndTick >= at || i == len(list)-1 {
			return &list[i], true
		}
	}
	return nil, false
}

// waitAt is what the reel says that a stretch waited for, nil if it says nothing.
func (x *explainer) waitAt(s *stretch) *reel.Wait {
	list := x.f.Waits(s.thread)
	i, _ := slices.BinarySearchFunc(list, s.From, func(w reel.Wait, at uint64) int {
		if w.Time < at {
			return -1
		}
		return 1
	})
	slack := x.ticks(2000)
	if i < len(list) && list[i].Time < s.To && list[i].Time <= s.From+slack {
		return &list[i]
	}
	if i > 0 && list[i-1].Time+slack >= s.From {
		return &list[i-1]
	}
	return nil
}

// waitIn says in words what a stretch waited in and for.
func (x *explainer) waitIn(s *stretch, function string) string {
	text := ""
	switch w := x.waitAt(s); {
	case w == nil:
	case w.Syscall < 0 && w.Object != "":
		text = " for " + w.Object
	case w.Syscall < 0 && w.Lock != 0:
		text = fmt.Sprintf(" on the lock or condition at 0x%x", w.Lock)
	case w.Syscall < 0:
	case w.Object != "":
		text = fmt.Sprintf(" in %s of %s", x.syscallText(w.Syscall), w.Object)
	case x.syscall(w.Syscall) == "futex":
		text = fmt.Sprintf(" on the lock or condition at 0x%x", w.Args[0])
	default:
		text = " in " + x.syscallText(w.Syscall)
	}
	switch k := x.waker(s); {
	case s.Uninterruptible && k <= 0:
		text += ", for a disk or the kernel itself"
	case k == reel.WakerKernel && (sleeps[x.syscall(x.callOf(s))] || sleepsByName(function)):
		text += ", for a time that it had set"
	case k == reel.WakerKernel:
		text += ", until the kernel woke it: a timer, a disk, or a peer outside of this reel"
	}
	return text
}

func (x *explainer) callOf(s *stretch) int32 {
	if w := x.waitAt(s); w != nil {
		return w.Syscall
	}
	return -1
}

// searchable is up to how many events of a reel are read for who unlocked what, where the scheduler doesn't say.
const searchable = 1 << 25

// unlocker is the thread that let a thread go on whose waker isn't known, if the reel's calls tell that; else 0.
func (x *explainer) unlocker(s *stretch) int32 {
	if w := x.waitAt(s); w != nil && w.Ender != 0 && w.Ender != s.thread {
		return int32(x.threads[w.Ender].TID)
	}
	if x.f.Events() > searchable || s.State != reel.StateBlocked || x.f.Header().Goroutines {
		return 0
	}
	list, _ := waiting.Find(x.f, waiting.Options{Threads: []uint32{s.thread}, From: s.From, To: s.To, Least: (s.To - s.From) / 2, Most: 1})
	if len(list) == 0 || list[0].Waker == 0 {
		return 0
	}
	return int32(x.threads[list[0].Waker].TID)
}
