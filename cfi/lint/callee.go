package lint

import (
	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
)

// maxCallee bounds the instructions of a function that is looked at for the registers that it keeps, and how far in bytes
// its jumps stay within it.
const maxCallee = 4096

// framedByScratch says whether a row gives the CFA by a register that calls do not keep.
func (f *function) framedByScratch() bool {
	for i := range f.parts {
		for k := range f.parts[i].rows {
			cfa := &f.parts[i].rows[k].CFA
			if reg, ok := general(uint32(cfa.Reg)); ok && cfa.Kind == cfi.RegOffset && callerSaved>>reg&1 != 0 {
				return true
			}
		}
	}
	return false
}

// kept returns the registers that a call's target certainly keeps although it need not: helpers that probe a large frame,
// and those of assembly, keep to rules of their own.
func (k *checker) kept(in *amd64.Inst, addr uint64) uint16 {
	to, ok := in.Target(addr)
	if !ok {
		return 0
	}
	if mask, known := k.keeps[to]; known {
		return mask
	}
	if k.keeps == nil {
		k.keeps = map[uint64]uint16{}
	}
	mask := k.sweepCallee(to)
	k.keeps[to] = mask
	return mask
}

// sweepCallee decodes up to the first return, which covers small helpers, and goes on where they end with a jump. Of what
// calls or leads on it is taken that it keeps nothing, of what cannot be read that it keeps all: nothing is said about it then.
func (k *checker) sweepCallee(start uint64) uint16 {
	written := uint16(0)
	at := start
	for range maxCallee {
		in, ok := k.inst(at)
		if !ok {
			return callerSaved
		}
		written |= in.GPRWritten()
		switch in.Kind {
		case amd64.Return:
			return callerSaved &^ written
		case amd64.Call, amd64.IndirectCall, amd64.IndirectJump, amd64.FarBranch:
			return 0
		}
		at += uint64(in.Len)
		if to, ok := in.Target(at - uint64(in.Len)); ok && in.Kind == amd64.Jump && to-start >= maxCallee {
			start, at = to, to
		}
	}
	return callerSaved
}
