package probe

import (
	"errors"

	"github.com/callreel/callreel/internal/ehtable"
)

// errTooMuch ends the planning of an image whose tables overlap beyond reason.
var errTooMuch = errors.New("callreel: the tables of landing pads are larger than the image")

// markLandingPads marks where exceptions go on: the unwinder jumps there, no instruction does. They stand in the call-site
// tables of the language-specific data that CFI names (.gcc_except_table; Itanium C++ ABI, Exception Handling Tables).
func (im *Image) markLandingPads() error {
	left := 1 << 20
	for _, t := range im.loads {
		left += int(min(t.End-t.Start, 1<<32))
	}
	for _, t := range im.pads {
		left -= im.markPads(t, left)
		if left < 0 {
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

// markPads marks the landing pads of one table and returns how many bytes it has read, which is more than left when it ended
// there. What can't be read gives none.
func (im *Image) markPads(t padTable, left int) (read int) {
	read, _ = ehtable.CallSites(t.lsda, t.start, left, im.Object.ReadAddr, func(c ehtable.CallSite) { im.markTarget(c.Pad) })
	return read
}
