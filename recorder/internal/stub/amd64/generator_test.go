package amd64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// Where a jump leads is read from its bytes: whoever undoes a recording has nothing else.
func TestJumpsOfPatches(t *testing.T) {
	const at = 0x7000_0000_1000
	for _, c := range []struct {
		code []byte
		to   uint64
		is   bool
	}{
		{[]byte{0xE9, 0x10, 0, 0, 0}, at + 5 + 0x10, true},
		{[]byte{0xE9, 0xFB, 0xFF, 0xFF, 0xFF}, at, true},
		{[]byte{0xE9, 0, 0, 0, 0x80}, at + 5 - 1<<31, true},
		{[]byte{0xEB, 0x10}, 0, false}, // to an island
		{nil, 0, false},
	} {
		p := stub.NewPatch(at, make([]byte, len(c.code)), c.code)
		if to, is := (Generator{}).JumpOf(&p); to != c.to || is != c.is {
			t.Errorf("% x: %#x, %v, want %#x, %v", c.code, to, is, c.to, c.is)
		}
	}
}
