package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// With Config.Depth, Inside and Every it is decided at each entry whether the call is recorded, and its exit has to find the same. For
// that there is the thread's open stack (see openstack.go, whose memory this uses in its own way): with Depth or Every it has a record of
// each open call that is recorded, else, and besides, one of each open call of the functions that are stub.Probe.Inside.
//
// A call is within Depth if fewer records are of calls above it, in the same stack; it is inside if there is such a record of a
// function of Inside. Calls that are both are counted, and each Every-th of a function is recorded, from the first on. The exit of a call
// that has a record is recorded, unless that says otherwise, and takes the record away. With Inside alone the others' exits go by the
// same rule as the entries: what is above a call stays as long as the call does.
//
// A thread may have several stacks, of signal handlers and coroutines. A record more than reachDown below an event, or more than reachUp
// above it, is another stack's, and stays. One that is nearer and not above belongs to a call that is gone, by longjmp or an exception. A
// record that isn't the top one when its call ends, as another stack's are above it, becomes 0.
//
// Signal handlers leave the top as they found it, and what is below it alone, so it is changed by a store. A push raises it before
// the record is written, as a handler would write over what is above it; if a handler takes what is there meanwhile for a call that is
// gone, and lowers the top, the push is done again.
const (
	reachDown = 1 << 20
	reachUp   = 8 << 20
)

// Marks in a record's word: of a call of one of those functions, and of one that isn't recorded nonetheless, by Every.
const (
	recordInside = 1 << 31
	recordNot    = 1 << 30
)

// choose appends the decision to an event, behind saveFlags: it jumps to off when the event isn't to be written. load is to append the
// loading of ECX with the word of the call's entry. The stack pointer is spDelta below its value at the function's entry. RAX, RCX, RDX and
// flags are clobbered.
func (c *coder) choose(exit bool, spDelta int32, load func(), off amd64.Label) {
	closed := c.whenClosed(c.PC(), off)
	c.whileOn(amd64.RDX, closed, off)
	load()
	c.Lea(amd64.RDX, amd64.At(amd64.RSP, spDelta))
	c.CallTo(c.routines.chosen[btoi(exit)])
	c.Test(amd64.RAX, amd64.RAX)
	c.Jcc(amd64.CondE, off)
}

// chosenPath is one of the two routines. They are called with ECX the word of the entry, EDX the stack pointer at the function's entry,
// and return whether the event is to be written in EAX. RCX, RDX and flags are clobbered.
//
// Registers inside: RSI the area, RDI the top as read, RAX how many records there are to be, R8 a place in between, RBX what is left of
// the depth. The word is on the stack.
type chosenPath struct {
	*coder
	again, yes, no, out amd64.Label
	kept                []amd64.Reg
}

// emitChosen appends the routines.
func (c *coder) emitChosen() {
	c.routines.chosen[0] = c.chosenRoutine((*chosenPath).enter)
	c.routines.chosen[1] = c.chosenRoutine((*chosenPath).leave)
}

func (c *coder) chosenRoutine(body func(*chosenPath)) uint64 {
	c.Align(64)
	addr := c.PC()
	p := &chosenPath{coder: c, kept: []amd64.Reg{amd64.RBX, amd64.RSI, amd64.RDI, amd64.R8, amd64.RCX}}
	p.again, p.yes, p.no, p.out = c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.beginKeeping(p.kept)
	c.threadID(amd64.RSI)
	c.Mov32(amd64.RDX, amd64.RDX) // its low half
	c.Test(amd64.RSI, amd64.RSI)
	c.Jcc(amd64.CondE, p.no)
	c.ShlImm(amd64.RSI, ring.AreaShift)
	c.AddMem(amd64.RSI, amd64.AtAddr(c.routines.open.areasAt))
	c.Place(p.again)
	c.Load64(amd64.RDI, amd64.At(amd64.RSI, ring.AreaTop))
	c.Mov32(amd64.RAX, amd64.RDI)
	body(p)
	c.Place(p.yes)
	c.MovImm32(amd64.RAX, 1)
	c.Jmp(p.out)
	c.Place(p.no)
	c.MovImm32(amd64.RAX, 0)
	c.Place(p.out)
	c.returnWith(p.kept)
	c.endRoutine()
	return addr
}

// sp and word are those of the record below place r.
func (p *chosenPath) sp(r amd64.Reg) amd64.Mem {
	return amd64.AtIndex(amd64.RSI, r, 8, ring.AreaOpen-8)
}

func (p *chosenPath) word(r amd64.Reg) amd64.Mem {
	return amd64.AtIndex(amd64.RSI, r, 8, ring.AreaOpen-4)
}

// own is the word that the routine was called with.
func (p *chosenPath) own() amd64.Mem { return amd64.At(amd64.RSP, 0) }

// dec takes one from a place.
func (p *chosenPath) dec(r amd64.Reg) { p.Lea(r, amd64.At(r, -1)) }

// above loads ECX with how far the record below place r is above the event.
func (p *chosenPath) above(r amd64.Reg) {
	p.Load32(amd64.RCX, p.sp(r))
	p.Sub32(amd64.RCX, amd64.RDX)
}

