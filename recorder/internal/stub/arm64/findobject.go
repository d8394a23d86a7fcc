package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// libgcc's unwinder asks the C library's _dl_find_object (glibc 2.35, GCC 12) for the unwind information of every PC. In the stub of that
// function's entry, PCs in arenas are looked for first, and then the arena's own is the answer.

// Offsets in struct dl_find_object (dlfcn.h): flags, start and end, the link map, .eh_frame_hdr.
const (
	foundFlags = 8 * iota
	foundStart
	foundEnd
	foundMap
	foundFrames
)

// emitUnwindList appends the list, empty, and returns its address.
func (c *coder) emitUnwindList() uint64 {
	c.Align(stub.UnwindEntry)
	at := c.PC()
	c.Raw(make([]byte, (stub.MaxUnwindEntries+1)*stub.UnwindEntry)...)
	return at
}

// findObject appends the look through the list for the PC in x0, at _dl_find_object's entry; x1 is where the answer goes. The link map is
// null: there is no object. leave appends the function's exit event.
func (c *coder) findObject(leave func()) {
	next, miss, hit, above := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.push(x2, x3)
	c.AdrpTo(x2, c.routines.unwindList)
	c.AddImm(x2, x2, int64(c.routines.unwindList&0xFFF))
	c.Place(next)
	c.LoadPair(x16, x17, arm64.At(x2, 0))
	c.Cbz(x16, miss)
	// Both differences are of addresses, whose upper bits are zero: their signs compare them.
	c.Sub(x3, x0, x16)
	c.Tbnz(x3, 63, above)
	c.Sub(x3, x3, x17)
	c.Tbnz(x3, 63, hit)
	c.Place(above)
	c.AddImm(x2, x2, stub.UnwindEntry)
	c.B(next)
	c.Place(miss)
	missed := c.later()
	c.pop(x2, x3)
	after := c.later()
	c.cold = append(c.cold, func() {
		missed()
		c.Place(hit)
		c.Add(x17, x16, x17)
		c.Store(8, zr, arm64.At(x1, foundFlags))
		c.StorePair(x16, x17, arm64.At(x1, foundStart))
		c.Store(8, zr, arm64.At(x1, foundMap))
		c.Store(8, x16, arm64.At(x1, foundFrames))
		c.pop(x2, x3)
		leave()
		c.Movz(x0, 0, 0)
		c.Ret(lr)
		after()
	})
}
