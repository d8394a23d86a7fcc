package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// The caller of a function whose result is in memory says in x8 where, and the function needn't leave that anywhere (AAPCS64 §6.9). So the entry's
// event notes it for the return's, in a place of the thread's that functions share. The stack pointer and the word say whose it is.
//
// What a signal handler does between any two instructions here: it may call the same function, or one that shares the place, and overwrite all of
// it. The address is stored last: so where the stack pointer is a call's, which no other that is open has, the address is that call's. A call whose
// place was overwritten meanwhile has no result.

// resultAt is where in the thread's argument buffer a function's place is.
func resultAt(id uint32) int32 {
	return ring.ArgsResults + int32(id%ring.ResultSlots)<<ring.ResultShift
}

// noteResult appends the noting of where the result of a call is to go whose entry is at p. x17 is clobbered.
func (c *coder) noteResult(p place) {
	at := func(off int32) arm64.Mem { return arm64.At(x16, off) }
	c.push(x16, zr)
	c.threadID(x17)
	c.MovImm(x16, c.cfg.Args+uint64(resultAt(p.id)))
	c.AddLSL(x16, x16, x17, ring.ArgsShift)
	c.spAtEntry(x17, p.spDelta)
	c.Store(4, x17, at(ring.ResultSP))
	c.MovImmW(x17, word(p.id, true))
	c.Store(4, x17, at(ring.ResultWord))
	c.Store(8, x8, at(ring.ResultAddr))
	c.pop(x16, zr)
}

// result appends the loading of the address that the call's entry has noted into x0, or a jump to bad if there is none. x1 is clobbered.
func (g *gatherer) result(bad arm64.Label) {
	at := func(off int32) arm64.Mem { return inArgs(resultAt(g.id) + off) }
	g.Load(4, x1, at(ring.ResultSP))
	g.EorW(x1, x1, rSP)
	g.CbnzW(x1, bad)
	g.Load(4, x1, at(ring.ResultWord))
	g.MovImmW(x0, word(g.id, true))
	g.EorW(x1, x1, x0)
	g.CbnzW(x1, bad)
	g.Load(8, x0, at(ring.ResultAddr))
}
