package dwarf

import (
	"errors"
	"sync/atomic"

	"github.com/callreel/callreel/object"
)

// Entries are small and what they refer to may be large: without a bound, a file
// whose entries all refer to the same large list or line program would cost the
// product of the two sizes.

// What things take of the allowance of the image, in bytes, with what growing their lists takes meanwhile.
const (
	unitCost     = 1 << 10 // the header of a unit, and its place in the lists
	unitTake     = 1 << 10 // so many at a time
	abbrevCost   = 16      // for each byte of .debug_abbrev, compiled
	functionCost = 128     // of the unit that is read, as are the others
	inlineCost   = 96
	rangeCost    = 40
	fileCost     = 64
	rowCost      = 48
)

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

// tooMuch says that there is no room for what the unit says.
func (r *reader) tooMuch() error {
	limit := r.data.image.Allowance()
	return &object.MemoryError{What: "what one unit says", Want: int64(min(limit.Remaining()/2, 1<<62)) - r.budget, Used: limit.Used(), Limit: limit.Total()}
}
