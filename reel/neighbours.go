package reel

import "slices"

const (
	// maxTops is how many tops of stacks are learned of a thread.
	maxTops = 1 << 14
	// maxDoubted is how many calls are remembered twice over that have ended without an exit.
	maxDoubted = 1 << 12
	// doubtedEach is how many of such calls of a stack are, from the innermost on: one of them is the first to return.
	doubtedEach = 4
)

// doubted remembers calls that an event above them seems to have ended. If they were on a stack of their own, their exits may still come.
type doubted struct{ young, old map[uint32]doubt }

type doubt struct {
	id  uint32
	top uint32 // SP of the outermost call that ended with it and that it is near to
}

// add remembers calls, outermost first, that an event at sp has ended. What is far below the next is taken for another stack.
func (d *doubted) add(calls []openCall, sp uint32) {
	for len(calls) > 0 && calls[0].sp == sp { // overwritten
		calls = calls[1:]
	}
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && calls[n-1].sp-calls[n].sp <= reachBack {
			n++
		}
		for _, o := range calls[max(0, n-doubtedEach):n] {
			d.put(o.sp, doubt{o.id, calls[0].sp})
		}
		calls = calls[n:]
	}
}

func (d *doubted) put(sp uint32, what doubt) {
	if len(d.young) >= maxDoubted {
		d.young, d.old = d.old, d.young
		clear(d.young)
	}
	if d.young == nil {
		d.young = map[uint32]doubt{}
	}
	d.young[sp] = what
}

// take returns what is known of a call, and forgets it.
func (d *doubted) take(sp, id uint32) (doubt, bool) {
	for _, m := range []map[uint32]doubt{d.young, d.old} {
		if what, ok := m[sp]; ok {
			delete(m, sp)
			return what, what.id == id
		}
	}
	return doubt{}, false
}

func (d *doubted) clear() {
	if len(d.young) > 0 || len(d.old) > 0 {
		*d = doubted{}
	}
}

// proves says whether an exit is that of a call that was taken to be over, so that its stack is another than that of what seemed to end it.
// Then a stack is known to begin at its top and is the current one. to is the stack that the exit would be on, or -1.
func (p *Pairer) proves(e *Event, to, index int) bool {
	what, ok := p.doubted.take(e.SP, e.ID())
	if !ok {
		return false
	}
	if at, known := slices.BinarySearch(p.tops, what.top); !known && len(p.tops) < maxTops {
		p.tops = slices.Insert(p.tops, at, what.top)
	}
	if to >= 0 && int32(p.stacks[to].top-what.top) > 0 {
		// What is open there below the new top can't be told from what is over: the stack begins anew.
		p.switchTo(to, e.SP, index)
		s := &p.stacks[to]
		n := len(s.calls)
		for n > 0 && int32(what.top-s.calls[n-1].sp) >= 0 {
			n--
		}
		p.endFrom(s, n, index)
	}
	p.switchTo(p.find(e.SP), e.SP, index)
	return true
}

// begins says whether a stack is known to begin from low on, and below high.
func (p *Pairer) begins(low, high uint32) bool {
	if len(p.tops) == 0 || high-low >= 1<<31 {
		return false
	}
	i, _ := slices.BinarySearch(p.tops, low)
	return p.tops[i%len(p.tops)]-low < high-low
}

// topFor is the top of a stack that is to reach up to sp: as far as it is known to, if no other stack is there.
func (p *Pairer) topFor(sp uint32) uint32 {
	if len(p.tops) == 0 {
		return sp
	}
	i, _ := slices.BinarySearch(p.tops, sp)
	top := p.tops[i%len(p.tops)]
	if top-sp > reachBelow {
		return sp
	}
	if n := len(p.order); n > 0 {
		if next := p.stacks[p.order[p.place(sp)%n]].top; next-sp <= top-sp {
			return sp
		}
	}
	return top
}

// Tops are the SPs at which stacks of the thread are known to begin, if there are neighbours, else none: for SetTops of another Pairer.
func (p *Pairer) Tops() []uint32 {
	if len(p.tops) == 0 || p.settled {
		return p.tops
	}
	tops := slices.Clone(p.tops)
	for i := range p.stacks {
		tops = append(tops, p.stacks[i].top)
	}
	slices.Sort(tops)
	return slices.Compact(tops)
}

// LearnTops makes the Pairer learn where stacks begin, as it does at first, and forget what it knows of that.
func (p *Pairer) LearnTops() {
	p.tops, p.settled = nil, false
	p.doubted.clear()
}

// SetTops says where stacks of the thread begin, in order, before its first event. The Pairer doesn't learn any more itself, and pairs alike from
// each state that it was in; it doesn't change the slice.
func (p *Pairer) SetTops(tops []uint32) {
	p.tops, p.settled = tops[:min(len(tops), maxTops)], true
	p.doubted.clear()
}
