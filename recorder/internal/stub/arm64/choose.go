package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// With Config.Depth, Inside and Every it is decided at each entry whether the call is recorded, and its exit has to find the same. For that
// there is the thread's open stack: with Depth or Every it has a record of each open call that is recorded, else, and besides, one of each
// open call of the functions that are stub.Probe.Inside. What the rules are, and why handlers in between do no harm, is said at the same of
// x86-64.
const (
	reachDown = 1 << 20
	reachUp   = 8 << 20
)

// Marks in a record's word: of a call of one of those functions, and of one that isn't recorded nonetheless, by Every.
const (
	bitInside    = 31
	bitNot       = 30
	recordInside = 1 << bitInside
	recordNot    = 1 << bitNot
)

// choose appends the decision to an event: it goes to off when the event isn't to be written. load is to append the loading of w16 with the
// word of the call's entry.
func (c *coder) choose(exit bool, spDelta int32, load func(), off arm64.Label) {
	c.whileOn(off)
	load()
	c.push(lr, zr)
	c.spAtEntry(x17, spDelta)
	c.BlTo(c.routines.chosen[btoi(exit)])
	c.pop(lr, zr)
	c.CbzW(x16, off)
}

// whileOn appends a jump to off while the gate is closed, or recording is paused. x16 and x17 are clobbered.
func (c *coder) whileOn(off arm64.Label) {
	closed := c.whenClosed(c.PC(), off)
	c.loadAt(x16, c.cfg.Gate)
	c.Tbz(x16, gateOpen, closed)
	c.unlessPaused(off)
}

// chosenPath is a routine that is called with w16 the word of the entry and x17 the stack pointer at the function's entry, and returns in w16
// whether the event is to be written, or of the open stack whether there was space for the record, or whether there was one.
//
// Registers inside: x0 the area, w1 the stack pointer's low half, x2 the top as read, x3 how many records there are to be, x4 a place in
// between, w5 what is compared, w6 the word, x7 the flags, w16 what is left of the depth; x15 and x17 are clobbered.
type chosenPath struct {
	*coder
	again, yes, no, out arm64.Label
}

// routine appends one of them.
func (c *coder) areaRoutine(body func(*chosenPath)) uint64 {
	c.Align(64)
	addr := c.PC()
	p := &chosenPath{coder: c}
	p.again, p.yes, p.no, p.out = c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.beginRoutine()
	c.push(x0, x1)
	c.push(x2, x3)
	c.push(x4, x5)
	c.push(x6, x7)
	c.push(x15, zr)
	c.Mrs(x7, arm64.NZCV)
	c.MovW(x6, x16)
	c.MovW(x1, x17) // its low half
	c.threadID(x0)
	c.CbzW(x0, p.no)
	c.LslImm(x0, x0, ring.AreaShift)
	c.MovImm(x5, c.cfg.Areas)
	c.Add(x0, x0, x5)
	c.Place(p.again)
	c.Load(8, x2, arm64.At(x0, ring.AreaTop))
	c.MovW(x3, x2)
	body(p)
	c.Place(p.yes)
	c.Movz(x16, 1, 0)
	c.B(p.out)
	c.Place(p.no)
	c.Movz(x16, 0, 0)
	c.Place(p.out)
	c.Msr(arm64.NZCV, x7)
	c.pop(x15, zr)
	c.pop(x6, x7)
	c.pop(x4, x5)
	c.pop(x2, x3)
	c.pop(x0, x1)
	c.Ret(lr)
	c.endRoutine()
	return addr
}

// emitOpenStack appends the pushing and popping of records by conditions. emitChosen appends the decisions.
func (c *coder) emitOpenStack() {
	c.routines.open = [2]uint64{c.areaRoutine((*chosenPath).pushRecord), c.areaRoutine((*chosenPath).popRecord)}
}

func (c *coder) emitChosen() {
	c.routines.chosen = [2]uint64{c.areaRoutine((*chosenPath).enter), c.areaRoutine((*chosenPath).leave)}
}

// record makes x17 the address of the record below place r; its stack pointer and word are sp and word then.
func (p *chosenPath) record(r isa.Reg) { p.AddLSL(x17, x0, r, 3) }

func (*chosenPath) sp() arm64.Mem   { return arm64.At(x17, ring.AreaOpen-8) }
func (*chosenPath) word() arm64.Mem { return arm64.At(x17, ring.AreaOpen-4) }

func (p *chosenPath) dec(r isa.Reg) { p.SubImm(r, r, 1) }

// wordOf loads w5 with the word of the record below place r.
func (p *chosenPath) wordOf(r isa.Reg) {
	p.record(r)
	p.Load(4, x5, p.word())
}

