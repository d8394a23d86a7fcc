package arm64

import (
	"math/bits"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Values are gathered by a routine of their own for each entry, and one for all of a function's returns, while the thread is where its slow
// path makes system calls. They go to the thread's argument buffer, which no handler uses then: signals are blocked.
//
// Registers inside: x14 the thread's argument buffer; x7 and x9 to x13 are the slow path's. What was in x0 to x15 and the link register at the
// function's entry is in the slow path's frame, the stack pointer in x10; the others are as they were.

type gatherKey struct {
	id   uint32
	exit bool
}

// emitCaptures appends all that functions with captures share, and their routines.
func (c *coder) emitCaptures(fns []stub.Probe) {
	c.routines.gather = map[gatherKey]uint64{}
	c.routines.read = c.emitRead()
	c.routines.slowGather = c.emitSlowPath(true)
	// One range for all of them, since unwinders are told of a few hundred at most; each begins and ends alike.
	c.Align(16)
	first := c.PC()
	c.beginRoutine()
	for i := range fns {
		for _, m := range fns[i].Marks {
			c.gatherers(m.ID, true)
		}
		c.gatherers(fns[i].ID, fns[i].IsMark())
	}
	if c.PC() == first {
		c.Nop()
	}
	c.endRoutine()
}

// gatherers appends the routines of a function, or a marker, if it has captures.
func (c *coder) gatherers(id uint32, ofMark bool) {
	p := c.cfg.Captures[id]
	if p == nil || id == 0 {
		return
	}
	if k := p.Constant; k != nil && k.Else != id {
		c.gatherers(k.Else, ofMark)
	}
	for _, exit := range []bool{false, true} {
		if capture := p.Of(exit); capture != nil {
			c.routines.gather[gatherKey{id, exit}] = c.emitGather(id, capture, ofMark)
		}
	}
}

// emitRead appends the reading of x2 bytes at x1 to x4: x0 is how many were read, not above 0 for none. The pages that they lie on are read
// apart, so that what can be read before one that can't is. A tag in the address is the program's business. All of x0 to x5, x8, x16 and x17
// are clobbered.
func (c *coder) emitRead() uint64 {
	c.Align(64)
	addr := c.PC()
	c.beginRoutine()
	c.AndImm(x1, x1, 1<<56-1)
	c.Store(8, x4, inArgs(ring.ArgsLocal))
	c.Store(8, x2, inArgs(ring.ArgsLocal+8))
	c.Store(8, x1, inArgs(ring.ArgsFrom))
	c.AndImm(x3, x1, 4095)
	c.Movz(x0, 4096, 0)
	c.Sub(x0, x0, x3)
	c.Cmp(x0, x2)
	c.Csel(x0, x0, x2, arm64.CondLS)
	c.Store(8, x0, inArgs(ring.ArgsFrom+8))
	c.Add(x1, x1, x0)
	c.Store(8, x1, inArgs(ring.ArgsFrom+16))
	c.Sub(x2, x2, x0)
	c.Store(8, x2, inArgs(ring.ArgsFrom+24))
	c.threadID(x0) // a thread's ID does for its process
	c.AddImm(x1, rTo, ring.ArgsLocal)
	c.Movz(x2, 1, 0)
	c.AddImm(x3, rTo, ring.ArgsFrom)
	c.Movz(x4, 2, 0)
	c.Movz(x5, 0, 0)
	c.call(sysProcessVMReadv)
	c.Ret(lr)
	c.endRoutine()
	return addr
}

// emitGather appends the routine for a capture, of a function or of a marker, and returns its address.
func (c *coder) emitGather(id uint32, capture *stub.Capture, ofMark bool) uint64 {
	c.Align(16)
	addr := c.PC()
	c.push(lr, zr)
	g := &gatherer{c, id, ofMark}
	g.where(capture.Conditions)
	for _, i := range capture.Direct() {
		f := &capture.Fields[i]
		g.base(&f.Value)
		if f.Value.Memory {
			c.addOff(x0, f.Value.Off)
			c.Load(int(f.Value.Size), x0, arm64.At(x0, 0))
		}
		size := 4
		if f.Value.Wide() {
			size = 8
		}
		to := inArgs(ring.ArgsData + int32(f.Place()))
		if at := ring.ArgsData + int64(f.Place()); at&int64(size-1) != 0 && at > mostUnscaled {
			c.AddImm(x1, rTo, at)
			to = arm64.At(x1, 0)
		}
		c.Store(size, x0, to)
	}
	if len(capture.Direct()) == len(capture.Fields) {
		c.MovImm(x0, uint64(capture.Events()))
		c.Store(8, x0, inArgs(ring.ArgsCount))
	} else {
		c.AddImm(x0, rTo, int64(ring.ArgsData+capture.Fixed()))
		c.Store(8, x0, inArgs(ring.ArgsNext))
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
	}
	c.pop(lr, zr)
	c.Ret(lr)
	c.Resolve()
	return addr
}

// mostUnscaled is the largest displacement of a load or store that needn't be a multiple of its size.
const mostUnscaled = 255

// gatherer appends a routine that gathers values.
type gatherer struct {
	*coder
	id     uint32
	ofMark bool // x10 is belowMark below the stack pointer, and x16 and x17 are kept there
}

// where appends the look at conditions: an event for which one of them is false, or can't be told, is not to be written.
func (g *gatherer) where(list []stub.Condition) {
	g.Movz(x0, uint16(btoi(len(list) > 0)), 0)
	g.Store(8, x0, inArgs(ring.ArgsOpen))
	if len(list) == 0 {
		return
	}
	no, yes := g.NewLabel(), g.NewLabel()
	for i := range list {
		k := &list[i]
		g.operand(&k.Value, no)
		g.MovImm(x1, uint64(k.With))
		g.Cmp(x0, x1)
		g.BCond(fails(k), no)
	}
	g.B(yes)
	g.Place(no)
	g.Movn(x0, 0, 0)
	g.Store(8, x0, inArgs(ring.ArgsCount))
	g.pop(lr, zr)
	g.Ret(lr)
	g.pushed(1)
	if u := g.unwind; u != nil {
		g.say(cfaOffset|columnLR, byte(u.depth/8))
	}
	g.Place(yes)
}

// countUp appends the count of payload events.
func (g *gatherer) countUp() {
	g.Load(8, x0, inArgs(ring.ArgsNext))
	g.SubImm(x0, x0, ring.ArgsData-(ring.PayloadBytes-1))
	g.Sub(x0, x0, rTo)
	g.Movz(x1, ring.PayloadBytes, 0)
	g.Udiv(x0, x0, x1)
	g.Store(8, x0, inArgs(ring.ArgsCount))
}

// base appends the loading of what an operand begins with into x0. x1 is clobbered.
func (g *gatherer) base(o *stub.Operand) {
	switch o.Origin {
	case stub.OriginVector:
		g.FmovX(x0, isa.Reg(o.Vector))
	case stub.OriginStack:
		g.register(x0, sp)
	case stub.OriginAddress:
		g.MovImm(x0, o.Addr)
	default:
		g.register(x0, o.Reg)
	}
	if o.Scale > 0 {
		g.register(x1, o.Index)
		g.AddLSL(x0, x0, x1, uint8(bits.TrailingZeros8(o.Scale)))
	}
}

// register appends the loading of what a register of the program's has.
func (g *gatherer) register(to, r isa.Reg) {
	switch {
	case r < frameKept:
		g.Load(8, to, arm64.At(rFrame, 8*int32(r)))
	case r == lr:
		g.Load(8, to, arm64.At(rFrame, frameSize)) // where callGather has put it
	case g.cfg.Go != nil && isGoScratch(r): // nothing is in it
		g.Movz(to, 0, 0)
	case g.cfg.Go != nil && r == sp: // an event's is a distance
		g.Load(8, to, arm64.At(rFrame, goEntryAt))
		if g.ofMark {
			g.AddImm(to, to, belowMark)
		}
	case r == sp && g.ofMark:
		g.AddImm(to, rSP, belowMark)
	case r == sp:
		g.Mov(to, rSP)
	case g.ofMark && (r == x16 || r == x17):
		g.Load(8, to, arm64.At(rSP, keptAtMark(r)))
	case r == x16, r == x17: // nothing is in them
		g.Movz(to, 0, 0)
	default:
		g.Mov(to, r)
	}
}

// operand appends the loading of a number into x0, or a jump to bad.
func (g *gatherer) operand(o *stub.Operand, bad arm64.Label) {
	if o.Origin == stub.OriginResult {
		g.result(bad)
	} else {
		g.base(o)
	}
	for _, p := range o.Path {
		g.look(p, 8, bad)
	}
	if o.Memory {
		g.look(o.Off, o.Size, bad)
	} else {
		g.addOff(x0, o.Off)
	}
	if o.Shift > 0 && !o.Memory && len(o.Path) == 0 {
		g.LsrImm(x0, x0, 8*o.Shift)
	}
	switch {
	case o.Size == 8:
	case o.Signed:
		g.Sbfx(x0, x0, 0, 8*o.Size)
	default:
		g.Ubfx(x0, x0, 0, 8*o.Size)
	}
}

// look appends the reading of size bytes at x0+off into x0.
func (g *gatherer) look(off int32, size uint8, bad arm64.Label) {
	g.addOff(x0, off)
	g.Mov(x1, x0)
	g.Movz(x2, uint16(size), 0)
	g.AddImm(x4, rTo, ring.ArgsTemp)
	g.BlTo(g.routines.read)
	g.CmpImm(x0, int64(size))
	g.BCond(arm64.CondNE, bad)
	g.Load(8, x0, inArgs(ring.ArgsTemp))
}

// next loads where the next value goes into x4.
func (g *gatherer) next() { g.Load(8, x4, inArgs(ring.ArgsNext)) }

// behind notes that the next value goes behind x4, so many bytes on.
func (g *gatherer) behind(n int64) {
	g.AddImm(x4, x4, n)
	g.Store(8, x4, inArgs(ring.ArgsNext))
}

// number appends the gathering of a number in memory.
func (g *gatherer) number(f *stub.Field) {
	bad, done := g.NewLabel(), g.NewLabel()
	g.operand(&f.Value, bad)
	g.next()
	g.Movz(x1, 1, 0)
	g.Store(1, x1, arm64.Post(x4, 1))
	g.Store(8, x0, arm64.At(x4, 0))
	g.behind(8)
	g.B(done)
	g.Place(bad)
	g.next()
	g.Store(1, zr, arm64.At(x4, 0))
	g.behind(1)
	g.Place(done)
}

// header appends the header of a string that has no bytes.
func (g *gatherer) header(h uint16) {
	g.next()
	g.Movz(x0, h, 0)
	g.Store(2, x0, arm64.At(x4, 0))
	g.behind(stub.HeadString)
}

// text appends the gathering of bytes up to a zero. One more than is wanted is read, to know whether that is all.
func (g *gatherer) text(f *stub.Field) {
	bad, null, done := g.NewLabel(), g.NewLabel(), g.NewLabel()
	next, end := g.NewLabel(), g.NewLabel()
	g.operand(&f.Value, bad)
	g.Cbz(x0, null)
	g.Mov(x1, x0)
	g.Movz(x2, f.Max+1, 0)
	g.next()
	g.AddImm(x4, x4, stub.HeadString)
	g.BlTo(g.routines.read)
	g.CmpImm(x0, 0)
	g.BCond(arm64.CondLE, bad)
	g.next()
	g.AddImm(x5, x4, stub.HeadString)
	g.Movz(x1, 0, 0)
	g.Place(next)
	g.Load(1, x2, arm64.AtIndex(x5, x1, arm64.LSL, false))
	g.MovW(x3, x1)
	g.CbzW(x2, end)
	g.AddImm(x1, x1, 1)
	g.Cmp(x1, x0)
	g.BCond(arm64.CondLO, next)
	// No end: either there is more than is wanted, or what follows can't be read.
	g.Movz(x2, f.Max, 0)
	g.Cmp(x1, x2)
	g.Csel(x1, x1, x2, arm64.CondLS)
	g.Movz(x3, stub.HeadCut, 0)
	g.Orr(x3, x3, x1)
	g.Place(end)
	g.Store(2, x3, arm64.At(x4, 0))
	g.Add(x4, x5, x1)
	g.Store(8, x4, inArgs(ring.ArgsNext))
	g.B(done)
	g.Place(null)
	g.header(stub.HeadBad | stub.HeadCut)
	g.B(done)
	g.Place(bad)
	g.header(stub.HeadBad)
	g.Place(done)
}

// bytes appends the gathering of as many bytes as another value says.
func (g *gatherer) bytes(f *stub.Field) {
	bad, all, done, some := g.NewLabel(), g.NewLabel(), g.NewLabel(), g.NewLabel()
	if f.Len.Size == 0 {
		g.Movz(x0, f.Max, 0)
	} else {
		g.operand(&f.Len, bad)
		if f.Len.Signed {
			g.AsrImm(x1, x0, 63)
			g.Bic(x0, x0, x1)
		}
		g.Movz(x1, f.Max, 0)
		g.Cmp(x0, x1)
		g.BCond(arm64.CondLS, all)
		g.Movz(x0, f.Max|stub.HeadCut, 0)
		g.Place(all)
	}
	g.next()
	g.Store(2, x0, arm64.At(x4, 0))
	g.AndImm(x0, x0, stub.HeadLen)
	g.Cbnz(x0, some)
	g.behind(stub.HeadString)
	g.B(done)
	g.Place(some)
	g.Store(8, x0, inArgs(ring.ArgsTemp+8))
	g.operand(&f.Value, bad)
	g.Mov(x1, x0)
	g.Load(8, x2, inArgs(ring.ArgsTemp+8))
	g.next()
	g.AddImm(x4, x4, stub.HeadString)
	g.BlTo(g.routines.read)
	g.Load(8, x1, inArgs(ring.ArgsTemp+8))
	g.Cmp(x0, x1)
	g.BCond(arm64.CondNE, bad)
	g.next()
	g.AddImm(x4, x4, stub.HeadString)
	g.Add(x4, x4, x0)
	g.Store(8, x4, inArgs(ring.ArgsNext))
	g.B(done)
	g.Place(bad)
	g.header(stub.HeadBad)
	g.Place(done)
}
