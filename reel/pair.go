package reel

// Limits of a Pairer.
const (
	// DefaultMaxOpen is how many calls of a thread may be open at once, over
	// all its stacks, at 32 bytes each.
	DefaultMaxOpen = 1 << 20
	// maxStacks is how many stacks of a thread are told apart.
	maxStacks = 256

	// An event belongs to a stack if its SP lies at most reachAbove bytes above
	// the outermost open call or reachBelow bytes below the innermost.
	// reachAbove covers callers that were not seen entering; a signal stack or
	// coroutine stack nearer than that above another one is taken for the same
	// stack. reachBelow covers large frames (alloca, arrays) between two probed
	// functions, and is less than the distance of most mappings.
	reachAbove = 64 << 10
	reachBelow = 1 << 20
)

// Pairer pairs the entries and exits of one thread into calls. The stack
// pointer decides, so that exceptions, longjmp, tail calls and functions that
// never return come out right:
//
//   - An entry at stack pointer s ends all open calls whose SP is s or lower.
//     (A tail call has logged its exit before: both have the same SP.)
//   - An exit at s ends those lower than s; then it must match SP and function
//     of the innermost open call. If it does not, it is the exit of a call whose
//     entry was not recorded, and only counted.
//
// A thread may run on several stacks: a signal handler's own, coroutines'. An
// event whose SP is out of reach of the current stack goes to the stack it is
// near to, or to a new one; calls on the others stay open. Two stacks whose
// ranges are nearer than the reach are not told apart.
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
	// MaxOpen is how many calls may be open; 0 means DefaultMaxOpen. Entries
	// beyond it are counted in TooDeep and otherwise ignored.
	MaxOpen int

	// Calls counts entries, Unmatched exits without a call, TooDeep entries
	// beyond MaxOpen.
	Calls, Unmatched, TooDeep uint64

	stacks []callStack
	cur    int
	open   int
	losses uint32 // how often events were lost
	clock  uint64 // stamps stacks with when they were left
	now    uint64
	call   Call
	index  int // see Index
}

// openCall is an entry whose exit has not come.
type openCall struct {
	sp     uint32
	id     uint32
	start  uint64
	inside uint64
	losses uint32 // Pairer.losses at entry
}

type callStack struct {
	calls []openCall
	home  uint32 // SP of the last outermost call
	left  uint64
}

// fits reports whether an event at sp may belong to the stack.
func (s *callStack) fits(sp uint32) bool {
	top, bottom := s.home, s.home
	if n := len(s.calls); n > 0 {
		top, bottom = s.calls[n-1].sp, s.calls[0].sp
	}
	return int32(sp-bottom) <= reachAbove && int32(sp-top) >= -reachBelow
}

// distance is how far sp is from the innermost call of the stack.
func (s *callStack) distance(sp uint32) uint32 {
	top := s.home
	if n := len(s.calls); n > 0 {
		top = s.calls[n-1].sp
	}
	if d := int32(sp - top); d < 0 {
		return uint32(-int64(d))
	}
	return sp - top
}

// SetTime tells the time before the first event, in ticks: under ClockExit it is
// the start of calls that come before the first exit.
func (p *Pairer) SetTime(tick uint64) { p.now = tick }

// Push takes the thread's next events.
func (p *Pairer) Push(events []Event) {
	if len(p.stacks) == 0 {
		if len(events) == 0 {
			return
		}
		p.stacks = append(p.stacks, callStack{home: events[0].SP})
	}
	for i := range events {
		e := &events[i]
		if e.Time > p.now { // an earlier one, of a handler above a stub's claim, is now
			p.now = e.Time
		}
		s := &p.stacks[p.cur]
		n := len(s.calls)
		if n > 0 {
			// Nearly all events: a call further down, or the exit of the
			// innermost.
			top := &s.calls[n-1]
			d := int32(e.SP - top.sp)
			if e.Word&1 == 0 && d < 0 && d >= -reachBelow {
				p.enter(s, e, i)
				continue
			}
			if e.Word&1 != 0 && d == 0 && top.id == e.Word>>1 {
				p.leave(s, 0, i)
				continue
			}
		}
		p.pushSlowly(e, i)
	}
}

// Index is, in OnEntry and OnCall, which of the events given to Push it is that begins or ends the call.
func (p *Pairer) Index() int { return p.index }

// pushSlowly handles an event that the innermost call does not explain.
func (p *Pairer) pushSlowly(e *Event, index int) {
	if !p.stacks[p.cur].fits(e.SP) {
		p.switchTo(e.SP)
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
	for n := len(s.calls); n > 0 && int32(sp-s.calls[n-1].sp) >= margin; n-- {
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
	if len(s.calls) == 0 {
		s.home = e.SP
	}
	n := len(s.calls)
	if n == cap(s.calls) {
		s.calls = append(s.calls, openCall{})
	}
	s.calls = s.calls[:n+1]
	// Field by field, here and below: a composite literal is built elsewhere and
	// copied, which costs a third of the pairing.
	o := &s.calls[n]
	o.sp, o.id, o.start, o.inside, o.losses = e.SP, e.Word>>1, p.now, 0, p.losses
	if p.OnEntry != nil {
		c := &p.call
		c.Func, c.Depth, c.Stack, c.SP = o.id, n, p.cur, o.sp
		c.Start, c.End, c.Inside, c.Flags = o.start, 0, 0, 0
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
func (p *Pairer) Lost() { p.losses++ }

// Left ends the calls that are open, now, as Implicit: there will be no more of
// them.
func (p *Pairer) Left() {
	for i := range p.stacks {
		p.cur = i
		for s := &p.stacks[i]; len(s.calls) > 0; {
			p.leave(s, Implicit, 0)
		}
	}
}

// Finish ends the calls that are still open, at the tick when the thread or the recording
// ended, as Unfinished. The Pairer is then as new, but for its counts.
func (p *Pairer) Finish(tick uint64) {
	p.now = max(p.now, tick)
	for i := range p.stacks {
		p.cur = i
		for s := &p.stacks[i]; len(s.calls) > 0; {
			p.leave(s, Unfinished, 0)
		}
	}
	p.stacks, p.cur, p.clock, p.now = p.stacks[:0], 0, 0, 0
}
