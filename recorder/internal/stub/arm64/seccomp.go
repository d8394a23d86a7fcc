package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// callOut appends the call of a routine that keeps all but x16 and x17.
func (c *coder) callOut(routine uint64) {
	c.push(lr, zr)
	c.BlTo(routine)
	c.pop(lr, zr)
}

// hook appends the look at a function's arguments, at its entry. All but x16 and x17 is kept, flags included: numbers are compared by
// differences.
func (c *coder) hook(g plan.Hook) {
	if g == plan.HookExec && c.routines.exec != 0 {
		c.callOut(c.routines.exec) // it asks
	}
	if g == plan.HookLoader && c.routines.loader != 0 {
		c.callOut(c.routines.loader) // it tells
	}
	if !g.Restricts() {
		return
	}
	off, hit, named := c.NewLabel(), c.NewLabel(), c.NewLabel()
	name := c.routines.names != 0 && g.Names()
	prctl := func(option, mode, filter isa.Reg) {
		if name {
			c.SubImmW(x16, option, prSetName)
			c.CbzW(x16, named)
		}
		c.SubImmW(x16, option, prSetSeccomp)
		c.CbnzW(x16, off)
		c.restricts(mode, filter, modeStrict, modeFilter, hit, off)
	}
	switch g {
	case plan.HookPrctl:
		prctl(x0, x1, x2)
	case plan.HookSeccomp:
		c.restricts(x0, x2, seccompStrict, seccompFilter, hit, off)
	case plan.HookSyscall:
		other := c.NewLabel()
		c.SubImmW(x16, x0, sysSeccomp)
		c.CbnzW(x16, other)
		c.restricts(x1, x3, seccompStrict, seccompFilter, hit, off)
		c.Place(other)
		c.SubImmW(x16, x0, sysPrctl)
		c.CbnzW(x16, off)
		prctl(x1, x2, x3)
	}
	c.Place(off)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(hit)
		c.callOut(c.routines.seccomp)
		c.B(off)
		c.Place(named)
		if name {
			c.Mov(x16, nameArgument(g))
			c.callOut(c.routines.names)
			c.B(off)
		}
	})
}

// restricts appends a jump to hit when the mode is the strict one, or the other with a filter, else to off. Without a filter the kernel
// says EFAULT: that is how programs find out whether it knows seccomp.
func (c *coder) restricts(mode, filter isa.Reg, strict, filters int64, hit, off arm64.Label) {
	c.SubImmW(x16, mode, strict)
	c.CbzW(x16, hit)
	c.SubImmW(x16, mode, filters)
	c.CbnzW(x16, off)
	c.Cbnz(filter, hit)
	c.B(off)
}

// patience bounds how long a seccomp hook waits, to some seconds: a thread that a signal handler has taken out of the slow path for good
// (longjmp) stays counted. A look costs one of it, a nap many.
const (
	patience  = 1 << 26
	napsWorth = 1 << 12
)

// seccompPath is what the seccomp hooks do: see the one of x86-64. Between the closing of the gates and the look at the count is a barrier,
// as between the count and the look at the gate in slowPath.enter.
//
// Registers inside: x11 slot, x12 ring, x14 0 for the first, x13 what is left of its patience.
type seccompPath struct {
	*slowPath
	wait, spin, done, out arm64.Label
}

// emitSeccomp appends what the seccomp hooks do, and returns its address.
func (c *coder) emitSeccomp() uint64 {
	g := &seccompPath{slowPath: &slowPath{coder: c}}
	for _, l := range []*arm64.Label{&g.wait, &g.spin, &g.done, &g.out} {
		*l = c.NewLabel()
	}
	c.Align(64)
	addr := c.PC()
	bare := c.NewLabel()
	g.beginFrame()
	g.loadAt(rRing, g.cfg.Gate+stub.GateOwn)
	if !g.cfg.Follow {
		g.Cbz(rRing, bare)
	}
	g.saveVectors()
	g.closeGates()
	g.waitForOthers()
	c.Place(g.out)
	g.restoreVectors()
	c.Place(bare)
	g.endFrame()
	return addr
}

// closeGates also counts the first to come.
func (g *seccompPath) closeGates() {
	next, closed, child := g.NewLabel(), g.NewLabel(), g.NewLabel()
	if g.cfg.Follow {
		g.CmpImm(rRing, stub.GateNever)
		g.BCond(arm64.CondLS, child)
	}
	g.slotOfThread()
	g.Movz(x0, 1, 0)
	g.AddImm(x15, rRing, ring.HdrSandboxed)
	g.fetchAdd(8, x0, rTo, x15, x2, x3, bothWays)
	g.AddImm(x4, rRing, ring.HdrGates)
	if g.cfg.Follow {
		g.B(next)
		g.Place(child)
		g.closeOpened()
	}
	g.Place(next)
	g.LoadAcquire(8, x0, x4)
	g.Cbz(x0, closed)
	g.Movz(x1, stub.GateShut, 0)
	g.Store(1, x1, arm64.At(x0, stub.GateTop))
	g.AddImm(x4, x4, 8)
	g.B(next)
	g.Place(closed)
	g.MovImm(rNaps, patience)
	g.Cbnz(rTo, g.wait)
	g.count(1)
}

// slotOfThread sets the slot.
func (g *seccompPath) slotOfThread() {
	g.threadID(x1)
	g.AddImm(rSlot, rRing, ring.SlotsOff)
	g.AddLSL(rSlot, rSlot, x1, slotShift)
}

func (g *seccompPath) waitForOthers() {
	g.Place(g.wait)
	g.Dmb() // the gates are closed for all before the count is looked at
	g.AddImm(x15, rRing, ring.HdrInSlow)
	g.LoadAcquire(8, x1, x15)
	g.Load(8, x2, g.slot(ring.SlotInSlow))
	g.Cmp(x1, x2)
	g.BCond(arm64.CondLS, g.done)
	g.SubImm(rNaps, rNaps, 1)
	g.Tbnz(rNaps, 63, g.done)
	g.Load(8, x1, g.hdr(ring.HdrSandboxed))
	g.CmpImm(x1, 1)
	g.BCond(arm64.CondNE, g.spin)
	g.SubImm(rNaps, rNaps, napsWorth)
	g.sleep()
	g.B(g.wait)
	g.Place(g.spin)
	g.Hint(arm64.HintYield)
	g.B(g.wait)
	g.Place(g.done)
	g.Cbnz(rTo, g.out)
	g.count(-1)
}
