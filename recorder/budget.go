package recorder

import "time"

// Budget bounds what recording costs: functions that cost most and tell least are not recorded then, and their text is as if nobody did.
type Budget struct {
	// Share is what recording may cost, of the processor time that the process uses: 0.02 is 2 %. 0 is for no budget.
	Share float64
	// Keep are globs of functions that are recorded whatever they cost, besides those that Armed, Args, Returns and Filters.Inside name.
	Keep []string
	// CountOff has the calls of functions that are not recorded counted by samples.
	CountOff bool
	// Naps lets who reads the rings keep its processor of Go's scheduler while it rests for milliseconds, so that Go's monitor isn't woken each
	// time. Who sets it has given the program one more of these for each recording, by runtime.GOMAXPROCS.
	Naps bool
}

// LeastBudget is the smallest Budget.Share: below it nothing could be measured.
const LeastBudget = 0.001

// BudgetKept is how a budget was kept.
type BudgetKept struct {
	Wanted, Measured float64 // shares of the process's processor time
	// Sure is the standard error of Measured; 0 if what a call costs could not be measured on this process.
	Sure float64
	// Price is what a call costs, in nanoseconds of processor time.
	Price                 float64
	Functions             int     // that were off in the end
	Sites                 int     // of them, that were taken out
	CallsShare, TimeShare float64 // which share of calls, and of functions' own time, is recorded, by the last sample
	Seen                  uint64  // calls of functions that are off that were seen on stacks of threads that did something for long
	Samples, Stops        int
	Stopped, LongestStop  time.Duration
}
