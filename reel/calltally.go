package reel

// CallTally sums up calls by function as [Summarize] does with all of a reel's. One is for one goroutine at a time; several of
// the same file can be merged.
type CallTally struct{ t *tally }

// NewCallTally returns an empty tally of calls in f.
func NewCallTally(f *File) *CallTally {
	t := newTally(f)
	t.hasStates = false // until SpentStates is called
	return &CallTally{t}
}

// Counted adds a call: to how often its function was called, to its longest call and, if it is complete, to its percentiles.
func (c *CallTally) Counted(call *Call) {
	st := c.t.at(call.Func)
	st.calls++
	c.t.addDuration(st, call)
}

// Spent adds time to a function, in ticks: total in it, 0 where another call of it is open around this one, and self of that
// outside of the calls that it made.
func (c *CallTally) Spent(function uint32, total, self uint64) {
	c.t.at(function).spend(0, total, self)
}

// SpentUnfinished is Spent of a call that is unfinished.
func (c *CallTally) SpentUnfinished(function uint32, total, self uint64) {
	c.t.at(function).spend(Unfinished, total, self)
}

// SpentStates is Spent, or SpentUnfinished, of a time that is split by what the thread did, in ticks; what is missing to the whole isn't
// known. Once it is called it is to be called for all time: that of which nothing is known, too.
func (c *CallTally) SpentStates(function uint32, unfinished bool, total, self uint64, totalStates, selfStates StateTimes) {
	flags := CallFlags(0)
	if unfinished {
		flags = Unfinished
	}
	st := c.t.at(function)
	st.spend(flags, total, self)
	c.t.hasStates = true
	if totalStates.Running != total || selfStates.Running != self {
		st.notRunning().add(flags, notRunningOf(total, totalStates), notRunningOf(self, selfStates))
	}
}

// Merge adds another tally of the same file, which must not be used any more.
func (c *CallTally) Merge(o *CallTally) { c.t.merge(o.t) }

// Functions lists the functions that were called, or that time was spent in, by the Total
// of calls that ended, longest first, if opt doesn't say something else.
func (c *CallTally) Functions(opt SummaryOptions) []FunctionSummary {
	list, _ := listFunctions(c.t.f, c.t, &opt)
	return list
}
