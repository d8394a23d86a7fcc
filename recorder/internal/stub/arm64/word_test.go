package arm64

import (
	"testing"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// The low half of the stack pointer and the word come out whole, of any word and whatever is in the stack pointer's upper half.
func TestAnEventsWordIsAllOfTheUpperHalf(t *testing.T) {
	for _, k := range []struct {
		word, moves uint32
	}{
		{word(1, false), 1}, {word(1, true), 1}, {word(1<<15-1, true), 1}, {word(1<<15, false), 1}, {word(1<<15, true), 2}, {word(1<<24+77, true), 2},
		{word(ring.MarkID(1), false), 2}, {0xFFFFFFFF, 2}, {0x80000000, 1},
	} {
		c := coder{Asm: arm64.NewAsm(0, nil)}
		c.putWord(x16, k.word)
		code, err := c.Finish()
		if err != nil {
			t.Fatal(err)
		}
		v := uint64(0x7654_3210) // what an addition of 32 bits leaves
		for off := uint32(0); off < uint32(len(code)); off += 4 {
			w := at(code, off)
			if w&0xFF80001F != 0xF2800000|uint32(x16) { // movk x16
				t.Fatalf("%#x: %#x", k.word, w)
			}
			shift := w >> 21 & 3 * 16
			v = v&^(0xFFFF<<shift) | uint64(w>>5&0xFFFF)<<shift
		}
		if v != uint64(k.word)<<32|0x7654_3210 || len(code) != int(4*k.moves) {
			t.Errorf("%#x: %#x by %d bytes", k.word, v, len(code))
		}
	}
}