// sign compares the low half of r with 0.
func (p *chosenPath) sign(r amd64.Reg) { p.CmpImm32(r, 0) }

// gone jumps to yes if the record below place r is of a call that is gone.
func (p *chosenPath) gone(r amd64.Reg, yes amd64.Label) {
	no := p.NewLabel()
	p.CmpMem32Imm8(p.word(r), 0)
	p.Jcc(amd64.CondE, yes)
	p.above(r)
	p.sign(amd64.RCX)
	p.Jcc(amd64.CondG, no)
	p.CmpImm32(amd64.RCX, -reachDown&(1<<32-1))
	p.Jcc(amd64.CondG, yes)
	p.Place(no)
}

// each goes through the records from place r down: those of calls above the event in the same stack are found, and it goes on at end
// behind the last.
func (p *chosenPath) each(r amd64.Reg, end amd64.Label, found func(next amd64.Label)) {
	loop, next := p.NewLabel(), p.NewLabel()
	p.Place(loop)
	p.Test(r, r)
	p.Jcc(amd64.CondE, end)
	p.CmpMem32Imm8(p.word(r), 0)
	p.Jcc(amd64.CondE, next)
	p.above(r)
	p.sign(amd64.RCX)
	p.Jcc(amd64.CondLE, next)
	p.CmpImm32(amd64.RCX, reachUp)
	p.Jcc(amd64.CondGE, next)
	found(next)
	p.Place(next)
	p.dec(r)
	p.Jmp(loop)
}

// ifInside goes on at yes if there is a call of one of those functions above, else at no.
func (p *chosenPath) ifInside(yes, no amd64.Label) {
	p.Mov32(amd64.R8, amd64.RDI)
	p.each(amd64.R8, no, func(next amd64.Label) {
		p.TestMem32Imm(p.word(amd64.R8), recordInside)
		p.Jcc(amd64.CondNE, yes)
	})
}

// prune takes away the records at the top that are of calls that are gone, and begins again if there are any.
func (p *chosenPath) prune() {
	loop, goneOne, last, none := p.NewLabel(), p.NewLabel(), p.NewLabel(), p.NewLabel()
	p.Place(loop)
	p.Test(amd64.RAX, amd64.RAX)
	p.Jcc(amd64.CondE, last)
	p.gone(amd64.RAX, goneOne)
	p.Place(last)
	p.Cmp32(amd64.RAX, amd64.RDI)
	p.Jcc(amd64.CondE, none)
	p.setTop()
	p.Jmp(p.again)
	p.Place(goneOne)
	p.dec(amd64.RAX)
	p.Jmp(loop)
	p.Place(none)
}

func (p *chosenPath) enter() {
	p.prune()
	if p.cfg.Depth {
		p.shallow()
	}
	if p.cfg.Inside {
		p.inside()
	}
	if p.cfg.Every > 0 {
		p.every()
	}
	full, push, changed := p.NewLabel(), p.NewLabel(), p.NewLabel()
	p.Place(push)
	p.CmpImm32(amd64.RAX, ring.MaxOpen)
	p.Jcc(amd64.CondAE, full)
	p.Load32(amd64.RCX, p.own())
	p.ShlImm(amd64.RCX, 32)
	p.Or(amd64.RCX, amd64.RDX)
	p.Lea(amd64.RAX, amd64.At(amd64.RAX, 1))
	p.setTop()
	p.Store64(p.sp(amd64.RAX), amd64.RCX)
	p.CmpMem(amd64.RAX, amd64.At(amd64.RSI, ring.AreaTop))
	p.Jcc(amd64.CondNE, changed)
	if p.cfg.Every > 0 {
		p.TestMem32Imm(p.own(), recordNot)
		p.Jcc(amd64.CondNE, p.no)
	}
	p.Jmp(p.yes)
	p.Place(changed) // a handler has taken what was there for a call that is gone
	p.Load32(amd64.RAX, amd64.At(amd64.RSI, ring.AreaTop))
	p.Jmp(push)
	p.Place(full)
	if p.cfg.KeepsAll() {
		p.Jmp(p.no)
	} else {
		p.ifInside(p.yes, p.no)
	}
}

// shallow jumps to no if as many calls are above as may be recorded.
func (p *chosenPath) shallow() {
	ok := p.NewLabel()
	p.MovImm64(amd64.RCX, p.cfg.Ring+ring.HdrDepth)
	p.Load32(amd64.RBX, amd64.At(amd64.RCX, 0))
	p.Cmp32(amd64.RAX, amd64.RBX)
	p.Jcc(amd64.CondB, ok)
	p.Mov32(amd64.R8, amd64.RAX)
	p.each(amd64.R8, ok, func(next amd64.Label) {
		p.TestMem32Imm(p.word(amd64.R8), recordNot)
		p.Jcc(amd64.CondNE, next)
		p.dec(amd64.RBX)
		p.sign(amd64.RBX)
		p.Jcc(amd64.CondLE, p.no)
	})
	p.Place(ok)
}

