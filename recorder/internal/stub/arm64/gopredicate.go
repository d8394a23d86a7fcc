package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Of a Go function the table of the open calls has the goroutine's ID and where its stack pointer is from the end of its stack, as events have: so
// a call is found again on another thread, and on a stack that has moved.

// goPredicates appends the call of what tests them, behind the event of a Go function. It uses the registers of events.
func (c *coder) goPredicates(p place, w stub.Predicates) {
	off := c.NewLabel()
	c.unlessOff(off)
	c.MovImm(slowWord, uint64(uint32(p.spDelta))<<32|uint64(word(p.id, false)))
	c.MovImmW(goOther, uint32(w.Count)<<(predicateCount-predicateFirst)|uint32(w.First))
	c.Adr(slowReturn, off)
	c.BTo(c.routines.goPredicates[btoi(p.exit)])
	c.Place(off)
}

// emitGoPredicates appends what they jump to, at an entry or an exit, with slowWord and slowReturn as for the slow path, and in goOther which predicates
// are the function's.
func (c *coder) emitGoPredicates(exit bool) uint64 {
	c.Align(64)
	addr := c.PC()
	skip := c.NewLabel()
	c.toOwnStack(skip)
	c.push(lr, zr)
	c.slowEventSP(x17)
	c.MovW(x16, slowWord)
	c.OrrLSL(x16, x16, goOther, predicateFirst)
	c.BlTo(c.routines.predicates[btoi(exit)])
	c.pop(lr, zr)
	c.fromOwnStack(skip)
	return addr
}

// caller loads what a call belongs to: its thread, whose ID is in x1, or in a Go program its goroutine.
func (w *predicatePath) caller() {
	if w.cfg.Go != nil {
		w.Load(8, rCtx, arm64.At(goG, w.cfg.Go.GoID))
		return
	}
	w.MovW(rCtx, x1)
}
