package reel

import (
	"cmp"
	"slices"
)

// callStack is a stack of a thread.
type callStack struct {
	calls    []openCall
	states   []openStates // of the outermost calls: see openStates
	top      uint32       // the highest SP that is its own
	switched uint64       // stamp of when it stopped being the current one
	since    uint64       // tick of that
	left     notRunning   // what the thread had done until then
	// Its neighbours in the list that it is in, or -1.
	older, newer int16
}

// low is the lowest SP that is known to be in use, or the top.
func (s *callStack) low() uint32 {
	if n := len(s.calls); n > 0 {
		return s.calls[n-1].sp
	}
	return s.top
}

// has says whether a call is open.
func (s *callStack) has(sp, id uint32) bool {
	if len(s.calls) == 0 {
		return false
	}
	first := s.calls[0].sp
	i, ok := slices.BinarySearchFunc(s.calls, first-sp, func(o openCall, d uint32) int { return cmp.Compare(first-o.sp, d) })
	return ok && s.calls[i].id == id
}

// waited adds the time since the stack stopped being the current one to what its innermost call didn't spend itself.
func (p *Pairer) waited(s *callStack) {
	n := len(s.calls)
	if n == 0 {
		return
	}
	s.calls[n-1].inside += p.now - min(p.now, s.since)
	if p.states != nil {
		s.spentElsewhere(p.spent.notRunning)
	}
}

// begin makes the first stack.
func (p *Pairer) begin(sp uint32) {
	p.idle, p.paused = noStacks, noStacks
	p.stacks = append(p.stacks[:0], callStack{top: p.topFor(sp), older: -1, newer: -1})
	p.order = append(p.order[:0], 0)
	p.cur = 0
	p.setFloor(sp)
}

// find returns the stack that an event at sp is on, or -1. It is the one whose top is the next at sp or above it, if sp isn't too far
// below what is in use of it, or the one whose top is the next below, if sp isn't too far above.
func (p *Pairer) find(sp uint32) int {
	n := len(p.order)
	at := p.place(sp)
	found, nearest := -1, int64(1<<32)
	if i := int(p.order[at%n]); !p.begins(sp, p.stacks[i].top) {
		s := &p.stacks[i]
		d := int64(int32(s.low() - sp))
		if s.top-sp < 1<<31 && d <= 0 {
			return i
		}
		if s.top-sp < 1<<31 && d <= p.reachDown(i) {
			found, nearest = i, d
		}
	}
	i := int(p.order[(at+n-1)%n])
	s := &p.stacks[i]
	if up := int64(sp - s.top); up <= p.reachUp(i) && up < nearest && !p.begins(s.top, sp) {
		found = i
	}
	return found
}

// reachDown is how far below what is in use of a stack an event may be that is on it.
func (p *Pairer) reachDown(stack int) int64 {
	switch {
	case len(p.tops) > 0:
		return p.reach()
	case stack == p.cur || len(p.stacks[stack].calls) == 0:
		return reachBelow
	}
	return reachBack
}

// reachUp is how far above a stack's top an event may be that is on it.
func (p *Pairer) reachUp(stack int) int64 {
	if len(p.tops) == 0 && (stack == p.cur || len(p.stacks[stack].calls) == 0) {
		return reachAbove
	}
	return reachBack
}

// reach is reachDown of the current stack. Where all tops are known only they limit it, as for a thread without neighbours.
func (p *Pairer) reach() int64 {
	if len(p.tops) == 0 || p.settled {
		return reachBelow
	}
	return reachBack
}

// switchTo makes a stack the current one, a new one if it is -1, and has it reach to sp.
func (p *Pairer) switchTo(to int, sp uint32, index int) {
	if to != p.cur {
		from := p.cur
		p.pause()
		if to < 0 {
			to = p.newStack(sp, index)
		} else {
			p.listOf(to).remove(p.stacks, to)
		}
		p.cur = to
		p.waited(&p.stacks[to])
		if p.OnSwitch != nil {
			p.OnSwitch(from, to, p.now)
		}
	}
	if s := &p.stacks[to]; int32(sp-s.top) > 0 {
		p.unplace(to)
		s.top = p.topFor(sp)
		p.placeStack(to)
	}
	p.setFloor(sp)
}

