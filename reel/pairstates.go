package reel

// StateClock says what a thread, or a goroutine, has done up to a moment. It is asked with ticks that don't go back.
type StateClock interface {
	// At returns what it has done up to the tick, since some moment that doesn't change.
	At(tick uint64) StateTimes
	// State is the interval that the last tick asked for lies in, or the one behind it.
	State() StateInterval
}

// notRunning is what a thread did but run, in ticks; unknown is time of which it isn't known what it did. What isn't the case in most calls is
// cheaper to keep than what is: nearly all events come while the thread runs, and then nothing changes here.
type notRunning struct{ ready, blocked, unknown uint64 }

func (n notRunning) plus(o notRunning) notRunning {
	return notRunning{n.ready + o.ready, n.blocked + o.blocked, n.unknown + o.unknown}
}

func (n notRunning) minus(o notRunning) notRunning {
	return notRunning{n.ready - o.ready, n.blocked - o.blocked, n.unknown - o.unknown}
}

// of splits so many ticks, of which n was not running.
func (n notRunning) of(ticks uint64) StateTimes {
	return StateTimes{Running: ticks - min(ticks, n.ready+n.blocked+n.unknown), Ready: n.ready, Blocked: n.blocked}
}

// notRunningOf is what is missing of so many ticks to the time that the thread ran.
func notRunningOf(ticks uint64, t StateTimes) notRunning {
	return notRunning{t.Ready, t.Blocked, ticks - min(ticks, t.Known())}
}

// spentStates is what a Pairer keeps of what its thread did.
type spentStates struct {
	notRunning        // since the Pairer began
	until      uint64 // before this tick the thread runs, as far as it was not asked; 0 if it doesn't
	asked      uint64 // tick at which the clock was asked last
	told       StateTimes
	begun      bool // it was
}

// openStates is what is kept of an open call: what its thread had not run when it began, and what of that belongs to Inside. Calls get
// one when the thread has not run while they were open: those that have none are the innermost ones of their stack.
type openStates struct{ entry, inside notRunning }

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
	p.spent.begun, p.spent.until = false, 0
	p.call.States, p.call.InsideStates = StateTimes{}, StateTimes{}
}

// Did is what the thread, or the goroutine, did up to where the Pairer is, since some moment that doesn't change; nothing where that isn't
// known. It may be asked in OnEntry, OnCall and OnSwitch.
func (p *Pairer) Did() StateTimes {
	if p.states == nil {
		return StateTimes{}
	}
	return p.states.At(p.now)
}

// settle asks what the thread did since it was asked last.
func (p *Pairer) settle() {
	t, w := p.states.At(p.now), &p.spent
	if !w.begun {
		w.begun = true
		p.beginStates()
	} else {
		d := notRunningOf(p.now-w.asked, t.Minus(w.told))
		if d != (notRunning{}) {
			if len(p.stacks) > 0 {
				p.stacks[p.cur].noteEntries(w.notRunning)
			}
			w.notRunning = w.plus(d)
		}
	}
	w.asked, w.told, w.until = p.now, t, 0
	if s := p.states.State(); s.State == StateRunning && s.From <= p.now {
		w.until = s.To
	}
}

// beginStates says of calls that are open already that nothing is known of the time before.
func (p *Pairer) beginStates() {
	for i := range p.stacks {
		s := &p.stacks[i]
		s.left, s.states = p.spent.notRunning, s.states[:0]
		for k := range s.calls {
			o := &s.calls[k]
			st := openStates{entry: p.spent.notRunning, inside: notRunning{unknown: o.inside}}
			st.entry.unknown -= p.now - min(p.now, o.start)
			s.states = append(s.states, st)
		}
		if n := len(s.calls); n > 0 && i != p.cur { // it waits for another stack, as waited will count
			s.states[n-1].inside.unknown += p.now - min(p.now, s.since)
		}
	}
}

// noteEntries is called before the thread's not running changes: open calls that have begun since the last change began with what it is.
func (s *callStack) noteEntries(n notRunning) {
	for len(s.states) < len(s.calls) {
		s.states = append(s.states, openStates{entry: n})
	}
}

// leaveStates notes in p.call what the thread did in the call at the depth, which took so long and ends now.
func (p *Pairer) leaveStates(s *callStack, depth int, took, inside uint64) {
	c := &p.call
	if depth >= len(s.states) {
		c.States, c.InsideStates = StateTimes{Running: took}, StateTimes{Running: inside}
		return
	}
	o := &s.states[depth]
	whole := p.spent.minus(o.entry)
	c.States, c.InsideStates = whole.of(took), o.inside.of(inside)
	s.states = s.states[:depth]
	if depth > 0 {
		s.states[depth-1].inside = s.states[depth-1].inside.plus(whole)
	}
}

// spentElsewhere adds what the thread did since the stack stopped being the current one to what its innermost call didn't do itself.
func (s *callStack) spentElsewhere(now notRunning) {
	if n := len(s.states); n > 0 {
		s.states[n-1].inside = s.states[n-1].inside.plus(now.minus(s.left))
	}
}

// ThreadClock is the StateClock of a thread.
type ThreadClock struct {
	r    *StateReader
	cur  StateInterval
	sum  StateTimes // up to cur.From
	done bool

	first, last uint64 // where states begin, and where they end, as far as they were read
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
		} else if c.last = s.To; c.first == 0 {
			c.first = s.From
		}
		c.cur = s
	}
	sum := c.sum
	sum.Add(c.cur.State, tick-min(tick, c.cur.From))
	return sum
}

// State is the interval that the last tick lies in, or the one behind it.
func (c *ThreadClock) State() StateInterval { return c.cur }
