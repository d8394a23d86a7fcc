package amd64

import (
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// callAtEntry appends the call of a routine that keeps all but RAX and the flags, at a function's entry. Registers and flags are kept.
func (c *coder) callAtEntry(routine uint64) {
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.Lahf()
	c.SetOAL()
	c.Store64(amd64.At(amd64.RSP, saveFlags), amd64.RAX)
	c.CallTo(routine)
	c.Load64(amd64.RAX, amd64.At(amd64.RSP, saveFlags))
	c.AddALImm(0x7F) // see restore
	c.Sahf()
	c.Load64(amd64.RAX, amd64.At(amd64.RSP, saveRAX))
}

// hook appends the look at a function's arguments, at its entry. Registers and flags are kept as by an event.
func (c *coder) hook(g plan.Hook) {
	if g == plan.HookExec && c.cfg.Follow {
		c.callAtEntry(c.routines.exec) // it asks
	}
	if g == plan.HookLoader && c.routines.loader != 0 {
		c.callAtEntry(c.routines.loader) // it tells
	}
	if g == plan.HookNone || g == plan.HookExec || g == plan.HookLoader {
		return
	}
	off, hit, named := c.NewLabel(), c.NewLabel(), c.NewLabel()
	name := c.routines.names != 0 && g.Names()
	c.Store64(amd64.At(amd64.RSP, saveRAX), amd64.RAX)
	c.Lahf()
	c.SetOAL()
	c.Store64(amd64.At(amd64.RSP, saveFlags), amd64.RAX)
	switch g {
	case plan.HookPrctl:
		if name {
			c.cmp32(amd64.RDI, prSetName)
			c.Jcc(amd64.CondE, named)
		}
		c.cmp32(amd64.RDI, prSetSeccomp)
		c.Jcc(amd64.CondNE, off)
		c.restricts(amd64.RSI, amd64.RDX, modeStrict, modeFilter, hit, off)
	case plan.HookSeccomp:
		c.restricts(amd64.RDI, amd64.RDX, seccompStrict, seccompFilter, hit, off)
	case plan.HookSyscall:
		prctl := c.NewLabel()
		c.cmp32(amd64.RDI, sysSeccomp)
		c.Jcc(amd64.CondNE, prctl)
		c.restricts(amd64.RSI, amd64.RCX, seccompStrict, seccompFilter, hit, off)
		c.Place(prctl)
		c.cmp32(amd64.RDI, sysPrctl)
		c.Jcc(amd64.CondNE, off)
		if name {
			c.cmp32(amd64.RSI, prSetName)
			c.Jcc(amd64.CondE, named)
		}
		c.cmp32(amd64.RSI, prSetSeccomp)
		c.Jcc(amd64.CondNE, off)
		c.restricts(amd64.RDX, amd64.RCX, modeStrict, modeFilter, hit, off)
	}
	c.Place(off)
	c.Load64(amd64.RAX, amd64.At(amd64.RSP, saveFlags))
	c.AddALImm(0x7F) // see restore
	c.Sahf()
	c.Load64(amd64.RAX, amd64.At(amd64.RSP, saveRAX))
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(hit)
		c.CallTo(c.routines.seccomp)
		c.Jmp(off)
		if name {
			c.Place(named)
			c.Mov(amd64.RAX, nameArgument(g))
			c.CallTo(c.routines.names)
			c.Jmp(off)
		}
	})
}

// restricts appends a jump to hit when the mode is the strict one, or the other with a filter, else to off. Without a filter
// the kernel says EFAULT: that is how programs find out whether it knows seccomp.
func (c *coder) restricts(mode, filter amd64.Reg, strict, filters uint32, hit, off amd64.Label) {
	c.cmp32(mode, strict)
	c.Jcc(amd64.CondE, hit)
	c.cmp32(mode, filters)
	c.Jcc(amd64.CondNE, off)
	c.Test(filter, filter)
	c.Jcc(amd64.CondNE, hit)
	c.Jmp(off)
}

