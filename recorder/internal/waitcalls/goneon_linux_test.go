package waitcalls

import (
	"encoding/binary"
	"slices"
	"testing"
)

func TestAFunctionGoesOnInAnotherWithItsArgument(t *testing.T) {
	for name, c := range map[string]struct {
		code []byte
		want []uint64
	}{
		"as glibc's pthread_mutex_unlock": {[]byte{0xBE, 1, 0, 0, 0, 0xE9, 0xF6, 0, 0, 0}, []uint64{0x1100}},
		// push rbx; mov rbx, rdi; call; mov rdi, rbx; pop rbx; jmp
		"as glibc's sem_wait": {[]byte{0x53, 0x48, 0x89, 0xFB, 0xE8, 0, 1, 0, 0, 0x5B, 0xC3, 0x48, 0x89, 0xDF, 0x5B, 0xE9, 0xEC, 0, 0, 0}, []uint64{0x1100}},
		"behind a call":       {[]byte{0xE8, 0, 1, 0, 0, 0xE9, 0xF6, 0, 0, 0}, nil},
		"with another":        {[]byte{0x48, 0x89, 0xF7, 0xE9, 0xF8, 0, 0, 0}, nil},
		"within itself":       {[]byte{0xE9, 0, 0, 0, 0, 0xC3}, nil},
		"what is no code":     {[]byte{0x06}, nil},
	} {
		if got := jumpsOnAMD64(0x1000, c.code); !slices.Equal(got, c.want) {
			t.Errorf("%s: %x", name, got)
		}
	}
}

func TestAFunctionOfARM64GoesOnInAnotherWithItsArgument(t *testing.T) {
	const b, bl, restores, back = 0x14000000, 0x94000000, 0xA8C27BF3, 0xD65F03C0 // ldp x19, x30, [sp], #32
	for name, c := range map[string]struct {
		code []uint32
		want []uint64
	}{
		"as glibc's pthread_mutex_unlock": {[]uint32{0x52800021, b | 0x3F}, []uint64{0x1100}},
		// mov x19, x0; bl; mov x0, x19; ldp x19, x30, [sp], #32; b
		"behind a call that it outlasts": {[]uint32{0xAA0003F3, bl | 0x40, 0xAA1303E0, restores, b | 0x3C}, []uint64{0x1100}},
		"by the second of two ends":      {[]uint32{0xAA0003F3, bl | 0x40, restores, back, 0xAA1303E0, b | 0x3B}, []uint64{0x1100}},
		"behind a call":                  {[]uint32{bl | 0x40, b | 0x3F}, nil},
		"with another":                   {[]uint32{0xAA0103E0, b | 0x3F}, nil},
		"with what was on the stack":     {[]uint32{0xF94007E0, b | 0x3F}, nil}, // ldr x0, [sp, #8]
		"behind a system call":           {[]uint32{0xD4000001, b | 0x3F}, nil},
		"within itself":                  {[]uint32{b | 1, back}, nil},
		"what is no code":                {[]uint32{0xFFFFFFFF, b | 0x3F}, nil},
	} {
		var code []byte
		for _, w := range c.code {
			code = binary.LittleEndian.AppendUint32(code, w)
		}
		if got := jumpsOnARM64(0x1000, code); !slices.Equal(got, c.want) {
			t.Errorf("%s: %x", name, got)
		}
	}
}
