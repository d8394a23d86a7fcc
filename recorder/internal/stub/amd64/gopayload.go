package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// captured appends an event with a payload. What is in registers is stored at once; what isn't is gathered on the stack of callreel's own, as is
// all where the goroutine has changed, or there is no room.
func (g goEvents) captured(c *coder, id uint32, exit bool, spDelta int32, capture *stub.Capture) {
	if capture == nil {
		g.event(c, id, exit, spDelta)
		return
	}
	off := c.NewLabel()
	if !inGoRegisters(capture) {
		c.whileOn(amd64.R12, off, off)
		g.gatherSlowly(c, id, exit, spDelta)
		c.Place(off)
		return
	}
	slow, full := c.NewLabel(), c.NewLabel()
	n := capture.Events()
	g.claim(c, n+1, off, slow)
	c.Mov(amd64.R12, amd64.R15)
	c.SarImm(amd64.R12, ring.ClaimShift)
	c.Lea(amd64.R12, amd64.At(amd64.R12, int32(n)))
	c.Test(amd64.R12, amd64.R12)
	c.Jcc(amd64.CondNS, full)
	c.addressOf(amd64.R15)
	for _, i := range capture.Direct() {
		f := &capture.Fields[i]
		at := amd64.At(amd64.R15, int32(ring.EventSize*(1+f.Place()/ring.PayloadBytes)+f.Place()%ring.PayloadBytes))
		switch o := &f.Value; {
		case o.Origin == stub.OriginVector && o.Wide():
			c.StoreX64(at, o.Vector)
		case o.Origin == stub.OriginVector:
			c.StoreX32(at, o.Vector)
		case o.Wide():
			c.Store64(at, amd64.Reg(o.Reg))
		default:
			c.Store32(at, amd64.Reg(o.Reg))
		}
	}
	for i := range n {
		c.Store32Imm(amd64.At(amd64.R15, int32(ring.EventSize*(1+i)+ring.EventWord)), payloadWord(i, n))
	}
	g.write(c, id, exit, spDelta)
	c.Place(off)
	c.cold = append(c.cold, func() {
		c.Place(full)
		c.fillGoRest()
		c.Place(slow)
		g.gatherSlowly(c, id, exit, spDelta)
		c.Jmp(off)
	})
}

// inGoRegisters says whether all of a payload is in registers that an event leaves alone.
func inGoRegisters(capture *stub.Capture) bool {
	if !capture.Inline() {
		return false
	}
	for i := range capture.Fields {
		switch o := &capture.Fields[i].Value; {
		case o.Memory || o.Origin != stub.OriginReg && o.Origin != stub.OriginVector:
			return false
		case o.Origin == stub.OriginReg && (amd64.Reg(o.Reg) == amd64.R12 || amd64.Reg(o.Reg) == amd64.R13 || amd64.Reg(o.Reg) == amd64.R15 || amd64.Reg(o.Reg) == amd64.RSP):
			return false
		}
	}
	return true
}

// gatherSlowly appends the way by the stack of callreel's own. The address of what gathers the values stands before the place that is gone on at.
func (g goEvents) gatherSlowly(c *coder, id uint32, exit bool, spDelta int32) {
	gather := c.routines.captures.gather[gatherKey{id, exit}]
	back := c.NewLabel()
	c.MovImm64(amd64.R15, uint64(uint32(spDelta))<<32|uint64(word(id, exit)))
	c.LeaLabel(amd64.R12, back)
	c.JmpTo(c.routines.captures.enter)
	c.Raw(byte(gather), byte(gather>>8), byte(gather>>16), byte(gather>>24), byte(gather>>32), byte(gather>>40), byte(gather>>48), byte(gather>>56))
	c.Place(back)
}

// fillGoRest appends the filling of what was left when the claim word was R15, see fillRest. R12 and R15 are clobbered.
func (c *coder) fillGoRest() {
	next, none := c.NewLabel(), c.NewLabel()
	c.Mov(amd64.R12, amd64.R15)
	c.SarImm(amd64.R12, ring.ClaimShift)
	c.addressOf(amd64.R15)
	c.Place(next)
	c.Test(amd64.R12, amd64.R12)
	c.Jcc(amd64.CondNS, none)
	c.Store32Imm(amd64.At(amd64.R15, ring.EventWord), ring.PayloadWord)
	c.Lea(amd64.R15, amd64.At(amd64.R15, ring.EventSize))
	c.Lea(amd64.R12, amd64.At(amd64.R12, 1))
	c.Jmp(next)
	c.Place(none)
}
