package sampler

import (
	"encoding/binary"

	"github.com/callreel/callreel/object"
)

// Instructions of a PLT's stub (ELF for the Arm 64-bit Architecture, "PLT Sequences"), which may begin with a landing pad: adrp x16, page;
// ldr x17, [x16, #offset]; add; br x17.
const (
	pltADRP, pltADRPMask = 0x9000_0010, 0x9f00_001f
	pltLoad, pltLoadMask = 0xf940_0211, 0xffc0_03ff
	pltPad               = 0xd503_245f // bti c
	pltSize              = 24          // of the longest stub, in bytes
)

// arm64 is the name of the stub of arm64's in a PLT that an address is in. Stubs have no one size, so the instruction is looked for with
// which it begins.
func (s *stubNames) arm64(file *object.Image, link uint64, r object.Range) string {
	at := link &^ 3
	word := func(addr uint64) uint32 {
		if addr < r.Start || addr >= r.End || r.End-addr < 4 {
			return 0
		}
		code, err := file.ReadAddr(addr, 4)
		if err != nil || len(code) < 4 {
			return 0
		}
		return binary.LittleEndian.Uint32(code)
	}
	if word(at) == pltPad {
		at += 4
	}
	for back := uint64(0); back < pltSize && at-back >= r.Start; back += 4 {
		from := at - back
		adrp, load := word(from), word(from+4)
		if adrp&pltADRPMask != pltADRP {
			continue
		}
		if load&pltLoadMask != pltLoad {
			return ""
		}
		pages := int64(int32(adrp<<8)>>11&^3|int32(adrp>>29&3)) << 12 // 19 bits of bits 5 to 23, and two below them
		name := s.symbol(file, uint64(int64(from&^0xfff)+pages)+uint64(load>>10&0xfff)*8)
		if name == "" {
			return ""
		}
		return name + "@plt"
	}
	return ""
}
