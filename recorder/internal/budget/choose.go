package budget

import (
	"cmp"
	"slices"
)

// Function is what the calls of one came to in a stretch of time.
type Function struct {
	ID    uint32
	Calls uint64
	// P99, Max and Half, which half of the calls did not exceed, are of those that ended, callees included, in nanoseconds; 0 if none did. Self is the time in the
	// function without what it called, of all its calls.
	P99, Max, Half, Self float64
	// Ended is how many of the calls ended, Mean how long one of these took, in nanoseconds, and Beneath how many calls were made within each,
	// at any depth, without the longest of them, see typical.
	Ended         uint64
	Mean, Beneath float64
	// Kept is for functions that are recorded whatever they cost.
	Kept bool
}

// What has been slow is kept before what has not.
const (
	slowP99 = 10_000    // ns, of the 99th percentile of a function's calls
	slowMax = 1_000_000 // ns, of one call
)

// IsSlow says whether the function's calls take, or have once taken, so long that a call more or less costs nothing beside them.
func (f *Function) IsSlow() bool { return f.P99 > slowP99 || f.Max > slowMax }

// Choose divides functions into those that are recorded and those that are not, so that those that are have no more than so many calls, but
// for those that are Kept. If these alone have more the others may have a quarter of what is allowed: they would be missed, and next to nothing
// would be saved. It is in this order that they are taken in:
//
//   - those with the fewest calls, up to a quarter of what is allowed: most functions are among them;
//   - those that are slow as a rule, those with the fewest calls first;
//   - those that have been slow once, and then the others, those first whose calls take long, callees included: so callers come before callees,
//     which give them their place, and what is left out are leaves with many short calls.
func Choose(list []Function, allowed float64) (on, off []Function) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Function) int { return cmp.Or(cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.ID, b.ID)) })
	taken := 0.0
	var rest []Function
	for _, f := range list {
		if f.Kept {
			taken += float64(f.Calls)
			on = append(on, f)
		} else {
			rest = append(rest, f)
		}
	}
	most := allowed - taken
	if most < 0 {
		most = allowed / 4
	}
	spent := 0.0
	take := func(limit float64, is func(f *Function) bool) {
		left := rest[:0]
		for _, f := range rest {
			if is(&f) && spent+float64(f.Calls) <= limit {
				spent += float64(f.Calls)
				on = append(on, f)
				continue
			}
			left = append(left, f)
		}
		rest = left
	}
	take(most/4, func(*Function) bool { return true })
	take(most, func(f *Function) bool { return f.P99 > slowP99 })
	slices.SortStableFunc(rest, func(a, b Function) int { return cmp.Compare(b.Half, a.Half) })
	take(most, (*Function).IsSlow)
	take(most, func(*Function) bool { return true })
	return on, rest
}

// Shares are which shares of the calls, and of the time that functions themselves took, are of some of them.
func Shares(on, off []Function) (calls, time float64) {
	var n, all, self, whole float64
	for _, f := range on {
		n, self = n+float64(f.Calls), self+f.Self
	}
	all, whole = n, self
	for _, f := range off {
		all, whole = all+float64(f.Calls), whole+f.Self
	}
	if all == 0 {
		return 1, 1
	}
	if whole == 0 {
		return n / all, 1
	}
	return n / all, self / whole
}
