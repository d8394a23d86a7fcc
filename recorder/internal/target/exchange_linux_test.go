package target

import "testing"

// What threads may run is changed by the kernel, which promises nothing of more than one byte.
func TestOnlyOneByteIsExchanged(t *testing.T) {
	for _, c := range []struct {
		was, to uint64
		byte    int // -1 where it is more than one
	}{
		{0x36F00010_D503201F, 0x36E00010_D503201F, 6},
		{0x97FFFF80_D503201F, 0x97FFFF7F_D503201F, 4},
		{0xFF, 0, 0},
		{1 << 63, 0, 7},
		{0x14000010_D503201F, 0x36F00010_D503201F, -1},
		{0x97FFFF00, 0x97FFFEFF, -1},
		{1 << 56, 1, -1},
		{0, 0xFFFFFFFF_FFFFFFFF, -1},
	} {
		k, err := differing(c.was, c.to)
		if (err != nil) != (c.byte < 0) || err == nil && k != c.byte {
			t.Errorf("%#x becomes %#x: byte %d, %v", c.was, c.to, k, err)
		}
	}
}
