package amd64

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Values are gathered by a routine of their own for each entry, and one for all of a function's returns, while the thread is where its
// slow path makes system calls, see payloadPath. They go to the thread's argument buffer, which no handler uses then: signals are blocked, or,
// in a Go program, write no events.
//
// Registers inside: R12 the thread's argument buffer; RBX, RBP, R8, R9 and R13 are the slow path's. What was in registers at the function's entry
// is on the stack, at fixed offsets from the stack pointer S of the stub.

// Where, from S, a stub that has a payload leaves the address of its routine and the stack pointer at the function's entry.
const (
	saveGather = -64
	saveEntry  = -72
)

// savedAt is where, from S, the slow path keeps registers: what the stub has saved, and what its prologue pushes.
func savedAt(r amd64.Reg) (off int32, ok bool) {
	switch r {
	case amd64.RAX:
		return saveRAX, true
	case amd64.RCX:
		return saveRCX, true
	case amd64.RDX:
		return saveRDX, true
	}
	for i, s := range saved {
		if s == r {
			return saveEntry - 8*int32(i+1), true
		}
	}
	return 0, false
}

// captureRoutines are those that gather values.
type captureRoutines struct {
	argsAt uint64 // where cfg.Args is
	read   uint64 // the address of the reading of memory
	slow   uint64 // that of the slow path of events with a payload
	enter  uint64 // of Go programs, see goEvents.emitSlow
	gather map[gatherKey]uint64
}

type gatherKey struct {
	id   uint32
	exit bool
}

// emitCaptures appends all that functions with captures share, and their routines.
func (c *coder) emitCaptures(fns []stub.Probe) {
	t := &c.routines.captures
	t.gather = map[gatherKey]uint64{}
	c.Align(8)
	t.argsAt = c.PC()
	c.Raw(binary.LittleEndian.AppendUint64(nil, c.cfg.Args)...)
	t.read = c.emitRead()
	nap := c.routines.nap
	t.slow = c.emitSlowPath(true)
	c.routines.nap = nap
	c.lang.payloadRoutines(c)
	c.Align(16)
	c.beginRoutine()
	for i := range fns {
		c.gatherers(fns[i].ID)
		for _, m := range fns[i].Marks {
			c.gatherers(m.ID)
		}
	}
	c.endRoutine()
}

// gatherers appends the routines of one function, if it has captures.
func (c *coder) gatherers(id uint32) {
	p := c.cfg.Captures[id]
	if p == nil || id == 0 {
		return
	}
	if k := p.Constant; k != nil && k.Else != id {
		c.gatherers(k.Else)
	}
	for _, exit := range []bool{false, true} {
		if capture := p.Of(exit); capture != nil {
			c.routines.captures.gather[gatherKey{id, exit}] = c.emitGather(capture)
		}
	}
}

// args appends the loading of the address of the thread's argument buffer.
func (c *coder) args(r amd64.Reg) {
	c.threadID(r)
	c.ShlImm(r, ring.ArgsShift)
	c.AddMem(r, amd64.AtAddr(c.routines.captures.argsAt))
}

// inArgs is a field of the thread's argument buffer.
func inArgs(off int32) amd64.Mem { return amd64.At(amd64.R12, off) }

// emitRead appends the reading of RDX bytes at RSI to RDI: RAX is how many were read, not above 0 for none. The pages that they lie on
// are read apart, so that what can be read before one that can't is. RCX, RDX, RSI, RDI, R10 and R11 are clobbered.
func (c *coder) emitRead() uint64 {
	c.Align(16)
	addr := c.PC()
	c.beginRoutine()
	c.keep(amd64.R8)
	c.keep(amd64.R9)
	c.Store64(inArgs(ring.ArgsLocal), amd64.RDI)
	c.Store64(inArgs(ring.ArgsLocal+8), amd64.RDX)
	c.Store64(inArgs(ring.ArgsFrom), amd64.RSI)
	c.Mov32(amd64.RCX, amd64.RSI)
	c.And32Imm(amd64.RCX, 4095)
	c.MovImm32(amd64.RAX, 4096)
	c.Sub(amd64.RAX, amd64.RCX)
	c.Cmp(amd64.RAX, amd64.RDX)
	one := c.NewLabel()
	c.Jcc(amd64.CondBE, one)
	c.Mov(amd64.RAX, amd64.RDX)
	c.Place(one)
	c.Store64(inArgs(ring.ArgsFrom+8), amd64.RAX)
	c.Add(amd64.RSI, amd64.RAX)
	c.Store64(inArgs(ring.ArgsFrom+16), amd64.RSI)
	c.Sub(amd64.RDX, amd64.RAX)
	c.Store64(inArgs(ring.ArgsFrom+24), amd64.RDX)
	c.MovImm32(amd64.RAX, sysProcessVMReadv)
	c.threadID(amd64.RDI) // a thread's ID does for its process
	c.Lea(amd64.RSI, inArgs(ring.ArgsLocal))
	c.MovImm32(amd64.RDX, 1)
	c.Lea(amd64.R10, inArgs(ring.ArgsFrom))
	c.MovImm32(amd64.R8, 2)
	c.MovImm32(amd64.R9, 0)
	c.Syscall()
	c.giveBack(amd64.R9)
	c.giveBack(amd64.R8)
	c.Ret()
	c.endRoutine()
	return addr
}

