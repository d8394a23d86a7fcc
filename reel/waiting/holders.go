package waiting

import (
	"cmp"
	"slices"
	"sort"

	"github.com/callreel/callreel/reel"
)

const (
	// maxHolders is how many threads that had a lock one after the other are told of one stretch.
	maxHolders = 8
	// A function is what a thread was in for most of a time if it was for that share of it, in percent; nearly all of it went in functions
	// that have the other share.
	mostShare   = 50
	nearlyShare = 80
	// maxIn is how many functions Holder.In has.
	maxIn = 16
	// maxRemembered is how many calls that have ended are remembered of a thread, maxPath how many functions Holder.Path has.
	maxRemembered = 1 << 14
	maxPath       = 64
)

// findHolders fills in the Holders of stretches whose waker is known.
func findHolders(f *reel.File, n *names, list []Stretch) {
	process := processes(f)
	mine := map[waitOf][]int{} // stretches by thread and lock, by time
	for i := range list {
		if s := &list[i]; s.Kind.IsLock() && s.Address != 0 {
			key := waitOf{s.Thread, placeInMemory{process[s.Thread], s.Address}}
			mine[key] = append(mine[key], i)
		}
	}
	threads := map[uint32]*held{}
	for i := range list {
		s := &list[i]
		chain(list, i, mine, process)
		for k := range s.Holders {
			h := threads[s.Holders[k].Thread]
			if h == nil {
				h = &held{names: n, thread: s.Holders[k].Thread}
				threads[h.thread] = h
			}
			h.windows = append(h.windows, &s.Holders[k])
		}
	}
	for _, h := range threads {
		h.begin()
	}
	walk(f, func(thread uint32) moments {
		if h := threads[thread]; h != nil {
			return h
		}
		return nil
	}, func(l *lane, thread uint32) {
		h := threads[thread]
		if h == nil {
			return
		}
		l.ended = h.remember
	})
}

// waitOf is a thread's waiting for a lock.
type waitOf struct {
	thread uint32
	lock   placeInMemory
}

// chain splits a stretch among the threads that had the lock: the waker had it since it was let go on itself, if it had waited for
// it in the stretch, and before that the one had it that had let that go on.
func chain(list []Stretch, at int, mine map[waitOf][]int, process map[uint32]int) {
	s := &list[at]
	waker, to := s.Waker, min(s.WokenAt, s.To)
	for waker != 0 && to > s.From && len(s.Holders) < maxHolders {
		h := Holder{Thread: waker, From: s.From, To: to}
		before := (*Stretch)(nil)
		if s.Kind.IsLock() && s.Address != 0 {
			of := mine[waitOf{waker, placeInMemory{process[s.Thread], s.Address}}]
			if i := sort.Search(len(of), func(i int) bool { return list[of[i]].To >= to }); i > 0 && list[of[i-1]].To > s.From {
				before = &list[of[i-1]]
				h.From = before.To
			}
		}
		s.Holders = append(s.Holders, h)
		if before == nil || before.Waker == s.Thread {
			return
		}
		waker, to = before.Waker, min(before.WokenAt, before.To)
	}
}

// held are the moments at which a thread let others go on.
type held struct {
	names   *names
	thread  uint32
	windows []*Holder // by To
	done    int
	least   uint64 // calls that are shorter aren't remembered
	longest uint64
	calls   []pastCall
}

// pastCall is a call that has ended.
type pastCall struct {
	lane       *lane
	function   uint32
	stack      int
	depth      int
	start, end uint64
}

func (h *held) begin() {
	slices.SortFunc(h.windows, func(a, b *Holder) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From)) })
	shortest := ^uint64(0)
	for _, w := range h.windows {
		shortest = min(shortest, w.To-w.From)
		h.longest = max(h.longest, w.To-w.From)
	}
	h.least = max(1, shortest/16)
}

func (h *held) next() (tick uint64, ok bool) {
	if h.done == len(h.windows) {
		return 0, false
	}
	return h.windows[h.done].To, true
}

