package lint

import (
	"math/bits"
	"strconv"

	"github.com/callreel/callreel/isa/arm64"
)

// firstD is the number of d8, the first of the vector registers whose lower halves calls keep. Below are the general registers by
// their numbers.
const (
	firstD    = 32
	keptD     = 8
	firstKept = 8 // d8
)

// newARM64 describes A64 (Procedure Call Standard for the Arm 64-bit Architecture §6.1). The return address is in x30, whose value on
// entry stands for it. x18 is the platform's, so nothing is said about it.
func newARM64() *processor {
	const (
		kept    = uint64(1<<(arm64.FP+1)-1<<arm64.X19) | (1<<keptD-1)<<firstD
		notKept = uint64(1<<arm64.X19 - 1)
	)
	return &processor{
		registers: firstD + keptD, sp: arm64.SP, fp: arm64.FP, ra: arm64.LR,
		calleeSaved: kept, callerSaved: notKept, pc: arm64.PC, minLen: arm64.Len, maxLen: arm64.Len, latePrologues: true, earlyEpilogues: true, mixedEpilogues: true,
		general: func(n uint32) (int, bool) {
			switch {
			case n <= arm64.SP:
				return int(n), true
			case n >= arm64.V8 && n < arm64.V8+keptD:
				return int(n) - arm64.V8 + firstD, true
			}
			return 0, false
		},
		dwarf: func(r int) uint32 {
			if r >= firstD {
				return uint32(r - firstD + arm64.V8)
			}
			return uint32(r)
		},
		names: func(n uint32) string { return arm64.DWARFName(int(n)) },
		asm: func(r int) string {
			if r >= firstD {
				return "d" + strconv.Itoa(r-firstD+firstKept)
			}
			return arm64.DWARFName(r)
		},
		decode: decodeARM64, step: func(e *effects, in *inst) { onARM64{e, &in.a64}.step() }, joins: arm64Joins,
		table: arm64Targets, written: func(in *inst) uint64 { return uint64(in.a64.GPRWritten()) },
		shrinks: arm64Shrinks, above: func(in *inst) bool { return arm64Condition(in) == condHI }, equal: arm64Equal, varies: arm64Varies,
		taken: func(in *inst) int64 {
			n, _ := in.a64.StackDelta()
			return int64(n)
		},
		ofEpilogue: func(in *inst) bool { return in.a64.Class == arm64.Authenticate || restores(&in.a64) },
		relies: func(in *inst) uint64 {
			if r := in.a64.Rn(); in.a64.Class == arm64.BranchReg && r < arm64.LR {
				return 1 << r
			}
			return 0
		},
		leaves: func(in *inst) bool { r := in.a64.Rn(); return r == arm64.X16 || r == arm64.X17 },
	}
}

// decodeARM64 reads an instruction.
func decodeARM64(in *inst, code []byte, addr uint64) bool {
	a := &in.a64
	if arm64.DecodeTo(a, code) != nil {
		return false
	}
	in.way, in.size = goesOn, arm64.Len
	switch a.Kind {
	case arm64.Jump:
		in.way = jump
	case arm64.CondJump:
		in.way = condJump
	case arm64.Call:
		in.way = call
	case arm64.IndirectCall:
		in.way = indirectCall
	case arm64.IndirectJump:
		in.way = indirectJump
	case arm64.Return:
		in.way = returns
	case arm64.Syscall:
		in.way = syscall
	case arm64.Breakpoint:
		in.way = breakpoint
	case arm64.ExceptionReturn, arm64.Undefined:
		in.way = special
	}
	in.ends, in.padding, in.nop = a.Ends(), a.IsPadding(), a.IsNop()
	in.target, in.direct = a.Target(addr)
	in.data, in.named = a.MemTarget(addr)
	in.named = in.named && !a.IsADRP() // a page
	return true
}

// arm64Joins puts an address together that adrp and the add behind it make.
func arm64Joins(before, in *inst) {
	page, add := &before.a64, &in.a64
	if page.IsADRP() && isAddImmediate(add.Word) && add.Rn() == page.Rd() {
		in.named, in.data = true, before.data+uint64(add.Immediate())
	}
}

// isAddImmediate says whether a word is add of 64 bits with an immediate, isSubImmediate whether it is sub.
func isAddImmediate(word uint32) bool { return word&0xFF800000 == 0x91000000 }
func isSubImmediate(word uint32) bool { return word&0xFF800000 == 0xD1000000 }

// The conditions that are told apart (Arm ARM C1.2.4).
const (
	condNE = 1
	condHS = 2
	condLO = 3
	condHI = 8
	condLS = 9
)

// arm64Condition is the condition of b.cond; -1 of all else.
func arm64Condition(in *inst) int {
	if in.a64.Class != arm64.BranchCond {
		return -1
	}
	return int(in.a64.Word & 15)
}

// arm64Shrinks is ldp and ldr with the stack pointer behind, and add to it; and what takes it from the frame pointer.
func arm64Shrinks(i *inst) bool {
	in := &i.a64
	if in.Kind != arm64.Other || !in.WritesReg(arm64.SP) {
		return false
	}
	if delta, known := in.StackDelta(); known {
		return delta > 0
	}
	return isAddImmediate(in.Word) || isSubImmediate(in.Word)
}

// restores says whether an instruction loads registers from the frame that calls keep.
func restores(in *arm64.Inst) bool {
	const others = 1<<arm64.X19 - 1
	if in.Class != arm64.Load && in.Class != arm64.LoadPair || in.Base != arm64.SP || in.GPRWritten()&others != 0 {
		return false
	}
	return !isVector(in.Word) || in.Rd() >= firstKept && in.Rd() < firstKept+keptD
}

// arm64Equal knows "cmp sp, reg; b.ne".
func arm64Equal(compare, jump *inst) (int, bool) {
	const cmpSP = 0xEB2063FF // subs xzr, sp, x0
	w := compare.a64.Word
	return int(compare.a64.Rm()), arm64Condition(jump) == condNE && w&^(31<<16) == cmpSP && compare.a64.Rm() < arm64.SP
}

// arm64Varies knows that a stack pointer that is aligned to 16 bytes always has been so.
func arm64Varies(in, _ *inst) bool {
	const stackAlignment = 4 // 16 bytes
	if mask, ok := maskOf(&in.a64); ok {
		return bits.TrailingZeros64(mask) > stackAlignment
	}
	return isAddExtended(in.a64.Word) || isAddShifted(in.a64.Word)
}

// maskOf is the mask of and of 64 bits with an immediate.
func maskOf(in *arm64.Inst) (uint64, bool) {
	if in.Word&0xFF800000 != 0x92000000 {
		return 0, false
	}
	return bitmask(in.Word)
}

// bitmask is a bitmask immediate of 64 bits (Arm ARM, DecodeBitMasks).
func bitmask(word uint32) (uint64, bool) {
	n, immr, imms := word>>22&1, word>>16&63, word>>10&63
	size := bits.Len32(n<<6|^imms&63) - 1
	if size < 1 {
		return 0, false
	}
	width := uint(1) << size
	ones, turn := imms&uint32(width-1)+1, uint(immr)&(width-1)
	if ones == uint32(width) {
		return 0, false
	}
	element := uint64(1)<<ones - 1
	element = element>>turn | element<<(width-turn)
	if width < 64 {
		element &= 1<<width - 1
	}
	for ; width < 64; width *= 2 {
		element |= element << width
	}
	return element, true
}
