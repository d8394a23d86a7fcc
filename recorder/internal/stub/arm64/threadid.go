package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
)

// threadID appends the loading of the thread's ID into a register, as 32 bits. The C library keeps it at a fixed distance from what
// TPIDR_EL0 says: glibc and musl in front of that, where the thread's descriptor is.
func (c *coder) threadID(r isa.Reg) {
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
