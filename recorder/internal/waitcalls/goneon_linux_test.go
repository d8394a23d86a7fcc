package waitcalls

import (
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
		if got := jumpsOnTo(0x1000, c.code); !slices.Equal(got, c.want) {
			t.Errorf("%s: %x", name, got)
		}
	}
}
