package plan

import (
	"errors"

	"github.com/callreel/callreel/internal/ehtable"
)

// errTooMuch ends the planning of an image whose tables overlap beyond reason.
var errTooMuch = errors.New("callreel: the tables of landing pads are larger than the image")

// markLandingPads marks where exceptions go on: the unwinder jumps there, no instruction does. They are in the call-site
// tables of the language-specific data that CFI names (.gcc_except_table; Itanium C++ ABI, Exception Handling Tables).
func (im *Image) markLandingPads() error {
	budget := 1 << 20
	for _, t := range im.loads {
		budget += int(min(t.End-t.Start, 1<<32))
	}
	for _, t := range im.pads {
		budget -= im.markPads(t, budget)
		if budget < 0 {
			return errTooMuch
		}
	}
	return nil
}

// padTable is a table of landing pads.
type padTable struct {
	start uint64 // of the code that its FDE describes
	lsda  uint64 // where it is
}

// markPads marks the landing pads of one table and returns how many bytes it has read, which is more than the budget when it ended
// there. What can't be read gives none.
func (im *Image) markPads(t padTable, budget int) (read int) {
	read, _ = ehtable.CallSites(t.lsda, t.start, budget, im.Object.ReadAddr, func(c ehtable.CallSite) { im.markTarget(c.Pad) })
	return read
}
