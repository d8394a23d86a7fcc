package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
)

// What other threads, or signal handlers, change as well is changed in one piece: by an instruction of FEAT_LSE, or by an exclusive pair.

// fetchAdd appends the addition of a register to what is at an address, in one piece: old becomes what was there. new and status are
// clobbered where the processor has no instruction for it. All but old and addend must differ.
func (c *coder) fetchAdd(size int, addend, old, addr, new, status isa.Reg, o arm64.Order) {
	if c.atomics() {
		c.LoadAdd(size, addend, old, addr, o)
		return
	}
	c.exclusively(size, old, addr, new, status, o, func() { c.Add(new, old, addend) })
}

// exclusively appends a loop that replaces what is at an address. change computes new of old.
func (c *coder) exclusively(size int, old, addr, new, status isa.Reg, o arm64.Order, change func()) {
	again := c.NewLabel()
	c.Place(again)
	c.LoadExclusive(size, old, addr, o.Acquire)
	change()
	c.StoreExclusive(size, status, new, addr, o.Release)
	c.CbnzW(status, again)
}

// swapIf appends the replacing of old, if it is at an address, by new; it goes to failed else. got and status are clobbered.
func (c *coder) swapIf(size int, old, new, addr, got, status isa.Reg, o arm64.Order, failed arm64.Label) {
	cmp := c.Cmp
	if size == 4 {
		cmp = c.CmpW
	}
	if c.atomics() {
		c.Mov(got, old)
		c.CompareSwap(size, got, new, addr, o)
		cmp(got, old)
		c.BCond(arm64.CondNE, failed)
		return
	}
	again := c.NewLabel()
	c.Place(again)
	c.LoadExclusive(size, got, addr, o.Acquire)
	cmp(got, old)
	c.BCond(arm64.CondNE, failed) // the monitor stays as it is: whoever stores exclusively loads so first
	c.StoreExclusive(size, status, new, addr, o.Release)
	c.CbnzW(status, again)
}

var bothWays = arm64.Order{Acquire: true, Release: true}
