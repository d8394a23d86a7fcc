package unwind

import (
	"errors"

	"github.com/callreel/callreel/cfi"
)

// step goes to the caller of the last frame by any rule, with all checks. It returns
// false with the walk's end, or true with one more frame.
func (w *Walker) step(frames []Frame) ([]Frame, End, bool) {
	k := &w.walk
	e := k.entry
	frame := &frames[len(frames)-1]
	w.reader.late = false
	switch {
	case e.kind == kindOutermost:
		return frames, End{}, false
	case e.kind == kindSignal:
		return w.stepSignal(frames)
	case e.kind == kindNotCode:
		return w.stepLeaf(frames)
	case e.traits&guess != 0 || e.kind == kindNoRule || e.kind == kindAsk:
		return w.stepGuess(frames, End{Reason: NoCFI, Addr: frame.PC})
	case e.kind == kindDamaged:
		return w.stepGuess(frames, End{Reason: DamagedCFI, Addr: frame.PC})
	}
	next, end, ok := w.byRow(&e, frames)
	if ok {
		var more []Frame
		if more, end, ok = w.advance(frames, &next, e.by); ok {
			return more, end, true
		}
	}
	if end.Complete() {
		return frames, end, false
	}
	// Some rows are wrong, mostly in hand-written assembly. The code itself cannot be.
	if frame.Has(Exact) && w.arch.followed() {
		if more, _, ok := w.try(frames, w.byFollowing, ByCode); ok {
			return more, End{}, true
		}
	}
	return frames, end, false
}

// byRow computes the caller's registers by CFI. Most rows need nothing beyond stack
// pointer and frame pointer; only for the others are the rest caught up with.
func (w *Walker) byRow(e *entry, frames []Frame) (Registers, End, bool) {
	k := &w.walk
	at := len(frames) - 1
	row, end, ok := w.rowOf(e, &frames[at])
	if !ok {
		return Registers{}, end, false
	}
	if k.regsAt != at && e.traits&needsAll == 0 {
		few := &w.few
		few.keepOnly(0)
		few.PC = frames[at].PC
		few.Set(w.arch.sp, k.sp)
		if k.fpKnown {
			few.Set(w.arch.fp, k.fp)
		}
		next, end, ok := w.apply(row, few, false)
		if ok || end.Reason != LostRegister {
			return next, end, ok
		}
		w.cache[k.slot].traits |= needsAll
	}
	if k.regsAt != at {
		if end, ok := w.catchUp(frames); !ok {
			return Registers{}, end, false
		}
		if row, end, ok = w.rowOf(e, &frames[at]); !ok { // the machine was used
			return Registers{}, end, false
		}
	}
	next, end, ok := w.apply(row, &k.regs, true)
	return next, end, ok
}

// rowOf returns the row of a frame; it is valid until the next call.
func (w *Walker) rowOf(e *entry, f *Frame) (*cfi.Row, End, bool) {
	if e.kind == kindRow && int(e.row) < len(w.rows) {
		return &w.rows[e.row], End{}, true
	}
	at := f.CodeAddr()
	if m, ok := w.images.Mapping(at); ok && m.Image != nil {
		row, _, err := m.Image.Row(&w.machine, w.arch.add(at, -int64(m.Image.Slide())))
		if err != nil {
			return nil, End{Reason: DamagedCFI, Addr: f.PC, Err: err}, false
		}
		if row != nil {
			return row, End{}, true
		}
	}
	return nil, End{Reason: NoCFI, Addr: f.PC}, false
}

// catchUp brings all registers to the last frame, going again from frame to frame.
// Each is gone through once in a walk.
func (w *Walker) catchUp(frames []Frame) (End, bool) {
	k := &w.walk
	for ; k.regsAt < len(frames)-1; k.regsAt++ {
		f := &frames[k.regsAt]
		e := w.cache[w.find(f.PC, f.Has(Exact))]
		next, end, ok := w.again(&e, f, frames[k.regsAt+1].By)
		if !ok {
			return end, false
		}
		// What was late may read differently now; the frames stand.
		next.PC = frames[k.regsAt+1].PC
		next.Set(w.arch.sp, frames[k.regsAt+1].SP)
		k.regs = next
	}
	return End{}, true
}

// again computes the registers of a known frame's caller, which was found by a rule.
func (w *Walker) again(e *entry, f *Frame, by Rule) (Registers, End, bool) {
	k := &w.walk
	switch by {
	case ByCode:
		w.forgetLink(f)
		return w.byFollowing(&k.regs)
	case ByFramePointer:
		return w.byFramePointer(&k.regs)
	case ByLeaf:
		return w.byLeaf(&k.regs)
	}
	row, end, ok := w.rowOf(e, f)
	if !ok {
		return Registers{}, end, false
	}
	return w.apply(row, &k.regs, true)
}

