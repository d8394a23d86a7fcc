package scheduling

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// pastCalls are the calls of a dump, thread by thread as the rings have them. What waits were for is found in the order of time, since what is
// remembered of calls that may have ended a wait is bounded, and in order. Nothing is copied: there may be millions of calls.
type pastCalls struct {
	join joining
	next nextCalls
}

// threadCalls are those of a thread that come next, in the order of their ends.
type threadCalls struct {
	k    *life
	kept []waitcalls.Kept
}

// nextCalls is a heap of threads with calls, by the end of the next.
type nextCalls []threadCalls

func (n nextCalls) Len() int           { return len(n) }
func (n nextCalls) Less(i, j int) bool { return n[i].kept[0].End < n[j].kept[0].End }
func (n nextCalls) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *nextCalls) Push(x any)        { *n = append(*n, x.(threadCalls)) }
func (n *nextCalls) Pop() any {
	last := (*n)[len(*n)-1]
	*n = (*n)[:len(*n)-1]
	return last
}

func (m *Moments) newPastCalls() pastCalls { return pastCalls{join: m.newJoining()} }

// add adds the calls of a thread, in the order of their ends. Their descriptors are looked up at once, so that sockets can be looked for.
func (p *pastCalls) add(k *life, kept []waitcalls.Kept) {
	for i := range kept {
		p.join.object(k, &kept[i])
	}
	if len(kept) > 0 {
		p.next = append(p.next, threadCalls{k, kept})
	}
}

// explain hands on what each wait was for, and who ended it, as far as that is known.
func (p *pastCalls) explain(waits []momentWait, spans map[*life]*span, found func(*momentWait)) {
	heap.Init(&p.next)
	slices.SortStableFunc(waits, func(a, b momentWait) int { return cmp.Compare(a.x.to, b.x.to) })
	writer := func(k *life) *reel.ThreadWriter {
		if s := spans[k]; s != nil {
			return s.to
		}
		return nil
	}
	settles := p.join.watch.ticks(settleTime)
	for i := range waits {
		w := &waits[i]
		s := spans[w.k]
		if s == nil {
			continue
		}
		p.upTo(w.x.to + settles)
		p.join.explain(w.k, p.around(s, w), &w.x, writer)
		found(w)
	}
}

// upTo takes the calls of all threads that ended up to a tick for such that may have ended a wait.
func (p *pastCalls) upTo(tick uint64) {
	for len(p.next) > 0 && p.next[0].kept[0].End <= tick {
		t := &p.next[0]
		c := &t.kept[0]
		p.join.ends(t.k, c, p.join.object(t.k, c))
		if t.kept = t.kept[1:]; len(t.kept) > 0 {
			heap.Fix(&p.next, 0)
		} else {
			heap.Pop(&p.next)
		}
	}
}

// around is the thread's innermost call around a wait, if there is one. Waits are asked for in the order of their ends.
func (p *pastCalls) around(s *span, w *momentWait) []waitCall {
	for len(s.calls) > 0 && s.calls[0].End < w.x.to {
		s.calls = s.calls[1:]
	}
	var in *waitcalls.Kept
	for i := range s.calls[:min(len(s.calls), maxCalls)] {
		if c := &s.calls[i]; p.join.mayWait(c) && c.Start <= w.x.Time && c.End >= w.x.to && (in == nil || in.Start < c.Start) {
			in = c
		}
	}
	if in == nil {
		return nil
	}
	return []waitCall{p.join.waitIn(w.k, in, p.join.object(w.k, in))}
}
