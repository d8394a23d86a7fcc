package reel

// Limits of a Pairer.
const (
	// DefaultMaxOpen is how many calls of a thread may be open at once, over
	// all its stacks, at 32 bytes each.
	DefaultMaxOpen = 1 << 20
	// MaxStacks is how many stacks of a thread are told apart at once.
	MaxStacks = 2048

	// An event goes on with the current stack if its SP lies at most reachAbove
	// bytes above the highest that the stack had or reachBelow bytes below the
	// innermost call, and no other stack is known to be there. reachAbove covers
	// callers that were not seen entering, reachBelow large frames (alloca,
	// arrays) between two probed functions; it is less than the distance of most
	// mappings.
	reachAbove = 64 << 10
	reachBelow = 1 << 20
	// reachBack is both where a stack with open calls is come back to from
	// another one, and on any stack of a thread that has been seen to have
	// neighbours: less than the size of coroutines' stacks.
	reachBack = 8 << 10
)

// Pairer pairs the entries and exits of one thread into calls. The stack
// pointer decides, so that exceptions, longjmp, tail calls and functions that
// never return come out right:
//
//   - An entry at stack pointer s ends all open calls of its stack whose SP is s
//     or lower. (A tail call has logged its exit before: both have the same SP.)
//   - An exit at s ends those lower than s; then it must match SP and function
//     of the innermost open call. If it does not, it is the exit of a call whose
//     entry was not recorded, and only counted.
//
// A thread may run on several stacks: a signal handler's own, coroutines'. Each
// known one has the addresses from its top down to the next one's. What belongs
// to none of them, and is out of reach of the current stack, is on a new one;
// calls on the others stay open. While a stack isn't the current one its
// innermost call waits: that time counts in Inside, so that an instant is no
// more than one call's own.
//
// Stacks within reach of one another are taken for one at first: calls on the
// lower one seem to have ended without returning when the higher one goes
// on. The exit of such a call proves that it hadn't: from then on a stack
// is known to begin at the outermost call that it went with. A stream without
// such an exit is paired as if there were no neighbours.
//
// SPs are compared by their low 32 bits with wraparound. Time does not go back: an
// event whose Time is below that of one before it counts as made then.
type Pairer struct {
	// OnEntry, if set, is called for each entry that opens a call, after the
	// calls that it ends. The Call has neither End nor Inside, and is valid
	// during the call only.
	OnEntry func(*Call)
	// OnCall, if set, is called for each call that ends, inner ones first. The
	// Call is valid during the call only.
	OnCall func(*Call)
	// OnSwitch, if set, is called when another stack becomes the current one,
	// before what the event there ends or begins: the one before begins to
	// wait at that tick, and the other has waited until then.
	OnSwitch func(from, to int, tick uint64)
	// MaxOpen is how many calls may be open; 0 means DefaultMaxOpen. Entries
	// beyond it are counted in TooDeep and otherwise ignored.
	MaxOpen int

	// Calls counts entries, Unmatched exits without a call, TooDeep entries
	// beyond MaxOpen.
	Calls, Unmatched, TooDeep uint64

	stacks []callStack
	cur    int
	// floor is the lowest SP that is the current stack's without a further look.
	// No other stack has its top between floor and the current one's top.
	floor  uint32
	open   int
	losses uint32 // how often events were lost
	clock  uint64 // stamps stacks with when they stopped being the current one
	now    uint64
	call   Call
	index  int // see Index

	order  []uint16  // all stacks, by their tops
	idle   stackList // stacks but for the current one that have no open calls
	paused stackList // those that have

	states StateClock // nil if they aren't asked for
	spent  spentStates

	tops    []uint32 // where stacks are known to begin, in order
	settled bool     // no more tops are learned
	doubted doubted
	pauses  []uint64 // ticks at which those began that come next
}

// openCall is an entry whose exit has not come.
type openCall struct {
	sp     uint32
	id     uint32
	start  uint64
	inside uint64
	losses uint32 // Pairer.losses at entry
	calls  uint32 // Pairer.Calls behind the entry; its lower bits
}

// SetTime tells the time before the first event, in ticks: under ClockExit it is
// the start of calls that come before the first exit.
func (p *Pairer) SetTime(tick uint64) { p.now = tick }

// Push takes the thread's next events.
func (p *Pairer) Push(events []Event) {
	at := 0
	for len(p.pauses) > 0 && len(events) > 0 && events[len(events)-1].Time >= p.pauses[0] {
		// What happened in a pause is missing, and calls that were open may have ended in it.
		n := 0
		for n < len(events) && events[n].Time < p.pauses[0] {
			n++
		}
		p.pushAll(events[:n], at)
		p.Lost()
		p.pauses, events, at = p.pauses[1:], events[n:], at+n
	}
	p.pushAll(events, at)
}

// pushAll takes events, of which the first is the one at that index of those that were pushed.
func (p *Pairer) pushAll(events []Event, at int) {
	if len(p.stacks) == 0 {
		if len(events) == 0 {
			return
		}
		p.begin(events[0].SP)
	}
	for i := range events {
		e := &events[i]
		if e.Time > p.now { // an earlier one, of a handler above a stub's claim, is now
			p.now = e.Time
		}
		if p.states != nil && p.now >= p.spent.until {
			p.settle()
		}
		s := &p.stacks[p.cur]
		n := len(s.calls)
		if n > 0 {
			// Nearly all events: a call further down, or the exit of the
			// innermost.
			top := &s.calls[n-1]
			if e.Word&1 == 0 {
				if e.SP-p.floor < top.sp-p.floor {
					p.enter(s, e, at+i)
					continue
				}
			} else if e.SP == top.sp && top.id == e.Word>>1 {
				p.leave(s, 0, at+i)
				continue
			}
		}
		p.pushSlowly(e, at+i)
	}
}

