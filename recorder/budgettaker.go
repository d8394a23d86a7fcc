package recorder

import "github.com/callreel/callreel/reel"

// BudgetTaker is a Destination that is also told how a budget is kept while it is: others are told nothing of it. Its methods may be called by
// another goroutine than the others, after Begin and before Close.
type BudgetTaker interface {
	// FunctionsOff tells of functions that go off, with To 0, and again when they come on; not of those that are off as recording ends.
	FunctionsOff(list []FunctionOff) error
	// Budget tells how it is kept, some times a second.
	Budget(b reel.Budget) error
}

// FunctionOff is a time in which a function's calls are not recorded for what they cost.
type FunctionOff struct {
	reel.Off
	// PerSecond is how many calls of it there were in a second when it was last recorded.
	PerSecond float64
	last      bool // it was off up to the end
}
