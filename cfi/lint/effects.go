package lint

// effects carries states over instructions. The fields beside the state are those of the instruction at hand.
type effects struct {
	p    *processor
	s    *state
	inst *inst
	addr uint64
	id   int32 // of the instruction, for anchors

	// Of the whole function: registers whose value on entry went to where it cannot be followed, and
	// whether the stack pointer was loaded from elsewhere, as what switches stacks does.
	escaped  uint64
	switches bool
	// installs says that the function returns into another frame, as unwinders do that have found a handler's: what it saves of its
	// own is overwritten then.
	installs bool
	// What was written of the frame, with other things between, and whether there was more.
	touched    []extent
	touchedAll bool
	// fromRows says that states come from rows: what is not known in them then is not what is on its way elsewhere.
	fromRows bool
	// kept tells which registers a call's target certainly keeps beside those that all do. By those of relied the function returns:
	// whatever it calls keeps them.
	kept   func(in *inst) uint64
	relied uint64
	// saved are the registers of which some row says that they are saved in the frame: what is in them and of which it isn't known
	// whether it was there on entry is the function's own, since it has no reason to bring the caller's value elsewhere.
	saved uint64
}

// extent is n bytes of the own frame.
type extent struct {
	at place
	n  int64
}

// The bits of e.escaped for values of which it is not known whose they are.
const (
	anyEscaped    = 1 << 62 // of a register that calls keep
	anyArgEscaped = 1 << 63 // of another one
)

// step changes the state to that behind the instruction. Of a call it is the state after the return.
func (e *effects) step(p *processor, s *state, n *node, id int32) {
	e.p, e.s, e.inst, e.addr, e.id = p, s, &n.inst, n.addr, id
	p.step(e, &n.inst)
}

// called forgets what a function that keeps to the ABI may change. What is below the stack pointer is the callee's.
func (e *effects) called() {
	kept := uint64(0)
	if e.kept != nil {
		kept = e.kept(e.inst)
	}
	for r := range e.s.regs {
		switch {
		case e.p.callerSaved&^e.relied>>r&1 == 0:
		case kept>>r&1 != 0:
			e.s.regs[r] = value{may: mayStack}
		default:
			e.s.regs[r] = value{may: mayStack | mayCallee}
		}
	}
	if sp := e.s.regs[e.p.sp]; sp.framed() {
		p := placeOf(sp)
		for k := range e.s.slots {
			if at := e.s.slots[k].at; at.anchor == p.anchor && at.off < p.off {
				e.s.slots[k].val = value{may: mayStack | mayCallee}
			}
		}
	}
}

// set gives a register a value. A stack pointer that does not come from the own frame belongs to another stack.
func (e *effects) set(r int, v value) {
	if r == e.p.sp && !v.framed() && v.maybe()&mayOwn == 0 {
		e.switches = true
		v = top
	}
	if r == e.p.sp {
		v.hearsay = false
	}
	e.s.regs[r] = v
}

// moveSP moves the stack pointer by n bytes.
func (e *effects) moveSP(n int64) { e.s.regs[e.p.sp] = e.s.regs[e.p.sp].add(n) }

// sum gives a register a sum. A stack pointer moved by what is not known stands at a new place of the own frame.
func (e *effects) sum(r int, v, by value) {
	if r == e.p.sp && !v.framed() {
		if e.s.regs[e.p.sp].framed() && by.maybe()&mayOwn == 0 {
			e.anchor(r)
			return
		}
		v = top
	}
	e.s.regs[r] = v
}

// anchor makes this instruction stand for the place that a register now leads to.
func (e *effects) anchor(r int) {
	e.s.forget(e.id)
	e.s.regs[r] = value{kind: anchored, id: e.id}
}

// loadFrom reads n bytes. What does not come from the own frame is no register's value on entry, unless that went there.
// elsewhere says that an address which is only known to lead to the own frame leads to something else than where registers are saved.
func (e *effects) loadFrom(at value, n int64, elsewhere bool) value {
	switch {
	case at.framed() && n == 8:
		v := e.s.at(placeOf(at))
		if v.kind == never {
			return value{may: mayStack}
		}
		v.hearsay = v.framed()
		return v
	case at.framed():
		return value{}
	case at.maybe()&mayOwn != 0 && !elsewhere:
		return top
	case at.maybe()&mayOwn != 0:
		return value{may: mayStack | mayOwn}
	}
	return value{may: mayStack}
}

// store writes n bytes.
func (e *effects) store(at, v value, n int64) {
	if !at.framed() {
		e.escape(v)
		return
	}
	e.touch(placeOf(at), n)
	if at.hearsay {
		e.escape(v)
		e.s.blur(placeOf(at), n, v.maybe())
		return
	}
	if n == 8 {
		e.s.put(placeOf(at), v)
		return
	}
	// A piece of a register's slot is written on paths only that cannot be taken, such as an unrolled loop that is longer than its
	// array.
	e.s.blur(placeOf(at), n, v.maybe())
}

// maxTouched bounds the places that are remembered to have been written.
const maxTouched = 1 << 10

// touch notes that something was written to a place. It errs towards more.
func (e *effects) touch(p place, n int64) {
	for k := range e.touched {
		if t := &e.touched[k]; t.at.anchor == p.anchor && p.off <= t.at.off+t.n && p.off+n >= t.at.off {
			end := max(t.at.off+t.n, p.off+n)
			t.at.off = min(t.at.off, p.off)
			t.n = end - t.at.off
			return
		}
	}
	if len(e.touched) < maxTouched {
		e.touched = append(e.touched, extent{p, n})
	} else {
		e.touchedAll = true
	}
}

// untouched says whether no instruction of the function writes to 8 bytes of the frame.
func (e *effects) untouched(p place) bool {
	if e.touchedAll {
		return false
	}
	for _, t := range e.touched {
		if t.at.anchor != p.anchor || p.off < t.at.off+t.n && p.off+8 > t.at.off {
			return false
		}
	}
	return true
}

// escape notes that a value goes to where it cannot be followed.
func (e *effects) escape(v value) {
	switch {
	case v.kind == entry && v.id < returnAddress:
		e.escaped |= 1 << v.id
	case v.kind == unknown && !e.fromRows:
		if v.may&mayEntry != 0 {
			e.escaped |= anyEscaped
		}
		if v.may&mayArg != 0 {
			e.escaped |= anyArgEscaped
		}
	}
}
