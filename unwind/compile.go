package unwind

import (
	"math"

	"github.com/callreel/callreel/cfi"
)

// compile finds out what to do at an address.
func (w *Walker) compile(pc uint64, exact bool) entry {
	e := entry{key: w.arch.keyOf(pc, exact), kind: kindNotCode}
	if !w.arch.isCode(pc) {
		return e
	}
	at := pc
	if !exact {
		at--
	}
	m, ok := w.images.Mapping(at)
	if !ok || !m.Exec {
		return e
	}
	code := w.codeAround(pc)
	if !exact && w.isCall(code.before()) {
		e.traits |= afterCall
	}
	switch {
	case w.signalLayout(code.from()) != nil:
		e.kind, e.by, e.flags = kindSignal, BySignalFrame, SignalFrame
	case m.Image == nil && w.opt.Original != nil:
		e.kind = kindAsk
		e.traits |= jit
	case m.Image == nil:
		e.traits |= jit
		w.compileCode(&e, pc, exact)
	default:
		w.compileImage(&e, m.Image, code, at, exact)
	}
	return e
}

// compileImage finds the rule of code in an image; at is the address to look up.
func (w *Walker) compileImage(e *entry, im Image, code *around, at uint64, exact bool) {
	link := w.arch.add(at, -int64(im.Slide()))
	if exact && w.atReturn(code.from()) {
		// Whatever CFI says, here the return address is on top of the stack; but
		// where code has pushed a target to jump to by ret, that follows no call.
		e.kind, e.by, e.cfaOff = kindSP, ByCode, 8
		e.traits |= guess
		return
	}
	row, signal, err := im.Row(&w.machine, link)
	if err != nil {
		e.kind, e.by = kindDamaged, ByCFI
		return
	}
	if row != nil {
		if signal {
			e.flags |= SignalFrame
		}
		w.compileRow(e, row)
		return
	}
	const entryCode = 64 // _start is some 40 bytes long, and calls a function that never returns
	if start := im.Entry(); start != 0 && link-start < entryCode && !exact {
		e.kind, e.by = kindOutermost, ByCode
		return
	}
	if !exact && e.traits&afterCall == 0 && w.isMadeUp(im, link+1) {
		e.kind, e.by = kindOutermost, ByCFI
		return
	}
	w.compileCode(e, code.pc, exact)
}

// isMadeUp says of a return address behind no call, before which no function is, that it is
// a function's first instruction, and that its caller would be in the link register: the
// address was put there for who made the stack, as makecontext does in glibc for arm64
// (__startcontext). That function has no caller: what is in the register is its own address.
func (w *Walker) isMadeUp(im Image, link uint64) bool {
	if w.arch.lr < 0 {
		return false
	}
	row, _, err := im.Row(&w.machine, link)
	if err != nil || row == nil {
		return false
	}
	kind := row.RA().Kind
	return kind == cfi.Unspecified || kind == cfi.SameValue
}

// compileRow makes a simple entry of a row, or keeps the row.
func (w *Walker) compileRow(e *entry, row *cfi.Row) {
	e.by = ByCFI
	if e.flags.Has(SignalFrame) {
		e.by = BySignalFrame
	}
	if row.RA().Kind == cfi.Undefined {
		e.kind = kindOutermost
		return
	}
	if w.simple(e, row) {
		return
	}
	if len(w.rows) >= maxRows {
		w.forget()
	}
	e.kind, e.row = kindRow, uint32(len(w.rows))
	w.rows = append(w.rows, row.Clone())
}

// simple says whether a fast walk can apply the row, and fills in how.
func (w *Walker) simple(e *entry, row *cfi.Row) bool {
	a := w.arch
	if a.lr >= 0 || a.wordSize != 8 || e.flags.Has(SignalFrame) || row.CFA.Kind != cfi.RegOffset ||
		!fits(row.CFA.Offset) || row.CFA.Offset <= 0 {
		return false
	}
	if ra := row.RA(); ra.Kind != cfi.Offset || ra.Offset != -8 || row.Reg(uint32(a.sp)).Kind != cfi.Unspecified {
		return false
	}
	var k kind
	switch int(row.CFA.Reg) {
	case a.sp:
		k = kindSP
	case a.fp:
		k = kindFP
	default:
		return false
	}
	fp := row.Reg(uint32(a.fp))
	switch fp.Kind {
	case cfi.Unspecified, cfi.SameValue:
	case cfi.Offset:
		if fp.Offset == 0 || !fits(fp.Offset) {
			return false
		}
		e.fpOff = int32(fp.Offset)
	default:
		return false
	}
	e.kind, e.cfaOff = k, int32(row.CFA.Offset)
	return true
}

// fits says whether a fast walk can take an offset.
func fits(off int64) bool { return off >= math.MinInt32 && off <= math.MaxInt32 && off&7 == 0 }

// compileCode finds the rule of code without CFI. What the instructions say goes
// before the frame pointer, which such code need not keep: PostgreSQL's compiled queries
// do not, and HotSpot's code only where asked. In a JIT compiler's code calls may take
// arguments off the stack (V8's do), which leads those astray who follow it; then no
// return address is found.
func (w *Walker) compileCode(e *entry, pc uint64, exact bool) {
	e.traits |= guess
	if w.compileFollowed(e, pc) && (e.traits&jit == 0 || exact || e.kind == kindSP) {
		return
	}
	w.framePointerEntry(e)
}

// framePointerEntry makes the entry of a frame record: the caller's frame pointer and
// behind it the return address.
func (w *Walker) framePointerEntry(e *entry) {
	e.kind, e.by, e.cfaOff, e.fpOff = kindNoRule, ByFramePointer, 0, 0
	if w.arch.lr < 0 && w.arch.wordSize == 8 {
		e.kind, e.cfaOff, e.fpOff = kindFP, 16, -16
	}
}

// compileFollowed makes an entry of what the instructions at pc lead to.
func (w *Walker) compileFollowed(e *entry, pc uint64) bool {
	if !w.arch.amd64 {
		return false
	}
	out, ok := w.follower.follow(&w.reader, pc)
	if !ok {
		return false
	}
	e.by = ByCode
	if out.halts {
		e.kind = kindOutermost
		return true
	}
	e.kind, e.cfaOff, e.fpOff = kindSP, out.cfaOff, out.fpOff
	if out.byFP {
		e.kind = kindFP
	}
	return true
}