// apply computes the caller's registers by a row (DWARF 5 §6.4.3). Unless all are
// wanted they are program counter, stack pointer and frame pointer.
func (w *Walker) apply(row *cfi.Row, r *Registers, all bool) (Registers, End, bool) {
	a := w.arch
	w.evalRegs = r
	defer func() { w.evalRegs = nil }()
	var next Registers
	if all {
		next = *r
	} else if fp, ok := r.Get(a.fp); ok {
		next.Set(a.fp, fp)
	}
	cfa, end, ok := w.cfa(row, r)
	if !ok {
		return next, end, false
	}
	next.Set(a.sp, cfa)
	ra := row.RA()
	switch {
	case ra.Kind == cfi.Undefined:
		return next, End{}, false
	case ra.Kind == cfi.Unspecified || ra.Kind == cfi.SameValue:
		// The return address is still in the link register.
		if next.PC, ok = r.Get(int(row.RAReg)); !ok {
			return next, End{Reason: LostRegister, Addr: r.PC}, false
		}
	default:
		if next.PC, end, ok = w.value(&ra, cfa, r); !ok {
			return next, end, false
		}
	}
	for k := range row.Regs {
		rule := &row.Regs[k]
		reg := int(rule.Reg)
		if rule.Reg == row.RAReg && reg != a.lr || !all && reg != a.fp && reg != a.sp {
			continue
		}
		switch rule.Kind {
		case cfi.Unspecified, cfi.SameValue:
			continue
		case cfi.Undefined:
			next.Forget(reg)
			continue
		}
		v, end, ok := w.value(&rule.Rule, cfa, r)
		switch {
		case ok:
			next.Set(reg, v)
		case reg == a.sp || !all && end.Reason == LostRegister: // with all registers it may be known
			return next, end, false
		default:
			next.Forget(reg) // nothing may depend on it
		}
	}
	return next, End{}, true
}

// cfa computes the canonical frame address.
func (w *Walker) cfa(row *cfi.Row, r *Registers) (uint64, End, bool) {
	switch row.CFA.Kind {
	case cfi.RegOffset:
		v, ok := r.Get(int(row.CFA.Reg))
		if !ok {
			return 0, End{Reason: LostRegister, Addr: r.PC}, false
		}
		return w.arch.add(v, row.CFA.Offset), End{}, true
	case cfi.ValExpression:
		w.evalInput.HasCFA = false
		return w.eval(row.CFA.Expr, r)
	}
	return 0, End{Reason: DamagedCFI, Addr: r.PC}, false
}

// value computes a register of the caller.
func (w *Walker) value(rule *cfi.Rule, cfa uint64, r *Registers) (uint64, End, bool) {
	addr := w.arch.add(cfa, rule.Offset)
	switch rule.Kind {
	case cfi.Offset:
	case cfi.ValOffset:
		return addr, End{}, true
	case cfi.Register:
		if v, ok := r.Get(int(rule.Reg)); ok {
			return v, End{}, true
		}
		return 0, End{Reason: LostRegister, Addr: r.PC}, false
	case cfi.Expression, cfi.ValExpression:
		w.evalInput.HasCFA, w.evalInput.CFA = true, cfa
		v, end, ok := w.eval(rule.Expr, r)
		if !ok || rule.Kind == cfi.ValExpression {
			return v, end, ok
		}
		addr = v
	default:
		return 0, End{Reason: DamagedCFI, Addr: r.PC}, false
	}
	v, ok := w.reader.word(addr)
	if !ok {
		return 0, End{Reason: Unreadable, Addr: addr}, false
	}
	return v, End{}, true
}

// eval computes an expression.
func (w *Walker) eval(expr []byte, r *Registers) (uint64, End, bool) {
	v, err := w.evaluator.Eval(expr, &w.evalInput)
	if err == nil {
		return v, End{}, true
	}
	var e *cfi.EvalError
	if errors.As(err, &e) {
		switch {
		case errors.Is(err, cfi.ErrExprRegister):
			return 0, End{Reason: LostRegister, Addr: r.PC, Err: err}, false
		case errors.Is(err, cfi.ErrExprMemory):
			return 0, End{Reason: Unreadable, Addr: e.Addr}, false
		}
	}
	return 0, End{Reason: DamagedCFI, Addr: r.PC, Err: err}, false
}

// evalReg is how expressions see registers.
func (w *Walker) evalReg(reg uint32) (uint64, bool) { return w.evalRegs.Get(int(reg)) }
