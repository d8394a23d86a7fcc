package reel

// liveLane pairs the events of a thread, or of a goroutine, and adds its calls to the tally.
type liveLane struct {
	tally   *LiveTally
	pairer  Pairer
	credits []liveCredit // by stack
}

// liveCredit is what the outermost calls of a stack have been credited so far, of time of their own.
type liveCredit struct{ self []uint64 }

func (l *liveLane) begin(t *LiveTally) {
	l.tally = t
	l.pairer.OnEntry, l.pairer.OnCall = l.enter, l.leave
	if t.routine != nil {
		l.pairer.SetTops(nil)
	}
}

// push takes the lane's next events, up to the first that is later than limit, or that names a goroutine in a Go program, and returns how
// many it has taken, and how many entries there were. It is [Pairer.Push] with the tally in it: calling OnEntry and OnCall for each
// call would double what that takes. What is not as usual goes the Pairer's own way.
func (l *liveLane) push(events []Event, limit uint64) (taken int, entries uint64) {
	if len(events) == 0 {
		return 0, 0
	}
	p, t := &l.pairer, l.tally
	if len(p.stacks) == 0 {
		p.begin(events[0].SP)
	}
	open, calls := p.open, p.Calls
	if p.MaxOpen = min(DefaultMaxOpen, open+maxLiveOpen-t.open); p.MaxOpen == 0 {
		p.MaxOpen = -1 // 0 would be the default
	}
	s, now := &p.stacks[p.cur], p.now
	credited := l.credited(p.cur)
	functions := t.sums.functions
	i := 0
	for ; i < len(events); i++ {
		e := &events[i]
		if e.Time > limit {
			break
		}
		before := now
		now = max(now, e.Time)
		n := len(s.calls)
		if e.Word&1 == 0 {
			above := s.top + 1
			if n > 0 {
				above = s.calls[n-1].sp
			}
			if e.SP-p.floor < above-p.floor && p.open < p.MaxOpen {
				p.Calls++
				id := e.Word >> 1
				if int(id) >= len(functions) || functions[id] == nil {
					id = t.meet(id)
					functions = t.sums.functions
				}
				f := functions[id]
				f.Calls++
				if i+1 < len(events) {
					// Half of all calls make no further one.
					if x := &events[i+1]; x.Word == e.Word|1 && x.SP == e.SP && x.Time <= limit {
						took := max(x.Time, now) - now
						now += took
						if n > 0 {
							s.calls[n-1].inside += took
						}
						f.ended(took, took)
						i++
						continue
					}
				}
				p.open++
				if n == cap(s.calls) {
					s.calls = append(s.calls, openCall{})
				}
				s.calls = s.calls[:n+1]
				o := &s.calls[n]
				o.sp, o.id, o.start, o.inside, o.losses, o.calls = e.SP, e.Word>>1, now, 0, p.losses, uint32(p.Calls)
				continue
			}
		} else if n > credited {
			if top := &s.calls[n-1]; e.SP == top.sp && e.Word>>1 == top.id && top.losses == p.losses {
				s.calls = s.calls[:n-1]
				p.open--
				took := now - top.start
				if n > 1 {
					s.calls[n-2].inside += took
				}
				id := top.id
				if int(id) >= len(functions) || functions[id] == nil {
					id = t.meet(id)
					functions = t.sums.functions
				}
				f := functions[id]
				f.ended(took, took-min(top.inside, took))
				f.beneath.add(took, uint64(uint32(p.Calls)-top.calls))
				continue
			}
		}
		if t.routine != nil && e.Word&switchMask == SwitchWord {
			now = before
			break
		}
		p.now = now
		p.pushSlowly(e, 0)
		s = &p.stacks[p.cur]
		credited = l.credited(p.cur)
		functions = t.sums.functions
	}
	p.now = now
	t.open += p.open - open
	t.ignored += p.TooDeep
	p.TooDeep = 0
	return i, p.Calls - calls
}

func (l *liveLane) enter(c *Call) { l.tally.at(c.Func).Calls++ }

func (l *liveLane) leave(c *Call) {
	f := l.tally.at(c.Func)
	self := c.Self()
	if c.Depth < l.credited(c.Stack) {
		credit := &l.credits[c.Stack]
		self -= min(self, credit.self[c.Depth])
		credit.self = credit.self[:c.Depth]
	}
	f.Ended++
	f.Self += self
	d := c.Duration()
	f.Max = max(f.Max, d)
	if c.Complete() {
		f.durations.add(d)
	}
}

// credited is how many of the stack's calls, the outermost, have been credited with time.
func (l *liveLane) credited(stack int) int {
	if stack >= len(l.credits) {
		return 0
	}
	return len(l.credits[stack].self)
}

// settle credits the calls that are open with the time until tick, or until the lane's last event if that was later.
func (l *liveLane) settle(tick uint64) {
	p := &l.pairer
	now := max(p.now, tick)
	for len(l.credits) < len(p.stacks) {
		l.credits = append(l.credits, liveCredit{})
	}
	for i := range p.stacks {
		s, credit := &p.stacks[i], &l.credits[i]
		inner := uint64(0) // how long the call above has been open, or the stack not been the current one
		if i != p.cur {
			inner = now - min(now, s.since)
		}
		credited := len(credit.self)
		for len(credit.self) < len(s.calls) {
			credit.self = append(credit.self, 0)
		}
		for d := len(s.calls) - 1; d >= 0; d-- {
			o := &s.calls[d]
			took := now - min(o.start, now)
			self := took - min(took, o.inside)
			self -= min(self, inner)
			inner = took
			f := l.tally.at(o.id)
			f.Open++
			f.Max = max(f.Max, took)
			if d >= credited {
				credit.self[d] = 0
			}
			if before := credit.self[d]; self > before {
				f.Self += self - before
				credit.self[d] = self
			}
		}
		if size := cap(s.calls); size > keptCalls && size > 4*len(s.calls) {
			s.calls = append(make([]openCall, 0, len(s.calls)+keptCalls/2), s.calls...)
			credit.self = append(make([]uint64, 0, len(s.calls)), credit.self...)
		}
	}
}

// finish ends the open calls.
func (l *liveLane) finish(tick uint64) {
	l.tally.open -= l.pairer.open
	l.pairer.Finish(tick)
}
