package arm64

import (
	"encoding/binary"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// Span is which addresses an arena with the stubs of these functions has to have in the reach of a branch, of their images, which occupy those from
// lo to hi: the sites, and where the instructions lead that run in stubs. All else of an image, such as its data, is loaded by ADRP or by address.
func (Generator) Span(fns []stub.Probe, lo, hi uint64) (from, to uint64) {
	from, to = ^uint64(0), 0
	take := func(addr uint64) { from, to = min(from, addr), max(to, addr) }
	for i := range fns {
		fn := &fns[i]
		for _, s := range fn.Patched() {
			at := s.Addr + fn.Slide
			take(at)
			take(at + 4)
			b := fn.Image.Code(s.Addr, 4)
			if b == nil {
				return lo, hi // Compile refuses it
			}
			switch w := binary.LittleEndian.Uint32(b); kindOf(w) {
			case jump, call_, condJump:
				take(targetOf(w, at))
			}
		}
	}
	if from > to {
		return lo, hi
	}
	return from, to
}
