package reel

import "math"

// notRunningTally is what threads did but run in a function's time, in ticks.
type notRunningTally struct{ total, self, openTotal, openSelf notRunning }

func (n *notRunningTally) merge(o *notRunningTally) {
	n.total, n.self = n.total.plus(o.total), n.self.plus(o.self)
	n.openTotal, n.openSelf = n.openTotal.plus(o.openTotal), n.openSelf.plus(o.openSelf)
}

// notRunning is where time of the function that was not running is added.
func (st *functionTally) notRunning() *notRunningTally {
	if st.states == nil {
		st.states = new(notRunningTally)
	}
	return st.states
}

// spendStates adds what the thread did in a call but run. Of a thread without states nothing is known.
func (st *functionTally) spendStates(c *Call, outermost bool) {
	total := notRunning{}
	if outermost {
		total = notRunningOf(c.Duration(), c.States)
	}
	st.notRunning().add(c.Flags, total, notRunningOf(c.Self(), c.SelfStates()))
}

func (n *notRunningTally) add(flags CallFlags, total, self notRunning) {
	n.total, n.self = n.total.plus(total), n.self.plus(self)
	if flags&Unfinished != 0 {
		n.openTotal, n.openSelf = n.openTotal.plus(total), n.openSelf.plus(self)
	}
}

// splitOf are the parts of a time of so many nanoseconds, of which n was not running. What rounding takes from the others counts as running.
func (f *File) splitOf(ns uint64, n notRunning) StateTimes {
	s := notRunning{f.ticks.Nanoseconds(n.ready), f.ticks.Nanoseconds(n.blocked), f.ticks.Nanoseconds(n.unknown)}
	return s.of(ns)
}

// setStates fills in the parts of a function's times.
func (f *File) setStates(fs *FunctionSummary, st *functionTally) {
	var n notRunningTally
	if st.states != nil {
		n = *st.states
	}
	fs.TotalStates, fs.SelfStates = f.splitOf(fs.Total, n.total), f.splitOf(fs.Self, n.self)
	fs.UnfinishedTotalStates, fs.UnfinishedSelfStates = f.splitOf(fs.UnfinishedTotal, n.openTotal), f.splitOf(fs.UnfinishedSelf, n.openSelf)
}

// wholeClock is the clock of a thread whose states are read to their end.
type wholeClock struct {
	ThreadClock
	minor, major uint64 // page faults that were passed
}

// threadStates has the tally's Pairer split calls of the thread at the index, and says of the thread what needs no reading. It returns nil
// if the thread has no states.
func (t *tally) threadStates(index int, sum *ThreadSummary) *wholeClock {
	thread := &t.f.threads[index]
	if thread.sums != nil {
		sum.Sums, sum.HasSums = *thread.sums, true
	}
	t.split = len(thread.states) > 0
	if !t.split {
		t.pairer.SetStates(nil)
		return nil
	}
	c := &wholeClock{}
	t.f.readWhole(c, thread.Key)
	t.pairer.SetStates(c)
	return c
}

// readWhole makes it the clock of a thread.
func (f *File) readWhole(c *wholeClock, thread uint32) {
	r := f.States(thread)
	r.fault = func(x Fault) {
		if x.Major {
			c.major++
		} else {
			c.minor++
		}
	}
	c.r = r
}

// sumStates says of a thread what it did in all. The clock is nil if it has no states.
func (f *File) sumStates(c *wholeClock, sum *ThreadSummary) {
	ns := f.ticks.Nanoseconds
	from, to := uint64(math.MaxUint64), f.EndOf(&sum.Thread)
	if chunks := f.threads[f.byKey[sum.Key]].chunks; len(chunks) > 0 {
		from = chunks[0].First
	}
	var all StateTimes
	if c != nil {
		all = c.At(math.MaxUint64 - 1)
		from, to = min(from, c.first), max(to, c.last)
		sum.States, sum.HasStates = StateTimes{ns(all.Running), ns(all.Ready), ns(all.Blocked)}, true
		sum.MinorFaults, sum.MajorFaults = c.minor, c.major
	}
	lived := to - min(to, from)
	sum.Unknown = ns(lived - min(lived, all.Known()))
}

// sumGoroutines says of goroutines, and of their threads, what they did in all.
func (t *goroutineTally) sumGoroutines(s *Summary) {
	ns := t.f.ticks.Nanoseconds
	for key, c := range t.states.clocks {
		g := t.sums[key]
		if g == nil {
			continue
		}
		g.States = StateTimes{ns(c.sum.Running), ns(c.sum.Ready), ns(c.sum.Blocked)}
		lived := c.now - c.first
		g.Unknown = ns(lived - min(lived, c.sum.Known()))
	}
	for i := range s.Threads {
		sum := &s.Threads[i]
		thread := &t.f.threads[i]
		if thread.sums != nil {
			sum.Sums, sum.HasSums = *thread.sums, true
		}
		var c *wholeClock
		if len(thread.states) > 0 {
			c = &t.states.thread(sum.Key).wholeClock
		}
		t.f.sumStates(c, sum)
	}
}
