package stub

import (
	"encoding/binary"
	"testing"
)

// tornMemory is a gate that is written byte by byte: each byte of a write becomes visible before or after each other one.
type tornMemory struct {
	t    *testing.T
	word [8]byte
	may  func(word uint64) bool // be seen meanwhile
}

func (m *tornMemory) WriteAt(buf []byte, addr uint64) (int, error) {
	for some := range 1 << len(buf) {
		seen := m.word
		for i, b := range buf {
			if some>>i&1 != 0 {
				seen[int(addr)+i] = b
			}
		}
		if v := binary.LittleEndian.Uint64(seen[:]); !m.may(v) {
			m.t.Fatalf("%#x is seen while % x is written at byte %d of %#x", v, buf, addr, m.word)
		}
	}
	return copy(m.word[addr:], buf), nil
}

// Whatever of the bytes is visible, a thread finds the gate closed, or the address of the slots in it.
func TestAGateIsNeverSeenHalfWritten(t *testing.T) {
	for _, slots := range []uint64{0x7f12_3456_7000, 0x7fff_ffff_f000, 0x1000, 0xff_0000_0000} {
		for _, before := range []uint64{0, slots, 1<<63 | slots, 1 << 63} {
			m := &tornMemory{t: t, may: func(v uint64) bool { return int64(v) <= 0 || v == slots }}
			binary.LittleEndian.PutUint64(m.word[:], before)
			if err := CloseGate(m, 0); err != nil || IsOpen(m.word) {
				t.Errorf("%#x: closed it is % x, %v", before, m.word, err)
			}
			if err := OpenGate(m, 0, slots); err != nil || !IsOpen(m.word) || binary.LittleEndian.Uint64(m.word[:]) != slots {
				t.Errorf("%#x: open it is % x, %v", before, m.word, err)
			}
		}
	}
}