// above loads w5 with how far the record below place r is above the event, and compares that with 0.
func (p *chosenPath) above(r isa.Reg) {
	p.record(r)
	p.Load(4, x5, p.sp())
	p.SubsW(x5, x5, x1)
	p.CmpImmW(x5, 0)
}

// gone jumps to yes if the record below place r is of a call that is gone.
func (p *chosenPath) gone(r isa.Reg, yes arm64.Label) {
	no := p.NewLabel()
	p.wordOf(r)
	p.CbzW(x5, yes)
	p.above(r)
	p.BCond(arm64.CondGT, no)
	p.CmpImmW(x5, -reachDown)
	p.BCond(arm64.CondGT, yes)
	p.Place(no)
}

// each goes through the records from place r down: those of calls above the event in the same stack are found, and it goes on at end behind
// the last.
func (p *chosenPath) each(r isa.Reg, end arm64.Label, found func(next arm64.Label)) {
	loop, next := p.NewLabel(), p.NewLabel()
	p.Place(loop)
	p.Cbz(r, end)
	p.wordOf(r)
	p.CbzW(x5, next)
	p.above(r)
	p.BCond(arm64.CondLE, next)
	p.CmpImmW(x5, reachUp)
	p.BCond(arm64.CondGE, next)
	p.wordOf(r)
	found(next)
	p.Place(next)
	p.dec(r)
	p.B(loop)
}

// ifInside goes on at yes if there is a call of one of those functions above, else at no.
func (p *chosenPath) ifInside(yes, no arm64.Label) {
	p.MovW(x4, x2)
	p.each(x4, no, func(arm64.Label) { p.Tbnz(x5, bitInside, yes) })
}

// setTop makes x3 the number of records. A handler that has come since the top was read has left it as it was.
func (p *chosenPath) setTop() { p.Store(8, x3, arm64.At(x0, ring.AreaTop)) }

// prune takes away the records at the top that are of calls that are gone, and begins again if there are any.
func (p *chosenPath) prune() {
	loop, goneOne, last, none := p.NewLabel(), p.NewLabel(), p.NewLabel(), p.NewLabel()
	p.Place(loop)
	p.Cbz(x3, last)
	p.gone(x3, goneOne)
	p.Place(last)
	p.CmpW(x3, x2)
	p.BCond(arm64.CondEQ, none)
	p.setTop()
	p.B(p.again)
	p.Place(goneOne)
	p.dec(x3)
	p.B(loop)
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
	p.CmpImmW(x3, ring.MaxOpen)
	p.BCond(arm64.CondHS, full)
	p.OrrLSL(x5, x1, x6, 32)
	p.AddImm(x3, x3, 1)
	p.setTop()
	p.record(x3)
	p.Store(8, x5, p.sp())
	p.Load(8, x5, arm64.At(x0, ring.AreaTop))
	p.Cmp(x3, x5)
	p.BCond(arm64.CondNE, changed)
	if p.cfg.Every > 0 {
		p.Tbnz(x6, bitNot, p.no)
	}
	p.B(p.yes)
	p.Place(changed) // a handler has taken what was there for a call that is gone
	p.MovW(x3, x5)
	p.B(push)
	p.Place(full)
	if p.cfg.KeepsAll() {
		p.B(p.no)
	} else {
		p.ifInside(p.yes, p.no)
	}
}

// shallow jumps to no if as many calls are above as may be recorded.
func (p *chosenPath) shallow() {
	ok := p.NewLabel()
	p.MovImm(x5, p.cfg.Ring+ring.HdrDepth)
	p.Load(4, x16, arm64.At(x5, 0))
	p.CmpW(x3, x16)
	p.BCond(arm64.CondLO, ok)
	p.MovW(x4, x3)
	p.each(x4, ok, func(next arm64.Label) {
		p.Tbnz(x5, bitNot, next)
		p.SubImmW(x16, x16, 1)
		p.CmpImmW(x16, 0)
		p.BCond(arm64.CondLE, p.no)
	})
	p.Place(ok)
}

// inside jumps to no if the call isn't inside. With Inside alone only calls of those functions go on to get a record.
func (p *chosenPath) inside() {
	ok, other := p.NewLabel(), p.NewLabel()
	p.Tbnz(x6, bitInside, ok)
	if p.cfg.KeepsAll() {
		p.ifInside(ok, p.no)
	} else {
		p.ifInside(other, p.no)
	}
	p.Place(other)
	if !p.cfg.KeepsAll() {
		p.B(p.yes)
	}
	p.Place(ok)
}