// gatherer appends a routine that gathers values.
type gatherer struct {
	*coder
	sp int32 // S less the stack pointer inside
}

// emitGather appends the routine for a capture, and returns its address.
func (c *coder) emitGather(capture *stub.Capture) uint64 {
	c.Align(16)
	addr := c.PC()
	g := &gatherer{coder: c, sp: 8 - saveEntry + 8*int32(len(saved))}
	if c.lang.handlersWrite {
		g.sp += maskSize
	}
	g.conditions(capture.Conditions)
	c.Store64Imm(inArgs(ring.ArgsOpen), int32(btoi(len(capture.Conditions) > 0)))
	for _, i := range capture.Direct() {
		f := &capture.Fields[i]
		if f.Value.Memory {
			g.safe(&f.Value)
		} else {
			g.base(&f.Value)
		}
		if at := inArgs(ring.ArgsData + int32(f.Place())); f.Value.Wide() {
			c.Store64(at, amd64.RAX)
		} else {
			c.Store32(at, amd64.RAX)
		}
	}
	if len(capture.Direct()) == len(capture.Fields) {
		c.Store64Imm(inArgs(ring.ArgsCount), int32(capture.Events()))
		c.Ret()
		return addr
	}
	c.Lea(amd64.RAX, inArgs(ring.ArgsData+int32(capture.Fixed())))
	c.Store64(inArgs(ring.ArgsNext), amd64.RAX)
	for i := range capture.Fields {
		switch f := &capture.Fields[i]; {
		case f.Kind == stub.FieldValue && f.Value.InRegister():
		case f.Kind == stub.FieldValue:
			g.number(f)
		case f.Kind == stub.FieldString:
			g.text(f)
		default:
			g.bytes(f)
		}
	}
	g.countUp()
	c.Ret()
	return addr
}

// where appends the look at conditions: an event for which one of them is false, or can't be told, is not to be written.
func (g *gatherer) conditions(list []stub.Condition) {
	if len(list) == 0 {
		return
	}
	no, yes := g.NewLabel(), g.NewLabel()
	for i := range list {
		k := &list[i]
		g.operand(&k.Value, no)
		g.MovImm64(amd64.RCX, uint64(k.With))
		g.Cmp(amd64.RAX, amd64.RCX)
		g.Jcc(fails(k), no)
	}
	g.Jmp(yes)
	g.Place(no)
	g.Store64Imm(inArgs(ring.ArgsCount), -1)
	g.Ret()
	g.Place(yes)
}

// countUp appends the count of payload events.
func (g *gatherer) countUp() {
	next, done := g.NewLabel(), g.NewLabel()
	g.Load64(amd64.RAX, inArgs(ring.ArgsNext))
	g.Lea(amd64.RCX, inArgs(ring.ArgsData))
	g.Sub(amd64.RAX, amd64.RCX)
	g.MovImm32(amd64.RCX, 0)
	g.Place(next)
	g.Test(amd64.RAX, amd64.RAX)
	g.Jcc(amd64.CondE, done)
	g.Jcc(amd64.CondS, done)
	g.Lea(amd64.RCX, amd64.At(amd64.RCX, 1))
	g.Lea(amd64.RAX, amd64.At(amd64.RAX, -ring.PayloadBytes))
	g.Jmp(next)
	g.Place(done)
	g.Store64(inArgs(ring.ArgsCount), amd64.RCX)
}

// safe appends the loading of what is in memory that is safe to be read into RAX.
func (g *gatherer) safe(o *stub.Operand) {
	g.base(o)
	from := amd64.At(amd64.RAX, o.Off)
	switch o.Size {
	case 1:
		g.Load8(amd64.RAX, from)
	case 2:
		g.Load16(amd64.RAX, from)
	case 4:
		g.Load32(amd64.RAX, from)
	default:
		g.Load64(amd64.RAX, from)
	}
}

