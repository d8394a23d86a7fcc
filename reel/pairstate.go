package reel

import (
	"cmp"
	"slices"
)

// PairerState is where a Pairer is between two events: what another one needs to
// go on from there, but for what it has learned of stacks: see [Pairer.SetTops].
type PairerState struct {
	Stacks  []StackState
	Current int    // index of the stack that the last event was on
	Floor   uint32 // lowest SP that is the current stack's without a further look
	Stamp   uint64 // how often the stack changed
	Now     uint64 // time of the last event, in ticks
}

// StackState is one stack of a thread.
type StackState struct {
	Top      uint32 // the highest SP that is its own
	Switched uint64 // Stamp when it stopped being the current one
	Since    uint64 // tick of that
	Open     []OpenCall
}

// OpenCall is a call that has not ended, innermost last in its stack.
type OpenCall struct {
	SP     uint32
	Func   uint32
	Start  uint64 // tick
	Inside uint64 // ticks spent so far in calls that it made and that have ended
	Lost   bool   // events were lost since it began
}

// State returns where the Pairer is. Of each stack only the calls from the
// depth known[stack] on are returned, all where known is shorter; Now, and
// whatever grows, is a copy.
func (p *Pairer) State(known []int) PairerState {
	st := PairerState{Stacks: make([]StackState, len(p.stacks)), Current: p.cur, Floor: p.floor, Stamp: p.clock, Now: p.now}
	for i := range p.stacks {
		s := &p.stacks[i]
		st.Stacks[i].Top, st.Stacks[i].Switched, st.Stacks[i].Since = s.top, s.switched, s.since
		from := 0
		if i < len(known) {
			from = min(known[i], len(s.calls))
		}
		if from == len(s.calls) {
			continue
		}
		open := make([]OpenCall, 0, len(s.calls)-from)
		for _, o := range s.calls[from:] {
			open = append(open, OpenCall{SP: o.sp, Func: o.id, Start: o.start, Inside: o.inside, Lost: o.losses != p.losses})
		}
		st.Stacks[i].Open = open
	}
	return st
}

// SetState makes the Pairer go on from a state that holds all open calls. Its
// counts stay as they are. What is out of range in the state is left out. States of
// the thread (see [File.PairStates]) count from there on, in calls that are open as well.
func (p *Pairer) SetState(st PairerState) {
	p.losses++
	p.stacks, p.open = p.stacks[:0], 0
	for i := range st.Stacks[:min(len(st.Stacks), MaxStacks)] {
		s := &st.Stacks[i]
		calls := make([]openCall, 0, len(s.Open)+8)
		for _, o := range s.Open {
			c := openCall{sp: o.SP, id: o.Func, start: o.Start, inside: o.Inside, losses: p.losses}
			if o.Lost {
				c.losses--
			}
			calls = append(calls, c)
		}
		p.open += len(calls)
		p.stacks = append(p.stacks, callStack{calls: calls, top: s.Top, switched: s.Switched, since: s.Since})
	}
	for len(p.pauses) > 0 && p.pauses[0] <= st.Now { // it has been past them
		p.pauses = p.pauses[1:]
	}
	p.cur, p.floor, p.clock, p.now = max(0, min(st.Current, len(p.stacks)-1)), st.Floor, st.Stamp, st.Now
	if p.states != nil {
		p.spent.begun = false
		p.settle()
	}
	p.order = p.order[:0]
	for i := range p.stacks {
		p.order = append(p.order, uint16(i))
	}
	slices.SortStableFunc(p.order, func(a, b uint16) int { return cmp.Compare(p.stacks[a].top, p.stacks[b].top) })
	p.relist()
}

// Open is how many calls are open.
func (p *Pairer) Open() int { return p.open }

// innermost is the function of the innermost open call on the current stack, or 0.
func (p *Pairer) innermost() uint32 {
	if p.cur >= len(p.stacks) {
		return 0
	}
	calls := p.stacks[p.cur].calls
	if len(calls) == 0 {
		return 0
	}
	return calls[len(calls)-1].id
}
