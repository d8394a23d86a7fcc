package unwind

import (
	"sort"

	"github.com/callreel/callreel/cfi"
)

// Images tells what is mapped where. Its answers may not change as long as a Walker
// uses it, but by Walker.SetImages.
type Images interface {
	// Mapping returns the mapping that holds an address.
	Mapping(addr uint64) (Mapping, bool)
}

// A Mapping is a range of memory [Start, End).
type Mapping struct {
	Start, End uint64
	Exec       bool  // holds code
	Write      bool  // may be a stack
	Image      Image // whose code it is; nil for code that no file is behind, as a JIT compiler's
}

// An Image is what a walk asks of the image that an address belongs to.
type Image interface {
	// Slide is load address minus link address.
	Slide() uint64
	// Row returns the row of call frame information for a link address, and whether it
	// is that of a signal frame; nil and no error when none describes the address. The
	// machine is there to be used, and the row is valid until it is used again.
	Row(m *cfi.Machine, pc uint64) (row *cfi.Row, signal bool, err error)
	// Entry is the link address at which the program, or the loader, starts; 0 for none.
	Entry() uint64
}

// Map is an Images made of a list that is sorted by Start and does not overlap.
type Map []Mapping

// Mapping implements Images.
func (m Map) Mapping(addr uint64) (Mapping, bool) {
	k := sort.Search(len(m), func(k int) bool { return m[k].Start > addr }) - 1
	if k < 0 || addr >= m[k].End {
		return Mapping{}, false
	}
	return m[k], true
}