// base appends the loading of what an operand begins with into RAX.
func (g *gatherer) base(o *stub.Operand) {
	switch o.Origin {
	case stub.OriginVector:
		g.MovX(amd64.RAX, o.Vector)
	case stub.OriginStack:
		g.Load64(amd64.RAX, amd64.At(amd64.RSP, g.sp+saveEntry))
	case stub.OriginAddress:
		g.MovImm64(amd64.RAX, o.Addr)
	default:
		g.register(amd64.RAX, amd64.Reg(o.Reg))
	}
	if o.Scale > 0 {
		g.register(amd64.RSI, amd64.Reg(o.Index))
		g.Lea(amd64.RAX, amd64.AtIndex(amd64.RAX, amd64.RSI, o.Scale, 0))
	}
}

// register appends the loading of what a register of the program's has.
func (g *gatherer) register(to, r amd64.Reg) {
	if off, ok := savedAt(r); ok {
		g.Load64(to, amd64.At(amd64.RSP, g.sp+off))
	} else {
		g.Mov(to, r)
	}
}

// operand appends the loading of a number into RAX, or a jump to bad.
func (g *gatherer) operand(o *stub.Operand, bad amd64.Label) {
	g.base(o)
	for _, p := range o.Path {
		g.look(p, 8, bad)
	}
	if o.Memory {
		g.look(o.Off, o.Size, bad)
	} else if o.Off != 0 {
		g.Lea(amd64.RAX, amd64.At(amd64.RAX, o.Off))
	}
	if o.Shift > 0 && !o.Memory && len(o.Path) == 0 {
		g.ShrImm(amd64.RAX, 8*o.Shift)
	}
	switch {
	case o.Size == 4 && o.Signed:
		g.Movsx32(amd64.RAX)
	case o.Size == 4:
		g.Mov32(amd64.RAX, amd64.RAX)
	case o.Size == 2 && o.Signed:
		g.Movsx16(amd64.RAX)
	case o.Size == 2:
		g.Movzx16(amd64.RAX)
	case o.Size == 1 && o.Signed:
		g.Movsx8(amd64.RAX)
	case o.Size == 1:
		g.Movzx8(amd64.RAX)
	}
}

// look appends the reading of size bytes at RAX+off into RAX.
func (g *gatherer) look(off int32, size uint8, bad amd64.Label) {
	g.Lea(amd64.RSI, amd64.At(amd64.RAX, off))
	g.MovImm32(amd64.RDX, uint32(size))
	g.Lea(amd64.RDI, inArgs(ring.ArgsTemp))
	g.CallTo(g.routines.captures.read)
	g.MovImm32(amd64.RCX, uint32(size))
	g.Cmp(amd64.RAX, amd64.RCX)
	g.Jcc(amd64.CondNE, bad)
	g.Load64(amd64.RAX, inArgs(ring.ArgsTemp))
}

// number appends the gathering of a number in memory.
func (g *gatherer) number(f *stub.Field) {
	bad, done := g.NewLabel(), g.NewLabel()
	g.operand(&f.Value, bad)
	g.Load64(amd64.RDI, inArgs(ring.ArgsNext))
	g.Store32Imm(amd64.At(amd64.RDI, 0), 1)
	g.Store64(amd64.At(amd64.RDI, 1), amd64.RAX)
	g.Lea(amd64.RDI, amd64.At(amd64.RDI, 9))
	g.Jmp(done)
	g.Place(bad)
	g.Load64(amd64.RDI, inArgs(ring.ArgsNext))
	g.Store32Imm(amd64.At(amd64.RDI, 0), 0)
	g.Lea(amd64.RDI, amd64.At(amd64.RDI, 1))
	g.Place(done)
	g.Store64(inArgs(ring.ArgsNext), amd64.RDI)
}

// header appends the header of a string that has no bytes.
func (g *gatherer) header(h uint32) {
	g.Load64(amd64.RDI, inArgs(ring.ArgsNext))
	g.Store32Imm(amd64.At(amd64.RDI, 0), h)
	g.Lea(amd64.RDI, amd64.At(amd64.RDI, stub.HeadString))
	g.Store64(inArgs(ring.ArgsNext), amd64.RDI)
}

