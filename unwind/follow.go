package unwind

import (
	"bytes"
	"math"

	"github.com/callreel/callreel/isa/amd64"
)

// What following code may cost. Functions without CFI are short: stubs, start-up code
// and assembly; in longer ones the way to a return is mostly short.
const (
	maxFollowed = 1024 // instructions
	maxBranches = 32   // ways not yet followed
	followChunk = 512  // bytes of code read at once
)

// outcome is where x86-64 code leads: to a return when the stack pointer is cfaOff-8
// above what it is now, or above the frame pointer.
type outcome struct {
	byFP   bool
	halts  bool // it leads to hlt instead: nothing returns from here
	direct bool // without a call on the way, which might never return
	cfaOff int32
	fpOff  int32     // where the frame pointer was popped from, relative to the CFA; 0: it is unchanged
	popped [16]int32 // the same for each register by DWARF number
}

// way is one place that code may get to, and what is on the stack there.
type way struct {
	pc     uint64
	byFP   bool  // sp counts from the frame pointer
	spLost bool  // sp is not known any more
	called bool  // there was a call
	sp     int64 // where the stack pointer is, from where it is now
	fp     int64 // where the frame pointer is, from where the stack pointer is now; see fpState
	fpIs   fpState
	popped [16]int64 // place that a register was popped from, and poppedBit
	pushes bool      // the instruction before pushes what is at a RIP-relative address
}

// fpState is what is known of the frame pointer.
type fpState uint8

const (
	fpOwn     fpState = iota // as it is now
	fpOnStack                // made to point to the stack, at way.fp
	fpLost
)

const notPopped = math.MinInt64

// follower follows code without CFI forward to the return of its function and adds up
// what that does to the stack. Calls are taken to leave the stack as it is.
type follower struct {
	codeReader
	ways   []way
	seen   visits
	budget int  // instructions
	unsure bool // a way ended in what cannot be followed
	before [6]byte
	inst   amd64.Inst
}

// follow returns the first return that is met. Without one it is a halt, if nothing but
// that is to be met; else there is no outcome.
func (f *follower) follow(r *reader, pc uint64) (outcome, bool) {
	f.budget, f.unsure = maxFollowed, false
	f.begin(r)
	defer f.end()
	first := way{pc: pc}
	for k := range first.popped {
		first.popped[k] = notPopped
	}
	f.ways = append(f.ways[:0], first)
	f.seen.begin(pc)
	halts := false
	for len(f.ways) > 0 && f.budget > 0 {
		w := f.ways[len(f.ways)-1]
		f.ways = f.ways[:len(f.ways)-1]
		out, ok := f.walk(&w)
		if ok && !out.halts {
			return out, true
		}
		halts = halts || ok
	}
	return outcome{halts: true}, halts && !f.unsure && !f.seen.full && f.budget > 0
}

// walk follows one way as far as it goes.
func (f *follower) walk(w *way) (outcome, bool) {
	for ; f.budget > 0; f.budget-- {
		in := &f.inst
		if !f.decode(w.pc) {
			return f.lost()
		}
		switch in.Kind {
		case amd64.Return:
			return f.returned(w, 0)
		case amd64.Halt:
			return outcome{halts: true}, true
		case amd64.IndirectJump:
			if in.RIPRelative {
				return f.leaves(w)
			}
			return f.lost() // a jump table, or a call in the last place: unknown
		case amd64.Jump:
			to, _ := in.Target(w.pc)
			if to == f.seen.start || !f.seen.first(to) {
				return outcome{}, false
			}
			w.pc, w.pushes = to, false
			continue
		case amd64.CondJump, amd64.ShortLoop:
			if to, ok := in.Target(w.pc); ok && f.seen.first(to) {
				if len(f.ways) == maxBranches {
					f.unsure = true
				} else {
					branch := *w
					branch.pc = to
					f.ways = append(f.ways, branch)
				}
			}
		case amd64.Undefined, amd64.Breakpoint:
			return outcome{}, false
		case amd64.FarBranch, amd64.XBegin:
			return f.lost()
		default:
			if !w.effect(in) {
				w.spLost = true
			}
		}
		w.pushes = in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary && in.Opcode == 0xff && in.Reg&7 == 6 && in.RIPRelative
		w.pc += uint64(in.Len)
	}
	return outcome{}, false
}

// lost ends a way in what cannot be followed.
func (f *follower) lost() (outcome, bool) {
	f.unsure = true
	return outcome{}, false
}

// returned ends a way in a return.
func (f *follower) returned(w *way, extra int64) (outcome, bool) {
	out, ok := w.returned(extra)
	if !ok {
		f.unsure = true
	}
	return out, ok
}

// decode reads the instruction at pc.
func (f *follower) decode(pc uint64) bool {
	return amd64.DecodeTo(&f.inst, f.at(pc, amd64.MaxLen)) == nil
}