// Index is, in OnEntry and OnCall, which of the events given to Push it is that begins or ends the call.
func (p *Pairer) Index() int { return p.index }

// pushSlowly handles an event that the innermost call does not explain.
func (p *Pairer) pushSlowly(e *Event, index int) {
	to := p.cur
	owned := e.SP-p.floor <= p.stacks[to].top-p.floor
	if !owned {
		to = p.find(e.SP)
	}
	if e.IsExit() && !p.settled && (to < 0 || !p.stacks[to].has(e.SP, e.ID())) && p.proves(e, to, index) {
		p.Unmatched++ // it has been told of as ended
		return
	}
	if !owned {
		p.switchTo(to, e.SP, index)
	}
	s := &p.stacks[p.cur]
	if !e.IsExit() {
		p.endBelow(s, e.SP, 0, index)
		p.enter(s, e, index)
		return
	}
	p.endBelow(s, e.SP, 1, index)
	if n := len(s.calls); n > 0 && s.calls[n-1].sp == e.SP && s.calls[n-1].id == e.ID() {
		p.leave(s, 0, index)
		return
	}
	p.Unmatched++
}

// endBelow ends the calls whose SP is at least margin bytes below sp.
func (p *Pairer) endBelow(s *callStack, sp uint32, margin int32, index int) {
	n := len(s.calls)
	for n > 0 && int32(sp-s.calls[n-1].sp) >= margin {
		n--
	}
	if n == len(s.calls) {
		return
	}
	if !p.settled {
		p.doubted.add(s.calls[n:], sp)
	}
	p.endFrom(s, n, index)
}

// endFrom ends the calls of a stack from a depth on, as Implicit.
func (p *Pairer) endFrom(s *callStack, depth, index int) {
	for len(s.calls) > depth {
		p.leave(s, Implicit, index)
	}
}

// enter opens a call.
func (p *Pairer) enter(s *callStack, e *Event, index int) {
	p.Calls++
	limit := p.MaxOpen
	if limit == 0 {
		limit = DefaultMaxOpen
	}
	if p.open >= limit {
		p.TooDeep++
		return
	}
	p.open++
	n := len(s.calls)
	if n == cap(s.calls) {
		s.calls = append(s.calls, openCall{})
	}
	s.calls = s.calls[:n+1]
	// Field by field, here and below: a composite literal is built elsewhere and
	// copied, which costs a third of the pairing.
	o := &s.calls[n]
	o.sp, o.id, o.start, o.inside, o.losses, o.calls = e.SP, e.Word>>1, p.now, 0, p.losses, uint32(p.Calls)
	if p.OnEntry != nil {
		c := &p.call
		c.Func, c.Depth, c.Stack, c.SP = o.id, n, p.cur, o.sp
		c.Start, c.End, c.Inside, c.Flags = o.start, 0, 0, 0
		if p.states != nil {
			c.States, c.InsideStates = StateTimes{}, StateTimes{}
		}
		p.index = index
		p.OnEntry(c)
	}
}

// leave ends the innermost call of the stack now.
func (p *Pairer) leave(s *callStack, flags CallFlags, index int) {
	n := len(s.calls) - 1
	o := &s.calls[n]
	s.calls = s.calls[:n]
	p.open--
	end := max(p.now, o.start)
	if o.losses != p.losses {
		flags |= AcrossLoss
	}
	if n > 0 {
		s.calls[n-1].inside += end - o.start
	}
	if p.states != nil {
		p.leaveStates(s, n, end-o.start, o.inside)
	}
	if p.OnCall != nil {
		c := &p.call
		c.Func, c.Depth, c.Stack, c.SP = o.id, n, p.cur, o.sp
		c.Start, c.End, c.Inside, c.Flags = o.start, end, o.inside, flags
		p.index = index
		p.OnCall(c)
	}
}

// Lost tells the Pairer that events are missing before the next Push: every call
// that is open now is marked.
func (p *Pairer) Lost() {
	p.losses++
	p.doubted.clear()
}

// Abandon ends the calls that are open, now, as Implicit: there will be no more of
// them.
func (p *Pairer) Abandon() {
	if p.open == 0 {
		return
	}
	p.endAll(Implicit)
	p.relist()
}

// Finish ends the calls that are still open, at the tick when the thread or the recording
// ended, as Unfinished. The Pairer is then as new, but for its counts and for what it was told of stacks.
func (p *Pairer) Finish(tick uint64) {
	p.now = max(p.now, tick)
	if p.states != nil && p.now >= p.spent.until {
		p.settle()
	}
	p.endAll(Unfinished)
	p.stacks, p.order, p.cur, p.clock, p.now = p.stacks[:0], p.order[:0], 0, 0, 0
	p.spent.begun, p.spent.until = false, 0
	p.doubted.clear()
	if !p.settled {
		p.tops = nil
	}
}

// endAll ends all open calls. The stacks' lists are out of date then.
func (p *Pairer) endAll(flags CallFlags) {
	cur := p.cur
	for i := range p.stacks {
		s := &p.stacks[i]
		if i != cur {
			p.waited(s)
		}
		p.cur = i
		for len(s.calls) > 0 {
			p.leave(s, flags, 0)
		}
	}
	p.cur = cur
}
