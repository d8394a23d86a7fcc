package waitcalls

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/arm64"
)

const (
	firstARM64 = 1 // the mask of x0
	// savedARM64 are the registers that calls leave alone, x19 to x28 (AAPCS64 §6.1.1).
	savedARM64 = 1<<29 - 1<<19
)

// jumpsOnARM64 is jumpsOnAMD64 for code of arm64.
func jumpsOnARM64(addr uint64, code []byte) (list []uint64) {
	has := uint32(firstARM64)
	for at := 0; at+arm64.Len <= len(code); at += arm64.Len {
		var in arm64.Inst
		if arm64.DecodeWord(&in, binary.LittleEndian.Uint32(code[at:])) != nil {
			return list
		}
		to, direct := in.Target(addr + uint64(at))
		switch {
		case in.Kind == arm64.Jump && direct:
			if (to < addr || to >= addr+uint64(len(code))) && has&firstARM64 != 0 {
				list = append(list, to)
			}
		case in.Kind == arm64.Call || in.Kind == arm64.IndirectCall:
			has &= savedARM64
		case in.Kind == arm64.Syscall:
			has &^= firstARM64
		case (in.Class == arm64.Load || in.Class == arm64.LoadPair) && in.Base == arm64.SP: // restores what the caller had
			has &^= in.GPRWritten() &^ savedARM64
		default:
			from, into, is := movedARM64(in.Word)
			keeps := is && has>>from&1 != 0
			if has &^= in.GPRWritten(); keeps {
				has |= 1 << into
			}
		}
	}
	return list
}

// movedARM64 says that an instruction is mov of a whole register: orr of it and the zero register.
func movedARM64(word uint32) (from, into uint32, is bool) {
	from, into = word>>16&31, word&31
	return from, into, word&0xFFE0FFE0 == 0xAA0003E0 && from != 31 && into != 31
}
