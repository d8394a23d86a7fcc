package dwarf

import (
	"errors"
	"sync/atomic"
)

// Entries are small and what they refer to may be large: without a bound, a file
// whose entries all refer to the same large list or line program would cost the
// product of the two sizes.

var (
	errRangeWork = errors.New("lists of ranges are used far too often")
	errLineWork  = errors.New("line tables overlap or are used far too often")
)

const (
	// workFactor is how many times over a section is read for all units together.
	// Compilers let a few units share a line table, never many a large one.
	workFactor = 16
	workFloor  = 1 << 20

	// rangeFactor is how many bytes of range lists a unit may read for each of its
	// own. An entry with a list takes ten bytes at least, a list a dozen on average.
	rangeFactor = 64
	rangeFloor  = 4096
)

// workLimit counts work done for different units against a limit.
type workLimit struct {
	limit uint64
	done  atomic.Uint64
}

// workCharge remembers whether a unit's work has been counted, and was allowed, so
// that a unit may be read again.
type workCharge struct{ state atomic.Int32 }

const (
	chargeNone = iota
	chargeAllowed
	chargeRefused
)

// charge counts n for a unit, once, and says whether it is allowed.
func (l *workLimit) charge(c *workCharge, n uint64) bool {
	if state := c.state.Load(); state != chargeNone {
		return state == chargeAllowed
	}
	state := int32(chargeAllowed)
	if l.done.Add(n) > l.limit {
		state = chargeRefused
	}
	c.state.CompareAndSwap(chargeNone, state)
	return c.state.Load() == chargeAllowed
}

// spend counts n bytes of range lists for the unit that is read.
func (r *reader) spend(n int) bool {
	r.rangeWork -= int64(n)
	return r.rangeWork >= 0
}