// text appends the gathering of bytes up to a zero. One more than is wanted is read, to know whether that is all.
func (g *gatherer) text(f *stub.Field) {
	bad, null, done := g.NewLabel(), g.NewLabel(), g.NewLabel()
	next, end, short := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.operand(&f.Value, bad)
	g.Test(amd64.RAX, amd64.RAX)
	g.Jcc(amd64.CondE, null)
	g.Mov(amd64.RSI, amd64.RAX)
	g.MovImm32(amd64.RDX, uint32(f.Max)+1)
	g.Load64(amd64.RDI, inArgs(ring.ArgsNext))
	g.Lea(amd64.RDI, amd64.At(amd64.RDI, stub.HeadString))
	g.CallTo(g.routines.captures.read)
	g.Test(amd64.RAX, amd64.RAX)
	g.Jcc(amd64.CondE, bad)
	g.Jcc(amd64.CondS, bad)
	g.Load64(amd64.RSI, inArgs(ring.ArgsNext))
	g.MovImm32(amd64.RCX, 0)
	g.Place(next)
	g.Load8(amd64.RDX, amd64.AtIndex(amd64.RSI, amd64.RCX, 1, stub.HeadString))
	g.Test(amd64.RDX, amd64.RDX)
	g.Mov32(amd64.RDX, amd64.RCX)
	g.Jcc(amd64.CondE, end)
	g.Lea(amd64.RCX, amd64.At(amd64.RCX, 1))
	g.Cmp(amd64.RCX, amd64.RAX)
	g.Jcc(amd64.CondB, next)
	// No end: either there is more than is wanted, or what follows can't be read.
	g.MovImm32(amd64.RDX, uint32(f.Max))
	g.Cmp(amd64.RCX, amd64.RDX)
	g.Jcc(amd64.CondBE, short)
	g.Mov32(amd64.RCX, amd64.RDX)
	g.Place(short)
	g.Mov32(amd64.RDX, amd64.RCX)
	g.MovImm32(amd64.RAX, stub.HeadCut)
	g.Or(amd64.RDX, amd64.RAX)
	g.Place(end)
	g.Store16(amd64.At(amd64.RSI, 0), amd64.RDX)
	g.Lea(amd64.RSI, amd64.AtIndex(amd64.RSI, amd64.RCX, 1, stub.HeadString))
	g.Store64(inArgs(ring.ArgsNext), amd64.RSI)
	g.Jmp(done)
	g.Place(null)
	g.header(stub.HeadBad | stub.HeadCut)
	g.Jmp(done)
	g.Place(bad)
	g.header(stub.HeadBad)
	g.Place(done)
}

// bytes appends the gathering of as many bytes as another value says.
func (g *gatherer) bytes(f *stub.Field) {
	bad, all, done, some, positive := g.NewLabel(), g.NewLabel(), g.NewLabel(), g.NewLabel(), g.NewLabel()
	if f.Len.Size == 0 {
		g.MovImm32(amd64.RAX, uint32(f.Max))
	} else {
		g.operand(&f.Len, bad)
		if f.Len.Signed {
			g.Test(amd64.RAX, amd64.RAX)
			g.Jcc(amd64.CondNS, positive)
			g.MovImm32(amd64.RAX, 0)
			g.Place(positive)
		}
		g.MovImm32(amd64.RDX, uint32(f.Max))
		g.Cmp(amd64.RAX, amd64.RDX)
		g.Jcc(amd64.CondBE, all)
		g.MovImm32(amd64.RAX, uint32(f.Max)|stub.HeadCut)
		g.Place(all)
	}
	g.Load64(amd64.RDI, inArgs(ring.ArgsNext))
	g.Store16(amd64.At(amd64.RDI, 0), amd64.RAX)
	g.And32Imm(amd64.RAX, stub.HeadLen)
	g.Test(amd64.RAX, amd64.RAX)
	g.Jcc(amd64.CondNE, some)
	g.Lea(amd64.RDI, amd64.At(amd64.RDI, stub.HeadString))
	g.Store64(inArgs(ring.ArgsNext), amd64.RDI)
	g.Jmp(done)
	g.Place(some)
	g.Store64(inArgs(ring.ArgsTemp+8), amd64.RAX)
	g.operand(&f.Value, bad)
	g.Mov(amd64.RSI, amd64.RAX)
	g.Load64(amd64.RDX, inArgs(ring.ArgsTemp+8))
	g.Load64(amd64.RDI, inArgs(ring.ArgsNext))
	g.Lea(amd64.RDI, amd64.At(amd64.RDI, stub.HeadString))
	g.CallTo(g.routines.captures.read)
	g.CmpMem(amd64.RAX, inArgs(ring.ArgsTemp+8))
	g.Jcc(amd64.CondNE, bad)
	g.Load64(amd64.RDI, inArgs(ring.ArgsNext))
	g.Lea(amd64.RDI, amd64.AtIndex(amd64.RDI, amd64.RAX, 1, stub.HeadString))
	g.Store64(inArgs(ring.ArgsNext), amd64.RDI)
	g.Jmp(done)
	g.Place(bad)
	g.header(stub.HeadBad)
	g.Place(done)
}
