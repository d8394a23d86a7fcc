package amd64

import (
	"math"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A condition is looked at before anything else, with only RAX and the flags kept, so that a call for which it is false costs little. Of a
// call for which all are true the entry is written down on the thread's open stack; its exit is recorded only if it finds that.

// fails is the condition code for which k is false.
func fails(k *stub.Condition) amd64.Cond {
	signed := [...]amd64.Cond{amd64.CondNE, amd64.CondE, amd64.CondGE, amd64.CondG, amd64.CondLE, amd64.CondL}
	unsigned := [...]amd64.Cond{amd64.CondNE, amd64.CondE, amd64.CondAE, amd64.CondA, amd64.CondBE, amd64.CondB}
	if k.Value.Signed {
		return signed[k.Comparison]
	}
	return unsigned[k.Comparison]
}

// conditions appends the look at them: a jump to skip, with the flags as saveFlags leaves them in RAX, if one is false. Else everything is
// saved.
func (e *capturedEvent) conditions(list []stub.Condition, skip amd64.Label) {
	c := e.coder
	c.Lahf()
	c.SetOAL()
	for i := range list {
		k := &list[i]
		e.compare(k)
		c.Jcc(fails(k), skip)
	}
	c.Store64(amd64.At(amd64.RSP, saveRCX), amd64.RCX)
	c.Store64(amd64.At(amd64.RSP, saveRDX), amd64.RDX)
	c.Store64(amd64.At(amd64.RSP, saveFlags), amd64.RAX)
}

// compare appends the comparison.
func (e *capturedEvent) compare(k *stub.Condition) {
	c, r := e.coder, amd64.Reg(k.Value.Reg)
	switch size := k.Value.Size; {
	case size == 1:
		c.CmpImm8(r, uint8(k.With))
	case size == 2:
		c.CmpImm16(r, uint16(k.With))
	case size == 4:
		c.CmpImm32(r, uint32(k.With))
	case k.With >= math.MinInt32 && k.With <= math.MaxInt32:
		c.CmpImm64(r, int32(k.With))
	default: // the number is behind the stub
		at := c.NewLabel()
		c.CmpLabel(r, at)
		c.cold = append(c.cold, func() {
			c.Place(at)
			v := uint64(k.With)
			c.Raw(byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
		})
	}
}

// ofOpen appends the pushing of an entry whose conditions hold, or, at an exit, a jump to off if the call's entry was not pushed. An entry
// that finds no space on the open stack is dropped.
func (e *capturedEvent) ofOpen() {
	c := e.coder
	if e.exit {
		c.ifNoneOpen(e.off, e.spDelta)
		c.MovImm32(amd64.RCX, word(e.id, false))
		c.Lea(amd64.RDX, amd64.At(amd64.RSP, e.spDelta))
		c.CallTo(c.routines.open.pop)
		c.Test(amd64.RAX, amd64.RAX)
		c.Jcc(amd64.CondE, e.off)
		return
	}
	none := c.NewLabel()
	closed := c.whenClosed(c.PC(), e.off)
	c.whileOn(amd64.RDX, closed, e.off)
	c.MovImm32(amd64.RCX, word(e.id, false))
	c.Lea(amd64.RDX, amd64.At(amd64.RSP, e.spDelta))
	c.CallTo(c.routines.open.push)
	c.Test(amd64.RAX, amd64.RAX)
	c.Jcc(amd64.CondE, none)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(none)
		c.Load64(amd64.RDX, amd64.AtAddr(c.cfg.Gate))
		c.threadID(amd64.RAX)
		c.Test(amd64.RDX, amd64.RDX)
		c.Jcc(amd64.CondLE, e.off)
		c.Shl32Imm(amd64.RAX, 3)
		c.IncMem(amd64.AtIndex(amd64.RDX, amd64.RAX, 8, ring.SlotDropped))
		c.Jmp(e.off)
	})
}