// setFloor says how far down the current stack reaches, of which sp is a part.
func (p *Pairer) setFloor(sp uint32) {
	s := &p.stacks[p.cur]
	low := sp
	if n := len(s.calls); n > 0 && int32(s.calls[n-1].sp-low) < 0 {
		low = s.calls[n-1].sp
	}
	reach := uint32(p.reach())
	n := len(p.order)
	if next := p.stacks[p.order[(p.place(low)+n-1)%n]].top; next != s.top {
		reach = min(reach, low-next-1)
	}
	if n := len(p.tops); n > 0 {
		i, _ := slices.BinarySearch(p.tops, low)
		reach = min(reach, low-p.tops[(i+n-1)%n]-1)
	}
	p.floor = low - reach
}

// pause leaves the current stack.
func (p *Pairer) pause() {
	s := &p.stacks[p.cur]
	p.clock++
	s.switched, s.since = p.clock, p.now
	if p.states != nil {
		s.noteEntries(p.spent.notRunning)
		s.left = p.spent.notRunning
	}
	if size := cap(s.calls); size > keptPaused && size > 4*len(s.calls) {
		s.calls = append(make([]openCall, 0, len(s.calls)+8), s.calls...)
	}
	p.listOf(p.cur).add(p.stacks, p.cur)
}

// keptPaused is for how many calls a stack keeps memory that stops being the current one with fewer.
const keptPaused = 64

// newStack returns a stack without calls for sp: one that has none, or a new one, or that which has not been the current one for longest: its calls are
// given up when there are too many stacks.
func (p *Pairer) newStack(sp uint32, index int) int {
	i := p.idle.oldest
	switch {
	case i >= 0:
		p.idle.remove(p.stacks, int(i))
		p.unplace(int(i))
	case len(p.stacks) < MaxStacks:
		i = int16(len(p.stacks))
		p.stacks = append(p.stacks, callStack{older: -1, newer: -1})
	default:
		i = p.paused.oldest
		p.paused.remove(p.stacks, int(i))
		p.cur = int(i)
		s := &p.stacks[i]
		p.waited(s)
		p.endFrom(s, 0, index)
		p.unplace(int(i))
	}
	p.stacks[i].top = p.topFor(sp)
	p.stacks[i].since = p.now
	p.stacks[i].left = p.spent.notRunning
	p.placeStack(int(i))
	return int(i)
}

// place is where in order a stack belongs whose top is at sp: before those whose top is there or above.
func (p *Pairer) place(sp uint32) int {
	at, _ := slices.BinarySearchFunc(p.order, sp, func(i uint16, sp uint32) int { return cmp.Compare(p.stacks[i].top, sp) })
	return at
}

func (p *Pairer) placeStack(i int) {
	p.order = slices.Insert(p.order, p.place(p.stacks[i].top), uint16(i))
}

func (p *Pairer) unplace(i int) {
	for at := p.place(p.stacks[i].top); at < len(p.order); at++ { // tops differ, but in a state that somebody made up
		if int(p.order[at]) == i {
			p.order = slices.Delete(p.order, at, at+1)
			return
		}
	}
}

// listOf is the list that a stack is in while it isn't the current one.
func (p *Pairer) listOf(i int) *stackList {
	if len(p.stacks[i].calls) == 0 {
		return &p.idle
	}
	return &p.paused
}

// relist puts all stacks but the current one into their lists.
func (p *Pairer) relist() {
	p.idle, p.paused = noStacks, noStacks
	bySwitch := make([]uint16, len(p.stacks))
	for i := range bySwitch {
		bySwitch[i] = uint16(i)
	}
	slices.SortStableFunc(bySwitch, func(a, b uint16) int { return cmp.Compare(p.stacks[a].switched, p.stacks[b].switched) })
	for _, i := range bySwitch {
		if int(i) != p.cur {
			p.listOf(int(i)).add(p.stacks, int(i))
		}
	}
}

// stackList is a list of stacks, by when they stopped being the current one.
type stackList struct{ oldest, newest int16 }

var noStacks = stackList{-1, -1}

func (l *stackList) add(stacks []callStack, i int) {
	stacks[i].older, stacks[i].newer = l.newest, -1
	if l.newest >= 0 {
		stacks[l.newest].newer = int16(i)
	} else {
		l.oldest = int16(i)
	}
	l.newest = int16(i)
}

func (l *stackList) remove(stacks []callStack, i int) {
	s := &stacks[i]
	if s.older >= 0 {
		stacks[s.older].newer = s.newer
	} else {
		l.oldest = s.newer
	}
	if s.newer >= 0 {
		stacks[s.newer].older = s.older
	} else {
		l.newest = s.older
	}
}
