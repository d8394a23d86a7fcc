package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A condition is looked at before anything else, so that a call for which it is false costs little. Of a call for which all are true the
// entry is written down on the thread's open stack; its exit is recorded only if it finds that.

// fails is the condition code for which k is false.
func fails(k *stub.Condition) arm64.Cond {
	signed := [...]arm64.Cond{arm64.CondNE, arm64.CondEQ, arm64.CondGE, arm64.CondGT, arm64.CondLE, arm64.CondLT}
	unsigned := [...]arm64.Cond{arm64.CondNE, arm64.CondEQ, arm64.CondHS, arm64.CondHI, arm64.CondLS, arm64.CondLO}
	if k.Value.Signed {
		return signed[k.Comparison]
	}
	return unsigned[k.Comparison]
}

// conditions appends the look at what is in registers: a jump to off if one of them is false. Flags are kept.
func (c *coder) conditions(list []stub.Condition, p place, off arm64.Label) {
	bad := c.NewLabel()
	c.push(x0, x1)
	c.Mrs(x1, arm64.NZCV)
	for i := range list {
		k := &list[i]
		o := &k.Value
		r := o.Reg
		switch {
		case o.Origin == stub.OriginStack || r == sp:
			c.spAtEntry(x16, p.spDelta)
			r = x16
		case r == x1:
			c.Load(8, x16, arm64.At(sp, 8))
			r = x16
		}
		switch {
		case o.Size == 8:
			c.Mov(x16, r)
		case o.Signed:
			c.Sbfx(x16, r, 0, 8*o.Size)
		default:
			c.Ubfx(x16, r, 0, 8*o.Size)
		}
		c.MovImm(x17, uint64(k.With))
		c.Cmp(x16, x17)
		c.BCond(fails(k), bad)
	}
	later := c.later()
	c.Msr(arm64.NZCV, x1)
	c.pop(x0, x1)
	c.cold = append(c.cold, func() {
		later()
		c.Place(bad)
		c.Msr(arm64.NZCV, x1)
		c.pop(x0, x1)
		c.B(off)
	})
}

// ofOpen appends the pushing of an entry whose conditions hold, or, at an exit, a jump to off if the call's entry was not pushed. An entry
// that finds no space on the open stack is dropped.
func (c *coder) ofOpen(p place, off arm64.Label) {
	if !p.exit {
		c.whileOn(off)
	}
	c.MovImmW(x16, word(p.id, false))
	c.push(lr, zr)
	c.spAtEntry(x17, p.spDelta)
	c.BlTo(c.routines.open[btoi(p.exit)])
	c.pop(lr, zr)
	if p.exit {
		c.CbzW(x16, off)
		return
	}
	none := c.NewLabel()
	c.CbzW(x16, none)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(none)
		c.loadAt(x16, c.cfg.Gate)
		c.Tbz(x16, gateOpen, off)
		c.threadID(x17)
		c.AddLSL(x16, x16, x17, slotShift)
		c.AddImm(x16, x16, ring.SlotDropped)
		c.push(x0, x1)
		c.Movz(x0, 1, 0)
		if c.atomics() {
			c.LoadAdd(8, x0, x1, x16, arm64.Order{})
		} else {
			c.exclusively(8, x1, x16, x1, x17, arm64.Order{}, func() { c.Add(x1, x1, x0) })
		}
		c.pop(x0, x1)
		c.B(off)
	})
}
