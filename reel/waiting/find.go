package waiting

import (
	"cmp"
	"slices"
	"sort"

	"github.com/callreel/callreel/reel"
)

// stretches finds the stretches, without who ended them but for what the scheduler has said.
func stretches(f *reel.File, n *names, opt *Options) (list []Stretch, left int) {
	byTID := threadsByTID(f)
	var all []*blocked
	walk(f, func(thread uint32) moments {
		if opt.Threads != nil && !slices.Contains(opt.Threads, thread) {
			return nil
		}
		b := &blocked{f: f, names: n, opt: opt, thread: thread, states: f.States(thread), waits: f.Waits(thread), values: f.Values(thread), wakers: byTID}
		b.states.Seek(opt.From)
		if !b.advance() {
			return nil
		}
		all = append(all, b)
		return b
	}, nil)
	slices.SortFunc(all, func(a, b *blocked) int { return cmp.Compare(a.thread, b.thread) })
	for _, b := range all {
		list, left = append(list, b.list...), left+b.left
	}
	list, more := longest(list, opt.most())
	slices.SortFunc(list, byThread)
	return list, left + more
}

func byThread(a, b Stretch) int {
	return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.From, b.From))
}

// longest leaves the longest stretches, and says how many others there were.
func longest(list []Stretch, most int) ([]Stretch, int) {
	left := len(list) - most
	if left <= 0 {
		return list, 0
	}
	slices.SortFunc(list, func(a, b Stretch) int { return cmp.Or(cmp.Compare(b.To-b.From, a.To-a.From), byThread(a, b)) })
	return list[:most], left
}

// blocked are the moments at which a thread became blocked.
type blocked struct {
	f      *reel.File
	names  *names
	opt    *Options
	thread uint32
	states *reel.StateReader
	waits  []reel.Wait
	values *reel.ValueReader
	wakers tids

	cur  reel.StateInterval // the next one
	more bool
	list []Stretch
	left int
}

// advance goes to the next stretch.
func (b *blocked) advance() bool {
	for {
		s, ok := b.states.Next()
		b.cur, b.more = s, ok && s.From < b.opt.to()
		if !b.more {
			return false
		}
		if s.State == reel.StateBlocked && s.To-s.From >= b.opt.Least && s.To > b.opt.From {
			return true
		}
	}
}

func (b *blocked) next() (tick uint64, ok bool) { return b.cur.From, b.more }

func (b *blocked) at(l *lane) {
	s := Stretch{Thread: b.thread, From: b.cur.From, To: b.cur.To, Uninterruptible: b.cur.Uninterruptible}
	var locked uint64
	if open := l.open(); len(open) > 0 {
		o := &open[len(open)-1]
		s.Function, s.CallStart = o.function, o.start
		for i := len(open) - 1; i >= 0 && b.names.roles[open[i].function].skip; i-- {
			if locked = b.names.argument(b.values, &open[i]); locked != 0 {
				break
			}
		}
	}
	for len(b.waits) > 0 && b.waits[0].Time < s.From {
		b.waits = b.waits[1:]
	}
	if len(b.waits) > 0 && b.waits[0].Time < s.To {
		s.Wait, s.HasWait = b.waits[0], true
	}
	b.names.classify(&s, l.open(), locked)
	switch {
	case b.cur.Waker == reel.WakerKernel && !(s.HasWait && s.Wait.Ender != 0): // what goes out on this machine comes in by an interrupt, too
		s.By, s.WokenAt = ByKernel, s.To
	case b.cur.Waker != 0 && b.cur.Waker != reel.WakerKernel:
		if key := b.wakers.at(b.cur.Waker, s.To); key != 0 && key != b.thread {
			s.Waker, s.By, s.WokenAt = key, ByWakeUp, s.To
		}
	case s.HasWait && s.Wait.Ender != 0 && s.Wait.Ender != b.thread:
		s.Waker, s.By, s.WokenAt = s.Wait.Ender, ByUnlock, min(s.Wait.EndedAt, s.To)
		if s.Wait.EndedBy == reel.EndDescriptor {
			s.By = ByDescriptor
		}
	}
	if b.opt.Keep == nil || b.opt.Keep(&s) {
		b.list = append(b.list, s)
		if most := b.opt.most(); len(b.list) >= 2*most {
			var more int
			b.list, more = longest(b.list, most)
			b.left += more
		}
	}
	b.advance()
}

// argument is what the call's argument points at, if it locks or unlocks something and that was recorded; else 0. Calls are asked for in their order.
func (n *names) argument(values *reel.ValueReader, o *frame) uint64 {
	at, ok := n.address[o.function]
	if !ok {
		return 0
	}
	v := values.Of(o.function, false, o.start, o.sp, reel.UnknownNumber)
	if at >= len(v) || v[at].State != reel.ValueKnown {
		return 0
	}
	return v[at].Bits
}

// tids finds threads by their IDs, which may be given again when a thread has ended.
type tids map[int32][]reel.Thread

func threadsByTID(f *reel.File) tids {
	t := tids{}
	for _, th := range f.Threads() {
		t[int32(th.TID)] = append(t[int32(th.TID)], th)
	}
	for _, list := range t {
		slices.SortStableFunc(list, func(a, b reel.Thread) int { return cmp.Compare(end(a), end(b)) })
	}
	return t
}

// end is when a thread ended, or never.
func end(t reel.Thread) uint64 { return t.EndTick - 1 }

// at is the key of the thread that had the ID then, or 0.
func (t tids) at(tid int32, tick uint64) uint32 {
	list := t[tid]
	i := sort.Search(len(list), func(i int) bool { return end(list[i]) >= tick })
	if i == len(list) {
		return 0
	}
	return list[i].Key
}
