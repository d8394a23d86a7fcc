package lint

import (
	"github.com/callreel/callreel/isa/amd64"
)

// newAMD64 describes x86-64 (System V AMD64 ABI §3.2.1).
func newAMD64() *processor {
	const calleeSaved = 1<<amd64.RBX | 1<<amd64.RBP | 1<<amd64.R12 | 1<<amd64.R13 | 1<<amd64.R14 | 1<<amd64.R15
	return &processor{
		registers: 16, sp: int(amd64.RSP), fp: int(amd64.RBP), ra: returnAddress, entryCFA: 8,
		calleeSaved: calleeSaved, callerSaved: 0xFFFF &^ calleeSaved &^ (1 << amd64.RSP),
		pc: amd64.DWARFReturnAddress, minLen: 1, maxLen: amd64.MaxLen, lazyPLT: true,
		general: func(n uint32) (int, bool) {
			if n > 15 {
				return 0, false
			}
			r, ok := amd64.RegFromDWARF(int(n))
			return int(r), ok
		},
		dwarf: func(r int) uint32 {
			if r == returnAddress {
				return amd64.DWARFReturnAddress
			}
			return uint32(amd64.Reg(r).DWARF())
		},
		names: func(n uint32) string { return amd64.DWARFName(int(n)) },
		asm: func(r int) string {
			if r == returnAddress {
				return "rip"
			}
			return amd64.Reg(r).String()
		},
		decode: decodeAMD64, step: func(e *effects, in *inst) { onAMD64{e, &in.x86}.step() },
		table: amd64Targets, written: func(in *inst) uint64 { return uint64(in.x86.GPRWritten()) },
		shrinks: amd64Shrinks, above: amd64Above, equal: amd64Equal, varies: amd64Varies,
		taken: func(in *inst) int64 {
			n, _ := in.x86.StackDelta()
			return int64(n)
		},
		ofEpilogue: func(*inst) bool { return false },
		relies:     func(*inst) uint64 { return 0 },
		leaves:     func(in *inst) bool { return in.x86.HasMem && in.x86.Index == amd64.NoReg },
	}
}

// decodeAMD64 reads an instruction.
func decodeAMD64(in *inst, code []byte, addr uint64) bool {
	x := &in.x86
	if amd64.DecodeTo(x, code) != nil {
		return false
	}
	in.way, in.size = special, x.Len
	switch x.Kind {
	case amd64.Other:
		in.way = goesOn
	case amd64.Jump:
		in.way = jump
	case amd64.CondJump:
		in.way = condJump
	case amd64.Call:
		in.way = call
	case amd64.IndirectCall:
		in.way = indirectCall
	case amd64.IndirectJump:
		in.way = indirectJump
	case amd64.Return:
		in.way = returns
	case amd64.Syscall:
		in.way = syscall
	case amd64.Breakpoint:
		in.way = breakpoint
	}
	in.ends, in.padding, in.nop = x.Ends(), x.IsPadding(), x.IsNop()
	in.target, in.direct = x.Target(addr)
	if in.named = x.RIPRelative; in.named {
		in.data = addr + uint64(x.Len) + uint64(int64(x.Disp))
	}
	return true
}

// amd64Above is ja.
func amd64Above(in *inst) bool { return in.x86.Kind == amd64.CondJump && in.x86.Opcode&0xF == 7 }

// amd64Shrinks is pop, leave, add and lea.
func amd64Shrinks(i *inst) bool {
	in := &i.x86
	if in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary || in.Kind != amd64.Other {
		return false
	}
	if in.Opcode == 0xC9 {
		return true
	}
	delta, known := in.StackDelta()
	return known && delta > 0 || !known && in.GPRWritten() == 1<<rsp && in.Opcode == 0x8D
}

// amd64Equal knows "cmp rsp, reg; jne".
func amd64Equal(compare, jump *inst) (int, bool) {
	c := &compare.x86
	if jump.x86.Opcode&0xF != 5 || c.Encoding != amd64.Legacy || c.Map != amd64.MapPrimary || c.Mod != 3 || c.REX&amd64.RexW == 0 || c.Opcode != 0x39 && c.Opcode != 0x3B {
		return 0, false
	}
	a, b := amd64.Reg(c.Reg&15), amd64.Reg(c.RM&15)
	if b == rsp {
		a, b = b, a
	}
	return int(b), a == rsp
}

// amd64Varies knows that a stack pointer that is aligned to 16 bytes may always have been so; and that calls that touch the pages of
// a large frame keep its size in a register.
func amd64Varies(in, before *inst) bool {
	const stackAlignment = 16 // System V AMD64 ABI §3.2.2
	if op := in.x86.Opcode; op == 0x81 || op == 0x83 {
		return in.x86.Imm < -stackAlignment
	}
	return (in.x86.Opcode == 0x29 || in.x86.Opcode == 0x2B) && before != nil && before.way == goesOn // sub, by what is not known
}
