package budget

import "math"

// What a call's events cost differs by a factor of four between programs: besides the stub's own instructions there is what they push out of
// caches and predictors. So it is measured on the program itself. Functions that stay on are the meter of its work: how many of their calls
// there are for a second of processor time, while all is on and while the others are off. The difference is what the others cost.

// The price of a call, in nanoseconds of processor time.
const (
	firstPrice = 100 // until it is measured: high, since what is left out is soon had back
	leastPrice = 15  // what a stub takes with everything in the nearest cache
	mostPrice  = 200
)

// load is what was counted in a stretch of time.
type load struct {
	ticks   float64 // of the clock, for how long
	cpu     float64 // seconds of processor time that the process used
	kept    float64 // calls of functions that stay on
	all     float64 // calls of all that were on, those that were dropped included
	dropped float64 // of these: of which functions isn't known
}

// price estimates what a call costs, from a stretch in which all was on and one in which only some was, and says how sure that is: the
// estimate's standard error. It returns false if that can't be told: too little was done, or the work was of another kind.
func price(before, after load) (ns, sure float64, ok bool) {
	const few = 200 // calls, of which the square root is too large a part
	if before.cpu <= 0 || after.cpu <= 0 || before.kept < few || after.kept < few || before.dropped+after.dropped > 0 {
		return 0, 0, false
	}
	work0, work1 := before.cpu/before.kept, after.cpu/after.kept // seconds for each kept call
	removed := before.all/before.kept - after.all/after.kept     // calls fewer for each kept call
	if removed < 0.5 {
		return 0, 0, false
	}
	ns = (work0 - work1) / removed * 1e9
	spread := work0*math.Sqrt(1/before.kept) + work1*math.Sqrt(1/after.kept)
	sure = spread / removed * 1e9
	if ns < 0 || sure > ns { // the load has changed meanwhile
		return 0, 0, false
	}
	return min(max(ns, leastPrice), mostPrice), sure, true
}
