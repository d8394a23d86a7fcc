package reel

import (
	"fmt"
	"math"
)

// Budget says what recording was allowed to cost, what it did cost, and how much was recorded for that. Costs are shares of the program's own
// processor time: 0.02 is 2 %.
type Budget struct {
	// Wanted is what it was allowed to cost.
	Wanted float64
	// Measured is what it cost by the last measurement, give or take Uncertainty; by chance it may be a little less than nothing. Both are 0 if
	// nobody has measured.
	Measured, Uncertainty float64
	// CallsShare and TimeShare are which shares, 0 to 1, of all calls, and of the time that functions take themselves, are recorded by the last
	// sample. Both are 0 if there was none.
	CallsShare, TimeShare float64
	// FunctionsOff is how many functions were off then, and SitesRemoved how many places of the program were put back to what they were for it.
	FunctionsOff, SitesRemoved uint64
}

// Sampled says whether shares are known.
func (b *Budget) Sampled() bool { return b.CallsShare > 0 || b.TimeShare > 0 }

// HasMeasured says whether it was measured what recording costs.
func (b *Budget) HasMeasured() bool { return b.Measured != 0 || b.Uncertainty != 0 }

// maxCost is the most that recording may be said to cost: ten thousand times what the program needs.
const maxCost = 1e4

// check says what is wrong with it. Comparisons are such that NaN is refused.
func (b *Budget) check() error {
	switch {
	case !(b.Wanted >= 0 && b.Wanted <= maxCost), !(math.Abs(b.Measured) <= maxCost), !(b.Uncertainty >= 0 && b.Uncertainty <= maxCost):
		return fmt.Errorf("a budget of %v of which %v ± %v were used", b.Wanted, b.Measured, b.Uncertainty)
	case !(b.CallsShare >= 0 && b.CallsShare <= 1), !(b.TimeShare >= 0 && b.TimeShare <= 1):
		return fmt.Errorf("shares of %v and %v were recorded", b.CallsShare, b.TimeShare)
	}
	return nil
}

// Budget tells of the budget; it may be told again while recording, and the last one counts.
func (w *Writer) Budget(b Budget) error {
	if err := b.check(); err != nil {
		return fmt.Errorf("reel: %s: %w", w.name, err)
	}
	return w.put(frame{kind: KindBudget, count: 1}, appendBudget(make([]byte, frameSize, frameSize+96), &b))
}

// Budget returns what was last told of the budget; ok is false if there was none.
func (f *File) Budget() (b Budget, ok bool) {
	if f.budget == nil {
		return Budget{}, false
	}
	return *f.budget, true
}

// Field tags of the budget, as those of the header: what a reader does not know it skips. Shares are the bits of a float64.
const (
	tagWanted = iota + 1
	tagMeasured
	tagUncertainty
	tagCallsShare
	tagTimeShare
	tagFunctionsOff
	tagSitesRemoved
)

func appendBudget(p []byte, b *Budget) []byte {
	for i, v := range [...]float64{b.Wanted, b.Measured, b.Uncertainty, b.CallsShare, b.TimeShare} {
		p = appendTagged(p, uint64(tagWanted+i), math.Float64bits(v))
	}
	p = appendTagged(p, tagFunctionsOff, b.FunctionsOff)
	return appendTagged(p, tagSitesRemoved, b.SitesRemoved)
}

func parseBudget(payload []byte) (*Budget, error) {
	b := &Budget{}
	d := fields{b: payload}
	for d.more() {
		tag, v := d.tagged()
		switch tag {
		case tagWanted:
			b.Wanted = math.Float64frombits(v.number())
		case tagMeasured:
			b.Measured = math.Float64frombits(v.number())
		case tagUncertainty:
			b.Uncertainty = math.Float64frombits(v.number())
		case tagCallsShare:
			b.CallsShare = math.Float64frombits(v.number())
		case tagTimeShare:
			b.TimeShare = math.Float64frombits(v.number())
		case tagFunctionsOff:
			b.FunctionsOff = v.number()
		case tagSitesRemoved:
			b.SitesRemoved = v.number()
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return b, b.check()
}
