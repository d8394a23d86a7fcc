package unwind

import "github.com/callreel/callreel/isa/arm64"

// a64Value is what a register holds on a way through A64 code, in terms of what registers hold where the way begins.
type a64Value struct {
	kind a64Kind
	reg  uint8 // of a64Register: whose value it is; of the others: the base, a64SP or a64FP
	off  int32 // from the base, bytes
}

type a64Kind uint8

const (
	a64Lost     a64Kind = iota
	a64Register         // what a register held
	a64Address          // an address in the frame
	a64Loaded           // what the memory holds there
)

const (
	a64FP = 29
	a64LR = 30
	a64SP = 31

	// a64Clobbered is how many registers, from x0 on, a call needn't keep (AAPCS64 §6.1.1); x18 is the platform's.
	a64Clobbered = 19
	// maxA64Stores bounds the stores that are remembered on a way: functions have ten registers to save.
	maxA64Stores = 16
)

// a64Way is one place that A64 code may get to, and what registers hold there.
type a64Way struct {
	pc     uint64
	regs   [32]a64Value
	called bool
	stores [maxA64Stores]a64Store
	stored int
}

// a64Store is a register that was stored.
type a64Store struct {
	to, what a64Value
}

// a64Outcome is where code leads: to a return.
type a64Outcome struct {
	regs   [32]a64Value
	to     a64Value // where it returns to
	direct bool     // without a call on the way, which might never return
}

// a64Follower follows A64 code without CFI forward to the return of its function, as follower does with x86-64's: what is saved in the frame is
// loaded on the way, and where nothing is, the link register has the return address still.
type a64Follower struct {
	codeReader
	ways []a64Way
	seen visits
	inst arm64.Inst
}

// follow returns the first return that is met.
func (f *a64Follower) follow(r *reader, pc uint64) (out a64Outcome, ok bool) {
	f.begin(r)
	defer f.end()
	first := a64Way{pc: pc}
	for k := range first.regs[:a64SP] {
		first.regs[k] = a64Value{a64Register, uint8(k), 0}
	}
	first.regs[a64SP] = a64Value{a64Address, a64SP, 0}
	f.ways = append(f.ways[:0], first)
	f.seen.begin(pc)
	for budget := maxFollowed; len(f.ways) > 0 && budget > 0; {
		way := f.ways[len(f.ways)-1]
		f.ways = f.ways[:len(f.ways)-1]
		if out, ok = f.walk(&way, &budget); ok {
			return out, true
		}
	}
	return a64Outcome{}, false
}

// walk follows one way as far as it goes.
func (f *a64Follower) walk(w *a64Way, budget *int) (a64Outcome, bool) {
	for ; *budget > 0; *budget-- {
		in := &f.inst
		if arm64.DecodeTo(in, f.at(w.pc, arm64.Len)) != nil {
			return a64Outcome{}, false
		}
		switch in.Kind {
		case arm64.Return:
			return w.returned(returnRegister(in))
		case arm64.IndirectJump:
			if n := in.Rn(); n == 16 || n == 17 { // of a PLT's stub, or a call in the last place (AAPCS64 §6.1.1)
				return w.returned(a64LR)
			}
			return a64Outcome{}, false // a jump table
		case arm64.Jump:
			to, _ := in.Target(w.pc)
			if to == f.seen.start || !f.seen.first(to) {
				return a64Outcome{}, false
			}
			w.pc = to
			continue
		case arm64.CondJump:
			if to, ok := in.Target(w.pc); ok && f.seen.first(to) && len(f.ways) < maxBranches {
				branch := *w
				branch.pc = to
				f.ways = append(f.ways, branch)
			}
		case arm64.Breakpoint, arm64.Undefined, arm64.ExceptionReturn:
			return a64Outcome{}, false
		default:
			w.effect(in)
		}
		w.pc += arm64.Len
	}
	return a64Outcome{}, false
}

// returnRegister is what a return goes by: ret's operand, and the link register for those that authenticate.
func returnRegister(in *arm64.Inst) int {
	if in.Class == arm64.BranchReg {
		return int(in.Rn())
	}
	return a64LR
}

// returned ends a way in a return to what a register holds.
func (w *a64Way) returned(by int) (a64Outcome, bool) {
	sp, to := w.regs[a64SP], w.regs[by]
	if by == a64SP || sp.kind != a64Address || sp.reg == a64SP && sp.off < 0 || to.kind != a64Register && to.kind != a64Loaded {
		return a64Outcome{}, false
	}
	return a64Outcome{regs: w.regs, to: to, direct: !w.called}, true
}

// effect applies an instruction that goes on to the next one.
func (w *a64Way) effect(in *arm64.Inst) {
	switch {
	case in.Kind == arm64.Call || in.Kind == arm64.IndirectCall:
		w.called = true
		clear(w.regs[:a64Clobbered])
		w.regs[a64LR] = a64Value{}
	case in.Class == arm64.AddSubImm:
		w.add(in)
	case in.Class == arm64.Plain && in.Word&0xFFE0FFE0 == 0xAA0003E0 && in.Rd() != a64SP && in.Rm() != a64SP: // mov
		w.regs[in.Rd()] = w.regs[in.Rm()]
	case in.Class == arm64.Load || in.Class == arm64.LoadPair || in.Class == arm64.Store || in.Class == arm64.StorePair:
		w.access(in)
	case in.Class == arm64.Sign || in.Class == arm64.Authenticate || in.Class == arm64.Strip: // signatures are taken off in the end
	default:
		w.lose(in)
	}
}