// cmp32 compares the low half of one of the first eight registers with a number: an int has no more (System V AMD64 ABI
// §3.2.3), and of a system call's number the kernel takes no more.
func (c *coder) cmp32(r amd64.Reg, v uint32) {
	c.Raw(0x81, 0xF8|byte(r&7), byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

// patience bounds how long a seccomp hook waits, to some seconds: a thread that a signal handler has taken out of the slow path for
// good (longjmp) stays counted. A look costs one of it, a nap many.
const (
	patience  = 1 << 26
	napsWorth = 1 << 12
)

// seccompPath is what the seccomp hooks do. It says so in the ring's header, closes all gates, and waits until no other thread is where
// code in the arenas makes system calls, so that none is met there by a filter that is set for all threads
// (SECCOMP_FILTER_FLAG_TSYNC).
//
// The first to come naps meanwhile, and is counted like those it waits for. Whoever comes then, another thread or a signal
// handler above the first, waits without system calls, and so does the first from then on: it can't know whether the filter
// of the other is there already.
//
// Registers inside: R8 slot, R9 ring, R12 0 for the first, R13 what is left of its patience.
type seccompPath struct {
	*slowPath
	wait, spin, done, out amd64.Label
}

// emitSeccomp appends what the seccomp hooks do, and returns its address. napAt is that of the time of a nap. RAX and flags are
// clobbered.
func (c *coder) emitSeccomp(napAt uint64) uint64 {
	g := &seccompPath{slowPath: &slowPath{coder: c}}
	for _, l := range []*amd64.Label{&g.wait, &g.spin, &g.done, &g.out} {
		*l = c.NewLabel()
	}
	c.Align(16)
	addr := c.PC()
	c.Lea(amd64.RSP, amd64.At(amd64.RSP, -64)) // past what the stub saved, see event.go
	kept := []amd64.Reg{amd64.RCX, amd64.RSI, amd64.RDI, amd64.R8, amd64.R9, amd64.R11, amd64.R12, amd64.R13}
	for _, r := range kept {
		c.Push(r)
	}
	g.closeGates()
	g.waitForOthers(napAt)
	c.Place(g.out)
	for _, r := range slices.Backward(kept) {
		c.Pop(r)
	}
	c.Lea(amd64.RSP, amd64.At(amd64.RSP, 64))
	c.Ret()
	return addr
}

// closeGates also counts the first to come.
func (g *seccompPath) closeGates() {
	next, closed, child := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.Load64(amd64.R9, amd64.AtAddr(g.cfg.Gate+stub.GateOwn))
	if g.cfg.Follow {
		g.MovImm32(amd64.RAX, stub.GateNever)
		g.Cmp(amd64.R9, amd64.RAX)
		g.Jcc(amd64.CondBE, child)
	} else {
		g.Test(amd64.R9, amd64.R9)
		g.Jcc(amd64.CondE, g.out)
	}
	g.slotOfThread()
	g.MovImm32(amd64.R12, 1)
	g.LockXadd64(g.hdr(ring.HdrSandboxed), amd64.R12)
	g.Lea(amd64.RCX, g.hdr(ring.HdrGates))
	if g.cfg.Follow {
		g.Jmp(next)
		g.Place(child)
		g.closeOpened()
	}
	g.Place(next)
	g.Load64(amd64.RAX, amd64.At(amd64.RCX, 0))
	g.Test(amd64.RAX, amd64.RAX)
	g.Jcc(amd64.CondE, closed)
	g.Store8Imm(amd64.At(amd64.RAX, stub.GateTop), stub.GateShut)
	g.Lea(amd64.RCX, amd64.At(amd64.RCX, 8))
	g.Jmp(next)
	g.Place(closed)
	g.MovImm32(amd64.R13, patience)
	g.Test(amd64.R12, amd64.R12)
	g.Jcc(amd64.CondNE, g.wait)
	g.count(1)
}

// slotOfThread sets R8.
func (g *seccompPath) slotOfThread() {
	g.threadID(amd64.RAX)
	g.Shl32Imm(amd64.RAX, 3)
	g.Lea(amd64.R8, amd64.AtIndex(amd64.R9, amd64.RAX, 8, ring.SlotsOff))
}

func (g *seccompPath) waitForOthers(napAt uint64) {
	g.Place(g.wait)
	g.MovImm32(amd64.RCX, 0)
	g.LockXadd64(g.hdr(ring.HdrInSlow), amd64.RCX) // a load that isn't done before the gates are closed
	g.CmpMem(amd64.RCX, g.slot(ring.SlotInSlow))
	g.Jcc(amd64.CondBE, g.done)
	g.Lea(amd64.R13, amd64.At(amd64.R13, -1))
	g.Test(amd64.R13, amd64.R13)
	g.Jcc(amd64.CondS, g.done)
	g.CmpMem64Imm8(g.hdr(ring.HdrSandboxed), 1)
	g.Jcc(amd64.CondNE, g.spin)
	g.Lea(amd64.R13, amd64.At(amd64.R13, -napsWorth))
	g.sleep(napAt)
	g.Jmp(g.wait)
	g.Place(g.spin)
	g.Pause()
	g.Jmp(g.wait)
	g.Place(g.done)
	g.Test(amd64.R12, amd64.R12)
	g.Jcc(amd64.CondNE, g.out)
	g.count(-1)
}
