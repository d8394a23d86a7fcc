package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A recording is paused by words that every event looks at behind the gate, so that gates say nothing of it: who opens and closes them needs to
// know of no pause, and a pause is one store by whoever wants it. The recorder's word is in the ring memory, which all processes of a family
// share. The program's own is a byte of that word, too, which only the process writes that recording began with; where children are
// followed each has a word of its own, see stub.Config.Held.

// paused is the word of the ring memory, where a register has the slots.
func paused(slots amd64.Reg) amd64.Mem { return amd64.At(slots, ring.PausedOff-ring.SlotsOff) }

// unlessHeld appends a jump to off while the process has paused its recording itself, where children are followed. The register and flags
// are clobbered.
func (c *coder) unlessHeld(scratch amd64.Reg, off amd64.Label) {
	if c.cfg.Held != 0 && !c.heedless {
		c.MovImm64(scratch, c.cfg.Held)
		c.CmpMem32Imm8(amd64.At(scratch, 0), 0)
		c.Jcc(amd64.CondNE, off)
	}
}

// unlessPaused appends a jump to off while it is paused otherwise. Flags are clobbered.
func (c *coder) unlessPaused(slots amd64.Reg, off amd64.Label) {
	if !c.heedless {
		c.CmpMem32Imm8(paused(slots), 0)
		c.Jcc(amd64.CondNE, off)
	}
}

// whileOn appends a jump to closed while the gate is closed, and one to off while recording is paused. The register and flags are clobbered.
func (c *coder) whileOn(scratch amd64.Reg, closed, off amd64.Label) {
	c.unlessHeld(scratch, off)
	c.Load64(scratch, amd64.AtAddr(c.cfg.Gate))
	c.Test(scratch, scratch)
	c.Jcc(amd64.CondLE, closed)
	c.unlessPaused(scratch, off)
}

// hold appends the stores by which the process pauses its recording, or lets it go on. A forked child that isn't followed has the ring's header,
// but no business there: its gate's page, which is wiped, tells. RDX and flags are clobbered.
func (c *coder) hold(on bool) {
	child := c.NewLabel()
	if c.cfg.Held != 0 {
		c.MovImm64(amd64.RDX, c.cfg.Held)
		c.Store8Imm(amd64.At(amd64.RDX, 0), uint8(btoi(on)))
		c.MovImm64(amd64.RDX, c.cfg.Ring)
	} else {
		c.Load64(amd64.RDX, amd64.AtAddr(c.cfg.Gate+stub.GateOwn))
		c.Test(amd64.RDX, amd64.RDX)
		c.Jcc(amd64.CondE, child)
		c.Store8Imm(amd64.At(amd64.RDX, ring.PausedOff+ring.PausedSelf), uint8(btoi(on)))
	}
	if !on {
		c.Store8Imm(amd64.At(amd64.RDX, ring.PausedOff+ring.PausedAtFirst), 0)
	}
	c.Place(child)
}

// goSays appends what a Go program's functions do at their entry that pause its recording, or let it go on: what hold does, and a marker's event.
func (c *coder) goSays(h plan.Hook) {
	pause := h == plan.HookPause
	id := c.cfg.GoSays[btoi(!pause)]
	if c.cfg.Go == nil || id == 0 {
		return
	}
	hold := func() {
		child := c.NewLabel()
		c.Load64(amd64.R12, amd64.AtAddr(c.cfg.Gate+stub.GateOwn))
		c.Test(amd64.R12, amd64.R12)
		c.Jcc(amd64.CondE, child)
		c.Store8Imm(amd64.At(amd64.R12, ring.PausedOff+ring.PausedSelf), uint8(btoi(pause)))
		if !pause {
			c.Store8Imm(amd64.At(amd64.R12, ring.PausedOff+ring.PausedAtFirst), 0)
		}
		c.Place(child)
	}
	if pause {
		hold()
	}
	c.heedless = true
	c.lang.event(c, id, false, -belowMark)
	c.heedless = false
	if !pause {
		hold()
	}
}