// lose gives up what an instruction writes.
func (w *a64Way) lose(in *arm64.Inst) {
	for r := range arm64.Reg(a64SP + 1) {
		if in.WritesReg(r) {
			w.regs[r] = a64Value{}
		}
	}
}

// address is a register as the base of an address. The frame pointer is one where it is as it was.
func (w *a64Way) address(r arm64.Reg, off int64) a64Value {
	v := w.regs[r]
	if v == (a64Value{a64Register, a64FP, 0}) {
		v = a64Value{a64Address, a64FP, 0}
	}
	return v.plus(off)
}

// plus moves an address. What is moved by more than any frame has is lost.
func (v a64Value) plus(off int64) a64Value {
	const most = 1 << 30
	to := int64(v.off) + off
	if v.kind != a64Address || to > most || to < -most {
		return a64Value{}
	}
	v.off = int32(to)
	return v
}

// add covers add and sub with an immediate, of which moves to and from the stack pointer are.
func (w *a64Way) add(in *arm64.Inst) {
	by := in.Immediate()
	if in.Word>>30&1 != 0 {
		by = -by
	}
	v := w.address(in.Rn(), by)
	if in.Word>>31 == 0 { // the lower half
		v = a64Value{}
	}
	if flags := in.Word>>29&1 != 0; flags && in.Rd() == a64SP { // the zero register
		return
	}
	w.regs[in.Rd()] = v
}

// access covers loads and stores of one register or two.
func (w *a64Way) access(in *arm64.Inst) {
	const registerSize = 8
	vector := in.Word>>26&1 != 0
	load := in.Class == arm64.Load || in.Class == arm64.LoadPair
	pair := in.Class == arm64.LoadPair || in.Class == arm64.StorePair
	if in.Base == arm64.NoReg || in.Index || in.Size != registerSize || vector {
		delta, known := in.StackDelta()
		moved := w.address(a64SP, int64(delta))
		if w.lose(in); known {
			w.regs[a64SP] = moved
		}
		return
	}
	moved := w.address(in.Base, int64(in.Disp))
	at := moved
	if in.PostIndex {
		at = w.address(in.Base, 0)
	}
	for k, r := range [...]arm64.Reg{in.Rd(), in.Rt2()} {
		if k > 0 && !pair {
			break
		}
		place := at.plus(registerSize * int64(k))
		if load {
			if r != a64SP { // else it is the zero register
				w.regs[r] = w.loaded(place)
			}
		} else if r != a64SP {
			w.store(place, w.regs[r])
		} else {
			w.store(place, a64Value{})
		}
	}
	if in.Writeback {
		w.regs[in.Base] = moved
	}
}

// loaded is what a place holds. Below where the stack pointer was, at the way's beginning, is only what was stored there since.
func (w *a64Way) loaded(at a64Value) a64Value {
	if at.kind != a64Address {
		return a64Value{}
	}
	for k := w.stored - 1; k >= 0; k-- {
		if w.stores[k].to == at {
			return w.stores[k].what
		}
	}
	if at.reg == a64SP && at.off < 0 {
		return a64Value{}
	}
	return a64Value{a64Loaded, at.reg, at.off}
}

// store notes what is stored. The oldest is forgotten for the newest: it was no register that is to be restored, or is restored already.
func (w *a64Way) store(at, what a64Value) {
	switch {
	case at.kind != a64Address:
		return
	case w.stored == maxA64Stores:
		copy(w.stores[:], w.stores[1:])
		w.stored--
	}
	w.stores[w.stored] = a64Store{at, what}
	w.stored++
}

// byA64 computes the caller's registers from the A64 instructions ahead.
func (w *Walker) byA64(r *Registers) (Registers, End, bool) {
	out, ok := w.a64.follow(&w.reader, r.PC)
	if !ok {
		return Registers{}, End{Reason: NoCFI, Addr: r.PC}, false
	}
	next := *r
	for reg := range out.regs {
		if v, ok := w.a64Value(out.regs[reg], r); ok {
			next.Set(reg, v)
		} else {
			next.Forget(reg)
		}
	}
	if next.PC, ok = w.a64Value(out.to, r); !ok {
		return next, End{Reason: LostRegister, Addr: r.PC}, false
	}
	// A thread that has not run yet has nowhere to return to.
	return next, End{}, next.PC != 0 || !out.direct
}

// a64Value is what a value is in a process.
func (w *Walker) a64Value(v a64Value, r *Registers) (uint64, bool) {
	if v.kind == a64Lost {
		return 0, false
	}
	base, ok := r.Get(int(v.reg))
	if !ok || v.kind == a64Register {
		return base, ok
	}
	addr := w.arch.add(base, int64(v.off))
	if v.kind == a64Loaded {
		return w.reader.word(addr)
	}
	return addr, true
}
