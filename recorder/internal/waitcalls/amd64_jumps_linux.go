package waitcalls

import "github.com/callreel/callreel/isa/amd64"

// calleeSaved are the registers that calls leave alone (System V AMD64 ABI §3.2.1).
const calleeSaved = 1<<amd64.RBX | 1<<amd64.RBP | 1<<amd64.R12 | 1<<amd64.R13 | 1<<amd64.R14 | 1<<amd64.R15

// jumpsOnAMD64 is where a function's code jumps with its first argument in its place. Code is read as it stands: what restores a register at one
// of several ends says nothing about the others.
func jumpsOnAMD64(addr uint64, code []byte) (list []uint64) {
	has := uint16(1 << amd64.RDI) // registers that have the argument
	for at := 0; at < len(code); {
		var in amd64.Inst
		if amd64.DecodeTo(&in, code[at:]) != nil {
			return list
		}
		to, direct := in.Target(addr + uint64(at))
		switch {
		case in.Kind == amd64.Jump && direct:
			if (to < addr || to >= addr+uint64(len(code))) && has>>amd64.RDI&1 != 0 {
				list = append(list, to)
			}
		case in.Kind == amd64.Call || in.Kind == amd64.IndirectCall || in.Kind == amd64.Syscall:
			has &= calleeSaved
		case isPop(&in):
		default:
			from, into, is := moved(&in)
			keeps := is && has>>from&1 != 0
			if has &^= in.GPRWritten(); keeps {
				has |= 1 << into
			}
		}
		at += int(in.Len)
	}
	return list
}

// isPop says whether an instruction is pop of a register.
func isPop(in *amd64.Inst) bool {
	return in.Map == amd64.MapPrimary && in.Opcode >= 0x58 && in.Opcode <= 0x5F && in.Encoding == amd64.Legacy
}

// moved says that an instruction moves a whole register into another.
func moved(in *amd64.Inst) (from, into uint8, is bool) {
	if in.Map != amd64.MapPrimary || in.Encoding != amd64.Legacy || !in.HasModRM || in.Mod != 3 || in.REX&amd64.RexW == 0 {
		return 0, 0, false
	}
	switch in.Opcode {
	case 0x89:
		return in.Reg, in.RM, true
	case 0x8B:
		return in.RM, in.Reg, true
	}
	return 0, 0, false
}
