package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// threadID appends the loading of the thread's ID into a register, as 32 bits. The C library keeps it at a fixed distance from what
// TPIDR_EL0 says: glibc and musl in front of that, where the thread's descriptor is. Where nothing keeps it x17 is clobbered.
// In a Go program the runtime keeps it.
func (c *coder) threadID(r isa.Reg) {
	if c.cfg.Go != nil {
		c.Load(8, r, arm64.At(goG, golang.GM))
		c.Load(4, r, arm64.At(r, c.cfg.Go.ProcID))
		return
	}
	if c.cfg.NoTLS {
		c.push(lr, x16)
		c.BlTo(c.routines.threadID)
		c.pop(lr, x16)
		if r != x17 {
			c.MovW(r, x17)
		}
		return
	}
	c.Mrs(r, arm64.TPIDREL0)
	off := c.cfg.TIDOffset
	if inReach(off) {
		c.Load(4, r, arm64.At(r, off))
		return
	}
	// What is left is what a load can add itself.
	const page = 1 << 12
	low := off & (page - 1)
	high := off - low
	switch {
	case high == 0:
	case off < 0 && off > -page && !inReach(low):
		c.SubImm(r, r, int64(-off))
		c.Load(4, r, arm64.At(r, 0))
		return
	default:
		c.AddImm(r, r, int64(high))
	}
	if !inReach(low) {
		c.AddImm(r, r, int64(low))
		low = 0
	}
	c.Load(4, r, arm64.At(r, low))
}

// inReach says whether a load of 32 bits has room for a displacement.
func inReach(d int32) bool {
	return d >= -256 && d <= 255 || d >= 0 && d&3 == 0 && d>>2 < 1<<12
}

// emitThreadID appends the routine that finds the thread's ID, if one is wanted: w17 becomes it, and x16 is clobbered. It is in the thread's
// descriptor, if there is one. Else, on the stack that the kernel made, it is in the gate's page, see stub.GateThread; on others the kernel is asked.
func (c *coder) emitThreadID() {
	if !c.cfg.NoTLS {
		return
	}
	c.Align(64)
	ask := c.PC()
	s := &slowPath{coder: c}
	s.beginFrame()
	s.saveVectors()
	c.call(sysGettid)
	c.MovW(x17, x0)
	s.restoreVectors()
	s.endFrame()

	c.Align(64)
	c.routines.threadID = c.PC()
	c.beginRoutine()
	other := c.NewLabel()
	if c.cfg.DescriptorAt != 0 && !c.cfg.Follow {
		none := c.NewLabel()
		c.Mrs(x17, arm64.TPIDREL0)
		c.Cbz(x17, none)
		c.Load(8, x17, arm64.At(x17, c.cfg.DescriptorAt))
		c.Cbz(x17, none)
		c.Load(4, x17, arm64.At(x17, c.cfg.DescriptorID))
		c.Tbnz(x17, 31, none)
		c.Ret(lr)
		c.Place(none)
	}
	c.loadAt(x17, c.cfg.Gate+stub.GateStack)
	c.AddImm(x16, sp, 0)
	c.Sub(x16, x16, x17)
	c.Tbnz(x16, 63, other)
	c.loadAt(x17, c.cfg.Gate+stub.GateStackSize)
	c.Sub(x16, x16, x17)
	c.Tbz(x16, 63, other)
	c.loadAt(x17, c.cfg.Gate+stub.GateThread)
	c.MovW(x17, x17)
	c.Ret(lr)
	c.Place(other)
	c.BTo(ask)
	c.endRoutine()
}