// every counts the call and jumps to no if it is none to be recorded; one of the functions of Inside gets a record nonetheless. The count is
// all threads'.
func (p *chosenPath) every() {
	hit := p.NewLabel()
	p.AndImm(x5, x6, recordNot-1)
	p.MovImm(x4, p.cfg.Counts)
	p.AddLSL(x4, x4, x5, 2) // a word is the function's number, doubled
	p.Movz(x5, 1, 0)
	p.fetchAdd(8, x5, x16, x4, x17, x15, arm64.Order{})
	p.MovW(x16, x16)
	p.MovImm(x5, uint64(p.cfg.Every))
	p.Udiv(x17, x16, x5)
	p.Msub(x17, x17, x5, x16) // the remainder
	p.Cbz(x17, hit)
	if !p.cfg.Inside {
		p.B(p.no)
	} else {
		p.Tbz(x6, bitInside, p.no)
		p.OrrImm(x6, x6, recordNot)
	}
	p.Place(hit)
}

func (p *chosenPath) leave() {
	find, next, found, none := p.NewLabel(), p.NewLabel(), p.NewLabel(), p.NewLabel()
	p.Place(find)
	p.Cbz(x3, none)
	p.above(x3)
	p.BCond(arm64.CondLT, next)
	up := p.NewLabel()
	p.BCond(arm64.CondGT, up)
	p.wordOf(x3)
	p.SubW(x5, x5, x6)
	p.LslImmW(x5, x5, 2) // but for the marks
	p.CbzW(x5, found)
	p.B(next)
	p.Place(up)
	p.Load(4, x15, p.word())
	p.CbzW(x15, next)
	p.CmpImmW(x5, reachDown)
	p.BCond(arm64.CondLT, none) // surely the same stack: all that follow are further up
	p.Place(next)
	p.dec(x3)
	p.B(find)

	p.Place(found)
	p.wordOf(x3)
	p.MovW(x16, x5)
	check, top, under, done := p.NewLabel(), p.NewLabel(), p.NewLabel(), p.NewLabel()
	p.MovW(x4, x3)
	p.Place(check)
	p.CmpW(x4, x2)
	p.BCond(arm64.CondEQ, top)
	p.AddImm(x4, x4, 1)
	p.gone(x4, check)
	p.Place(under)
	p.record(x3)
	p.Store(8, zr, p.sp())
	p.B(done)
	p.Place(top)
	p.dec(x3)
	p.setTop()
	p.Place(done)
	if p.cfg.Every > 0 {
		p.Tbnz(x16, bitNot, p.no)
	}
	p.B(p.yes)

	p.Place(none)
	p.MovW(x3, x2)
	p.prune()
	if !p.cfg.KeepsAll() {
		p.ifInside(p.yes, p.no)
	} else {
		p.B(p.no)
	}
}

// pushRecord and popRecord change the top by an exchange of the count together with a number of the change: if a handler has pushed and
// popped in between it fails, and all is done again, the record's writing included.
func (p *chosenPath) pushRecord() {
	loop, found := p.NewLabel(), p.NewLabel()
	p.Place(loop)
	p.Cbz(x3, found)
	p.record(x3)
	p.Load(4, x5, p.sp())
	p.CmpW(x1, x5)
	p.BCond(arm64.CondLO, found) // the caller's, or a caller's of it
	p.dec(x3)
	p.B(loop)
	p.Place(found)
	p.CmpImmW(x3, ring.MaxOpen)
	p.BCond(arm64.CondHS, p.no)
	p.OrrLSL(x5, x1, x6, 32)
	p.AddImm(x3, x3, 1)
	p.record(x3)
	p.Store(8, x5, p.sp())
	p.exchangeTop()
}

func (p *chosenPath) popRecord() {
	loop, found := p.NewLabel(), p.NewLabel()
	p.OrrLSL(x4, x1, x6, 32)
	p.Place(loop)
	p.Cbz(x3, p.no)
	p.record(x3)
	p.Load(8, x5, p.sp())
	p.Cmp(x4, x5)
	p.BCond(arm64.CondEQ, found)
	p.CmpW(x1, x5)
	p.BCond(arm64.CondLO, p.no)
	p.dec(x3)
	p.B(loop)
	p.Place(found)
	p.dec(x3)
	p.exchangeTop()
}

// exchangeTop makes x3 the number of records, with the next number of change, unless the top has changed since it was read.
func (p *chosenPath) exchangeTop() {
	p.LsrImm(x5, x2, 32)
	p.AddImm(x5, x5, 1)
	p.OrrLSL(x5, x3, x5, 32)
	p.swapIf(8, x2, x5, x0, x17, x15, arm64.Order{}, p.again)
	p.B(p.yes)
}