// leaves is the outcome of a jump through the GOT: of a PLT's stub, or a call in the
// last place. The linker's lazy stub pushes an index, and its first entry the link
// map, before it jumps to the resolver, which pops both (System V AMD64 ABI §5.2).
func (f *follower) leaves(w *way) (outcome, bool) {
	pushed := w.pushes
	if w.pc == f.seen.start {
		code := f.reader.code(w.pc-6, f.before[:])
		pushed = len(code) == 6 && bytes.HasPrefix(code, []byte{0xff, 0x35})
	}
	if pushed {
		return f.returned(w, 16)
	}
	return f.returned(w, 0)
}

// returned is the outcome of a return when so many bytes are to be taken off first.
func (w *way) returned(extra int64) (outcome, bool) {
	cfa := w.sp + extra + 8
	if w.spLost || cfa < 8 || cfa > math.MaxInt32-8 || cfa&7 != 0 || w.fpIs == fpLost || w.fpIs == fpOnStack && w.popped[AMD64RBP] == notPopped {
		return outcome{}, false
	}
	out := outcome{byFP: w.byFP, direct: !w.called, cfaOff: int32(cfa)}
	for reg, at := range w.popped {
		// What was pushed from here on is in the register itself now.
		if at == notPopped || !w.byFP && at < 0 {
			continue
		}
		if off := at - cfa; off < 0 && off > math.MinInt32 {
			out.popped[reg] = int32(off)
		}
	}
	out.fpOff = out.popped[AMD64RBP]
	return out, true
}

// effect applies an instruction that goes on to the next one; false when the stack
// pointer cannot be followed through it.
func (w *way) effect(in *amd64.Inst) bool {
	primary := in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary
	written := in.GPRWritten()
	switch {
	case in.Kind == amd64.Call || in.Kind == amd64.IndirectCall:
		w.called = true
		return true
	case in.Kind == amd64.Syscall:
		return true
	case primary && in.Opcode == 0xc9: // leave
		if !w.toFramePointer(0) {
			return false
		}
		w.pop(amd64.RBP)
		return true
	case primary && in.Opcode>>3 == 0x58>>3: // pop
		if in.Reg == uint8(amd64.RSP) || in.Prefixes&amd64.Opsize66 != 0 {
			return false
		}
		w.pop(amd64.Reg(in.Reg & 15))
		return true
	case primary && isMove(in, amd64.RSP, amd64.RBP):
		return w.toFramePointer(0)
	case primary && isMove(in, amd64.RBP, amd64.RSP):
		w.fp, w.fpIs = w.sp, fpOnStack
		if w.byFP {
			w.fpIs = fpLost
		}
		return true
	case primary && in.Opcode == 0x8d && in.REX&amd64.RexW != 0 && in.Reg == uint8(amd64.RSP) &&
		in.Base == int8(amd64.RBP) && in.Index == amd64.NoReg: // lea off(%rbp), %rsp
		return w.toFramePointer(int64(in.Disp))
	}
	delta, known := in.StackDelta()
	if !known {
		return false
	}
	w.sp += int64(delta)
	if written&amd64.RBP.Mask() != 0 {
		w.fpIs = fpLost
	}
	for reg := range amd64.Reg(16) {
		if written&reg.Mask() != 0 && reg != amd64.RSP {
			w.popped[reg.DWARF()] = notPopped
		}
	}
	return w.sp > math.MinInt32 && w.sp < math.MaxInt32
}

// isMove says whether the instruction is mov from, to, both 64 bits wide.
func isMove(in *amd64.Inst, to, from amd64.Reg) bool {
	if in.Mod != 3 || in.REX&amd64.RexW == 0 {
		return false
	}
	return in.Opcode == 0x89 && in.RM == uint8(to) && in.Reg == uint8(from) ||
		in.Opcode == 0x8b && in.Reg == uint8(to) && in.RM == uint8(from)
}

// toFramePointer moves the stack pointer to an offset from the frame pointer.
func (w *way) toFramePointer(off int64) bool {
	switch {
	case w.fpIs == fpOnStack:
		w.sp = w.fp + off
	case w.fpIs == fpOwn && w.popped[AMD64RBP] == notPopped:
		w.sp, w.byFP = off, true
		for reg := range w.popped { // their places counted from the stack pointer
			w.popped[reg] = notPopped
		}
	default:
		return false
	}
	w.spLost = false
	return true
}

// pop takes a register off the stack.
func (w *way) pop(reg amd64.Reg) {
	switch {
	case w.spLost && reg == amd64.RBP:
		w.fpIs = fpLost
	case w.spLost:
	default:
		w.popped[reg.DWARF()] = w.sp
		if reg == amd64.RBP {
			w.fpIs = fpOwn
		}
	}
	w.sp += 8
}