// inside jumps to no if the call isn't inside. With Inside alone only calls of those functions go on to get a record.
func (p *chosenPath) inside() {
	ok, other := p.NewLabel(), p.NewLabel()
	p.TestMem32Imm(p.own(), recordInside)
	p.Jcc(amd64.CondNE, ok)
	if p.cfg.KeepsAll() {
		p.ifInside(ok, p.no)
	} else {
		p.ifInside(other, p.no)
	}
	p.Place(other)
	if !p.cfg.KeepsAll() {
		p.Jmp(p.yes)
	}
	p.Place(ok)
}

// every counts the call and jumps to no if it is none to be recorded; one of the functions of Inside gets a record nonetheless. The count
// is all threads'.
func (p *chosenPath) every() {
	hit := p.NewLabel()
	p.Load32(amd64.RCX, p.own())
	p.And32Imm(amd64.RCX, recordNot-1)
	p.MovImm64(amd64.R8, p.cfg.Counts)
	p.Lea(amd64.R8, amd64.AtIndex(amd64.R8, amd64.RCX, 4, 0)) // a word is the function's number, doubled
	p.MovImm32(amd64.RCX, 1)
	p.LockXadd64(amd64.At(amd64.R8, 0), amd64.RCX)
	p.Mov(amd64.RBX, amd64.RAX)
	p.Mov(amd64.R8, amd64.RDX)
	p.Mov32(amd64.RAX, amd64.RCX)
	p.MovImm32(amd64.RCX, p.cfg.Every)
	p.MovImm32(amd64.RDX, 0)
	p.Div32(amd64.RCX)
	p.Test(amd64.RDX, amd64.RDX)
	p.Mov(amd64.RAX, amd64.RBX)
	p.Mov(amd64.RDX, amd64.R8)
	p.Jcc(amd64.CondE, hit)
	if !p.cfg.Inside {
		p.Jmp(p.no)
	} else {
		p.Load32(amd64.RCX, p.own())
		p.CmpImm32(amd64.RCX, 0)
		p.Jcc(amd64.CondGE, p.no) // the sign is recordInside
		p.MovImm32(amd64.R8, recordNot)
		p.Or(amd64.RCX, amd64.R8)
		p.Store32(p.own(), amd64.RCX)
	}
	p.Place(hit)
}

func (p *chosenPath) leave() {
	find, next, found, none := p.NewLabel(), p.NewLabel(), p.NewLabel(), p.NewLabel()
	p.Place(find)
	p.Test(amd64.RAX, amd64.RAX)
	p.Jcc(amd64.CondE, none)
	p.above(amd64.RAX)
	p.sign(amd64.RCX)
	p.Jcc(amd64.CondL, next)
	up := p.NewLabel()
	p.Jcc(amd64.CondG, up)
	p.Load32(amd64.RCX, p.word(amd64.RAX))
	p.SubMem32(amd64.RCX, p.own())
	p.Shl32Imm(amd64.RCX, 2) // but for the marks
	p.Jcc(amd64.CondE, found)
	p.Jmp(next)
	p.Place(up)
	p.CmpMem32Imm8(p.word(amd64.RAX), 0)
	p.Jcc(amd64.CondE, next)
	p.CmpImm32(amd64.RCX, reachDown)
	p.Jcc(amd64.CondL, none) // surely the same stack: all that follow are further up
	p.Place(next)
	p.dec(amd64.RAX)
	p.Jmp(find)

	p.Place(found)
	p.Load32(amd64.RBX, p.word(amd64.RAX))
	check, top, goneOne, under := p.NewLabel(), p.NewLabel(), p.NewLabel(), p.NewLabel()
	p.Mov32(amd64.R8, amd64.RAX)
	p.Place(check)
	p.Cmp32(amd64.R8, amd64.RDI)
	p.Jcc(amd64.CondE, top)
	p.Lea(amd64.R8, amd64.At(amd64.R8, 1))
	p.gone(amd64.R8, goneOne)
	p.Jmp(under)
	p.Place(goneOne)
	p.Jmp(check)
	p.Place(under)
	done := p.NewLabel()
	p.Store64Imm(p.sp(amd64.RAX), 0)
	p.Jmp(done)
	p.Place(top)
	p.dec(amd64.RAX)
	p.setTop()
	p.Place(done)
	if p.cfg.Every > 0 {
		p.And32Imm(amd64.RBX, recordNot)
		p.Jcc(amd64.CondNE, p.no)
	}
	p.Jmp(p.yes)

	p.Place(none)
	p.Mov32(amd64.RAX, amd64.RDI)
	p.prune()
	if !p.cfg.KeepsAll() {
		p.ifInside(p.yes, p.no)
	} else {
		p.Jmp(p.no)
	}
}

// setTop makes RAX the number of records. A handler that has come since the top was read has left it as it was.
func (p *chosenPath) setTop() { p.Store64(amd64.At(amd64.RSI, ring.AreaTop), amd64.RAX) }
