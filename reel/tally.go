package reel

// tally sums up threads, one after the other.
type tally struct {
	f       *File
	pairer  Pairer
	stats   []functionTally // those of the table, then the unknown ones
	known   int
	first   uint32         // IDs of the table's first block, nearly always its
	block   uint32         // only one: stats starts with them
	unknown map[uint32]int // ID to index in stats
	beside  map[onStack]uint32
	ids     []uint32 // of the unknown ones
	events  uint64
	tooDeep uint64

	hasStates bool // of some thread
	split     bool // states are known of calls that come now
}

// functionTally sums up a function; times are in ticks.
type functionTally struct {
	calls      uint64
	total      uint64
	self       uint64
	max        uint64 // of calls that ended
	openMax    uint64 // of unfinished ones; openTotal and openSelf are their parts of total and self
	openTotal  uint64
	openSelf   uint64
	durations  *histogram
	states     *notRunningTally // nil if all of the time was running
	active     uint32           // calls open now, on the first stack of the thread being read
	unfinished uint64
	implicit   uint64
}

// empty says that nothing was added. Of a part of a recording a function may have time without a call that began there.
func (st *functionTally) empty() bool { return st.calls == 0 && st.total == 0 && st.self == 0 }

// maxUnknown bounds how many functions that the table does not have are told
// apart; the rest count as function 0.
const maxUnknown = 1 << 16

func newTally(f *File) *tally {
	n := f.functions.count
	t := &tally{f: f, stats: make([]functionTally, n), known: n, unknown: make(map[uint32]int), hasStates: f.HasStates()}
	if len(f.functions.blocks) > 0 {
		b := &f.functions.blocks[0]
		t.first, t.block = b.first, uint32(len(b.list))
	}
	return t
}

// at returns the function's tally.
func (t *tally) at(id uint32) *functionTally {
	if i := id - t.first; i < t.block {
		return &t.stats[i]
	}
	return t.atSlowly(id)
}

func (t *tally) atSlowly(id uint32) *functionTally {
	i := t.f.functions.index(id)
	if i < 0 {
		i = t.unknownIndex(id)
	}
	return &t.stats[i]
}

func (t *tally) unknownIndex(id uint32) int {
	i, ok := t.unknown[id]
	if ok {
		return i
	}
	if len(t.ids) >= maxUnknown && id != 0 {
		return t.unknownIndex(0)
	}
	i = len(t.stats)
	t.unknown[id] = i
	t.ids = append(t.ids, id)
	t.stats = append(t.stats, functionTally{})
	return i
}

// id is the ID of the function whose tally is at index i.
func (t *tally) id(i int) uint32 {
	if i >= t.known {
		return t.ids[i-t.known]
	}
	blocks := t.f.functions.blocks
	j := len(blocks) - 1
	for blocks[j].base > i {
		j--
	}
	return blocks[j].first + uint32(i-blocks[j].base)
}

// readThread adds the events of the thread at index to the tally.
func (t *tally) readThread(index int, ahead bool) ThreadSummary {
	thread := &t.f.threads[index]
	t.pairer.Calls, t.pairer.Unmatched, t.pairer.TooDeep = 0, 0, 0
	t.pairer.OnEntry, t.pairer.OnCall = t.enter, t.leave
	t.f.ReadyPairer(&t.pairer, thread.Key)
	t.pairer.SetTime(t.f.FirstTick())
	sum := ThreadSummary{Thread: thread.Thread}
	clock := t.threadStates(index, &sum)
	read := t.f.ReadThread
	if ahead {
		read = t.f.readAhead
	}
	read(thread.Key, func(events []Event, lost bool) bool {
		if lost {
			t.pairer.Lost()
		}
		t.events += uint64(len(events))
		t.pairer.Push(events)
		return true
	})
	t.pairer.Finish(t.f.EndOf(&thread.Thread))
	t.tooDeep += t.pairer.TooDeep
	sum.Calls, sum.UnmatchedExits = t.pairer.Calls, t.pairer.Unmatched
	if t.hasStates {
		t.f.sumStates(clock, &sum)
	}
	return sum
}

// onStack is a function on a stack of a thread other than its first, such as a coroutine's.
type onStack struct {
	stack int
	id    uint32
}

func (t *tally) enter(c *Call) {
	st := t.at(c.Func)
	st.calls++
	if c.Stack == 0 {
		st.active++
		return
	}
	if t.beside == nil {
		t.beside = make(map[onStack]uint32)
	}
	t.beside[onStack{c.Stack, c.Func}]++
}

// leave ends a call. Only what is open on its own stack can be around it: calls of suspended stacks overlap, and aren't made by one another.
func (t *tally) leave(c *Call) {
	st := t.at(c.Func)
	if c.Stack == 0 {
		st.active--
		t.end(st, c, st.active == 0)
		return
	}
	key := onStack{c.Stack, c.Func}
	n := t.beside[key] - 1
	if n == 0 {
		delete(t.beside, key)
	} else {
		t.beside[key] = n
	}
	t.end(st, c, n == 0)
}

// end adds a call that has ended; outermost says that no other call of the function is open around it.
func (t *tally) end(st *functionTally, c *Call, outermost bool) {
	if outermost {
		st.spend(c.Flags, c.Duration(), c.Self())
	} else {
		st.spend(c.Flags, 0, c.Self())
	}
	if t.hasStates && (!t.split || c.States.Running != c.Duration()) {
		st.spendStates(c, outermost)
	}
	t.addDuration(st, c)
}

// spend adds time of a call with those flags.
func (st *functionTally) spend(flags CallFlags, total, self uint64) {
	st.total += total
	st.self += self
	if flags&Unfinished != 0 {
		st.openTotal += total
		st.openSelf += self
	}
}

// addDuration adds how long a call took, and how it ended.
func (t *tally) addDuration(st *functionTally, c *Call) {
	d := c.Duration()
	if c.Flags&Unfinished != 0 {
		st.unfinished++
		st.openMax = max(st.openMax, d)
		return
	}
	st.max = max(st.max, d)
	if c.Flags != 0 {
		st.implicit++
		return
	}
	if st.durations == nil {
		st.durations = new(histogram)
	}
	st.durations.add(d)
}

// merge adds another tally of the same file.
func (t *tally) merge(o *tally) {
	t.hasStates = t.hasStates || o.hasStates
	for i := range o.stats {
		from := &o.stats[i]
		if from.empty() {
			continue
		}
		to := t.at(o.id(i))
		to.calls += from.calls
		to.total += from.total
		to.self += from.self
		to.max = max(to.max, from.max)
		to.openMax = max(to.openMax, from.openMax)
		to.openTotal += from.openTotal
		to.openSelf += from.openSelf
		to.unfinished += from.unfinished
		to.implicit += from.implicit
		if from.states != nil {
			to.notRunning().merge(from.states)
		}
		switch {
		case to.durations == nil:
			to.durations = from.durations
		case from.durations != nil:
			to.durations.merge(from.durations)
		}
	}
}
