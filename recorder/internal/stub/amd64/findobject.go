package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// libgcc's unwinder asks the C library's _dl_find_object (glibc 2.35, GCC 12) for the unwind information of every PC. In the stub of that
// function's entry, PCs in arenas are looked for first, and then the arena's own is the answer. So nothing is registered
// with the unwinder, which would take its locks, run its code in a thread of our choice, and slow down every exception from then on;
// and once the site is restored nothing is left.

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

// findObject appends the look through the list for the PC in RDI, at _dl_find_object's entry; RSI is where the answer goes. The link map
// is null: there is no object. leave appends the function's exit event.
func (c *coder) findObject(leave func()) {
	next, miss, hit := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.saveFlags(0)
	c.Lea(amd64.RCX, amd64.AtAddr(c.routines.unwindList))
	c.Place(next)
	c.Load64(amd64.RAX, amd64.At(amd64.RCX, 0))
	c.Test(amd64.RAX, amd64.RAX)
	c.Jcc(amd64.CondE, miss)
	c.Mov(amd64.RDX, amd64.RDI)
	c.Sub(amd64.RDX, amd64.RAX)
	c.CmpMem(amd64.RDX, amd64.At(amd64.RCX, 8))
	c.Jcc(amd64.CondB, hit)
	c.Lea(amd64.RCX, amd64.At(amd64.RCX, stub.UnwindEntry))
	c.Jmp(next)
	c.Place(miss)
	c.restore(0)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(hit)
		c.Store64Imm(amd64.At(amd64.RSI, foundFlags), 0)
		c.Store64(amd64.At(amd64.RSI, foundStart), amd64.RAX)
		c.Store64(amd64.At(amd64.RSI, foundFrames), amd64.RAX)
		c.Store64Imm(amd64.At(amd64.RSI, foundMap), 0)
		c.Load64(amd64.RDX, amd64.At(amd64.RCX, 8))
		c.Lea(amd64.RDX, amd64.AtIndex(amd64.RDX, amd64.RAX, 1, 0))
		c.Store64(amd64.At(amd64.RSI, foundEnd), amd64.RDX)
		leave()
		c.MovImm32(amd64.RAX, 0)
		c.Ret()
	})
}
