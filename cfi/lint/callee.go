package lint

import "github.com/callreel/callreel/cfi"

// maxCallee bounds the instructions of a function that is looked at for the registers that it keeps, and how far in bytes
// its jumps stay within it.
const maxCallee = 4096

// framedByScratch says whether a row gives the CFA by a register that calls do not keep.
func (f *function) framedByScratch() bool {
	for i := range f.parts {
		for k := range f.parts[i].rows {
			cfa := &f.parts[i].rows[k].CFA
			if reg, ok := f.p.general(uint32(cfa.Reg)); ok && cfa.Kind == cfi.RegOffset && f.p.callerSaved>>reg&1 != 0 {
				return true
			}
		}
	}
	return false
}

// kept returns the registers that a call's target certainly keeps although it need not: helpers that probe a large frame,
// and those of assembly, keep to rules of their own.
func (k *checker) kept(p *processor, in *inst) uint64 {
	if !in.direct {
		return 0
	}
	if mask, known := k.keeps[in.target]; known {
		return mask
	}
	if k.keeps == nil {
		k.keeps = map[uint64]uint64{}
	}
	mask := k.sweepCallee(p, in.target)
	k.keeps[in.target] = mask
	return mask
}

// sweepCallee decodes up to the first return, which covers small helpers, and goes on where they end with a jump. Of what
// calls or leads on it is taken that it keeps nothing, of what cannot be read that it keeps all: nothing is said about it then.
func (k *checker) sweepCallee(p *processor, start uint64) uint64 {
	written := uint64(0)
	at := start
	for range maxCallee {
		in, ok := k.inst(p, at)
		if !ok {
			return p.callerSaved
		}
		written |= p.written(&in)
		switch in.way {
		case returns:
			return p.callerSaved &^ written
		case call, indirectCall, indirectJump, special:
			return 0
		}
		at += uint64(in.size)
		if in.way == jump && in.target-start >= maxCallee {
			start, at = in.target, in.target
		}
	}
	return p.callerSaved
}
