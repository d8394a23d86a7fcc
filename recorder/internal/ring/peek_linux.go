package ring

import (
	"encoding/binary"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// peek reads the memory where the target may have written nothing yet. Reading the mapping would give such a page memory, for each of the
// millions of threads that the target may claim to have.
func (m *Memory) peek(to []byte, off uint64) {
	n := 0
	for n < len(to) {
		k, err := unix.Pread(m.fd, to[n:], int64(off)+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil || k <= 0 { // which a memfd's memory has no reason for
			copy(to[n:], m.mem[off+uint64(n):])
			return
		}
		n += k
	}
}

// forgetThread makes all that is a thread's own as it was before there was one with that ID.
func (m *Memory) forgetThread(tid int) {
	m.zero(SlotsOff+uint64(tid)*SlotSize, SlotSize)
	m.zero(GoKeysOff+8*uint64(tid), 8)
	if m.anyNamed() {
		m.zero(NamesOff+uint64(tid)<<NameShift, NameSize)
	}
	if m.areas != 0 {
		m.zero(m.areas+uint64(tid)<<AreaShift+AreaTop, 8)
	}
}

// zero clears some words, where there is anything but zeros. The target's threads may read them one by one.
func (m *Memory) zero(off, n uint64) {
	buf := make([]byte, SlotSize)[:n]
	m.peek(buf, off)
	for i := uint64(0); i < n; i += 8 {
		if binary.LittleEndian.Uint64(buf[i:]) != 0 {
			atomic.StoreUint64(m.u64(off+i), 0)
		}
	}
}
