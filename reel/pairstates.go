package reel

// StateClock says what a thread, or a goroutine, has done up to a moment. It is asked with ticks that don't go back.
type StateClock interface {
	// At returns what it has done up to the tick, since some moment that doesn't change.
	At(tick uint64) StateTimes
}

// openStates is what is kept of an open call: what its thread had done when it began, and what it has done in Inside.
type openStates struct{ entry, inside StateTimes }

// PairStates has a Pairer say of calls what the thread with the key did meanwhile. It is called before the thread's first event, and changes
// nothing if no states are known.
func (f *File) PairStates(p *Pairer, thread uint32) {
	p.SetStates(nil)
	if i, ok := f.byKey[thread]; ok && len(f.threads[i].states) > 0 {
		p.SetStates(NewThreadClock(f.States(thread)))
	}
}

// SetStates is PairStates with another clock; nil for none.
func (p *Pairer) SetStates(c StateClock) {
	p.states = c
	p.call.States, p.call.InsideStates = StateTimes{}, StateTimes{}
}

// enterStates notes what the thread has done before the call at the depth, which begins now.
func (p *Pairer) enterStates(s *callStack, depth int) {
	now := p.states.At(p.now)
	for len(s.states) < depth { // they were there before states were asked for
		s.states = append(s.states, openStates{entry: now})
	}
	s.states = append(s.states[:depth], openStates{entry: now})
}

// leaveStates notes in p.call what the thread did in the call at the depth, which ends now.
func (p *Pairer) leaveStates(s *callStack, depth int) {
	c := &p.call
	if depth >= len(s.states) { // it was there before states were asked for
		c.States, c.InsideStates = StateTimes{}, StateTimes{}
		return
	}
	o := &s.states[depth]
	c.States, c.InsideStates = p.states.At(p.now).Minus(o.entry), o.inside
	s.states = s.states[:depth]
	if depth > 0 {
		s.states[depth-1].inside = s.states[depth-1].inside.Plus(c.States)
	}
}

// spentElsewhere adds what the thread did since the stack stopped being the current one to what its innermost call didn't do itself.
func (s *callStack) spentElsewhere(now StateTimes) {
	if n := len(s.states); n > 0 {
		s.states[n-1].inside = s.states[n-1].inside.Plus(now.Minus(s.left))
	}
}

// ThreadClock is the StateClock of a thread.
type ThreadClock struct {
	r    *StateReader
	cur  StateInterval
	sum  StateTimes // up to cur.From
	done bool
}

// NewThreadClock returns the clock of a thread whose states r reads, from where it is.
func NewThreadClock(r *StateReader) *ThreadClock { return &ThreadClock{r: r} }

// At implements StateClock: the sums count from the reader's first interval.
func (c *ThreadClock) At(tick uint64) StateTimes {
	for tick >= c.cur.To && !c.done {
		c.sum.Add(c.cur.State, c.cur.To-c.cur.From)
		s, ok := c.r.Next()
		if !ok {
			c.done = true
			s = StateInterval{From: c.cur.To, To: ^uint64(0)}
		}
		c.cur = s
	}
	sum := c.sum
	sum.Add(c.cur.State, tick-min(tick, c.cur.From))
	return sum
}

// State is the interval that the last tick lies in, or the one behind it.
func (c *ThreadClock) State() StateInterval { return c.cur }
