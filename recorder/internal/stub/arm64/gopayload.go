package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// goCaptured appends an event with a payload of a Go function. What can be had without a system call is stored at once, by the registers that an
// event uses anyway; the rest is gathered on the stack of callreel's own, as is all where the goroutine has changed, or there is no room.
func (c *coder) goCaptured(p place, capture *stub.Capture) {
	if capture == nil {
		c.goEvent(p)
		return
	}
	off := c.NewLabel()
	if !capture.Inline() || !keptInGo(capture) {
		c.unlessOff(off)
		c.goGather(p, off)
		c.Place(off)
		return
	}
	slow, full := c.NewLabel(), c.NewLabel()
	c.goSlot(off, slow)
	c.goTakeAll(capture.Events(), full)
	c.storeDirect(capture, p)
	c.goWrite(p)
	c.Place(off)
	c.cold = append(c.cold, func() {
		c.Place(full)
		c.fillRest(x16, goOther)
		c.Place(slow)
		c.goGather(p, off)
	})
}

// goScratch are the registers in which nothing is at an entry and at a return (see goevent.go).
const goScratch = golang.ScratchARM64

// isGoScratch says whether it is one of them.
func isGoScratch(r isa.Reg) bool { return r < 32 && goScratch>>r&1 != 0 }

// keptInGo says whether none of a capture's values is in a register that an event uses. Nothing is in these: whoever asks for one gets 0.
func keptInGo(capture *stub.Capture) bool {
	for i := range capture.Fields {
		if o := &capture.Fields[i].Value; o.Origin == stub.OriginReg && isGoScratch(o.Reg) {
			return false
		}
	}
	return true
}

// goTakeAll is takeAll with registers in which nothing is.
func (c *coder) goTakeAll(n int, none arm64.Label) {
	all := uint64(n+1) * ring.Claim
	if c.atomics() {
		c.MovImm(x17, all)
		c.LoadAdd(8, x17, x17, x16, arm64.Order{})
	} else {
		c.MovImm(goOther, all)
		c.exclusively(8, x17, x16, goKey, goM, arm64.Order{}, func() { c.Add(goKey, x17, goOther) })
	}
	c.AsrImm(x16, x17, ring.ClaimShift)
	c.AddImm(x16, x16, int64(n))
	c.Tbz(x16, 63, none)
	c.AndImm(x17, x17, claimLow)
}

// goGather appends the way by the slow path that gathers the payload, which goes on at off.
func (c *coder) goGather(p place, off arm64.Label) {
	gather := c.routines.gather[gatherKey{p.id, p.exit}]
	c.goPlace(p)
	c.AdrpTo(goOther, gather)
	c.AddImm(goOther, goOther, int64(gather&0xFFF))
	c.Adr(slowReturn, off)
	c.BTo(c.routines.goGather)
}