// remember keeps a call that has ended, as long as it can matter.
func (h *held) remember(c *reel.Call, l *lane) {
	if c.End-c.Start < h.least || h.done == len(h.windows) {
		return
	}
	if len(h.calls) >= maxRemembered {
		old := c.End - min(c.End, h.longest)
		h.calls = slices.DeleteFunc(h.calls, func(p pastCall) bool { return p.end < old })
		if n := len(h.calls); n >= maxRemembered/2 {
			h.calls = slices.Delete(h.calls, 0, n-maxRemembered/2)
		}
	}
	h.calls = append(h.calls, pastCall{l, c.Func, c.Stack, c.Depth, c.Start, c.End})
}

// at says of the next window what the thread did in it.
func (h *held) at(l *lane) {
	w := h.windows[h.done]
	h.done++
	open := l.open()
	n := len(open)
	for n > 0 && h.names.roles[open[n-1].function].skip {
		n--
	}
	if n == 0 {
		return
	}
	// The innermost that was open for most of the time, with the calls of its function that were there before, or the outermost.
	at := n - 1
	w.Held = h.openFor(w, l, open, at)
	for at > 0 && percent(w.Held, w.To-w.From) < mostShare {
		at--
		w.Held = h.openFor(w, l, open, at)
	}
	for _, o := range open[max(0, at+1-maxPath) : at+1] {
		w.Path = append(w.Path, o.function)
	}
	w.Since = open[at].start
	h.inside(w, l, open, at)
}

// openFor is for how long of the time a function was open as the one at the depth is.
func (h *held) openFor(w *Holder, l *lane, open []frame, depth int) uint64 {
	o := &open[depth]
	sum := w.To - min(w.To, max(w.From, o.start))
	if o.start <= w.From {
		return sum
	}
	for i := range h.calls {
		if c := &h.calls[i]; c.lane == l && c.stack == l.cur && c.depth == depth && c.function == o.function && c.end > w.From {
			sum += min(c.end, o.start) - min(max(c.start, w.From), o.start)
		}
	}
	return min(sum, w.To-w.From)
}

// inside follows the time down the calls that the one at the depth made.
func (h *held) inside(w *Holder, l *lane, open []frame, depth int) {
	whole := w.Held
	if whole == 0 {
		return
	}
	from := w.From
	calls := make([]pastCall, 0, 16)
	for _, c := range h.calls {
		if c.lane == l && c.stack == l.cur && c.end > from && c.start < w.To && c.depth > depth {
			calls = append(calls, c)
		}
	}
	for d, o := range open[depth+1:] {
		calls = append(calls, pastCall{function: o.function, depth: depth + 1 + d, start: o.start, end: w.To})
	}
	for depth++; len(w.In) < maxIn; depth++ {
		sums := map[uint32]uint64{}
		best := uint32(0)
		for _, c := range calls {
			if c.depth == depth {
				sums[c.function] += min(c.end, w.To) - max(c.start, from)
				if sums[c.function] > sums[best] {
					best = c.function
				}
			}
		}
		if percent(sums[best], whole) < nearlyShare {
			return
		}
		w.In = append(w.In, best)
		// Those below are of its calls.
		var of []pastCall
		for _, c := range calls {
			if c.depth == depth && c.function == best {
				of = append(of, c)
			}
		}
		slices.SortFunc(of, func(a, b pastCall) int { return cmp.Compare(a.start, b.start) })
		calls = slices.DeleteFunc(calls, func(c pastCall) bool {
			i := sort.Search(len(of), func(i int) bool { return of[i].start > c.start }) - 1
			return c.depth <= depth || i < 0 || c.start >= of[i].end && of[i].end != c.end
		})
	}
}

func percent(part, whole uint64) uint64 {
	if whole == 0 {
		return 100
	}
	return uint64(float64(part) / float64(whole) * 100)
}
