package target

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// CanExchange says whether an arena's code may be changed while the target's threads run, and is changed then wherever the arena is. Where the
// code isn't shared the processes that are followed have copies of their own.
func (s *Target) CanExchange(a *Arena) bool {
	return a.Mem != nil || exchangedByKernel && s.Go == nil && !s.Runtime.Follow
}

// Exchange makes the word at an offset of an arena's code, a multiple of 8, what f makes of it. Threads may run it meanwhile: they run either
// what it was or what it becomes.
//
// Where the code isn't shared the kernel is asked to write it, since it makes the instruction caches coherent. It promises nothing of more than
// one byte (see stub.CloseGate), so no more may change.
func (s *Target) Exchange(a *Arena, off uint32, f func(uint64) uint64) error {
	if uint64(off)+8 > a.Size || off&7 != 0 {
		return fmt.Errorf("callreel: an arena of %d bytes has no word at %#x to be exchanged", a.Size, off)
	}
	if a.Mem != nil {
		word := (*uint64)(unsafe.Pointer(&a.Mem[off]))
		atomic.StoreUint64(word, f(atomic.LoadUint64(word)))
		return nil
	}
	var b [8]byte
	at := a.Base + uint64(off)
	if _, err := s.Process.ReadAt(b[:], at); err != nil {
		return err
	}
	was := binary.LittleEndian.Uint64(b[:])
	to := f(was)
	if to == was {
		return nil
	}
	k, err := differing(was, to)
	if err != nil {
		return fmt.Errorf("callreel: process %d: at %#x: %w", s.Process.Pid(), at, err)
	}
	_, err = s.Process.WriteAt([]byte{byte(to >> (8 * k))}, at+uint64(k))
	return err
}

// differing is which byte of two words differs, that at the lowest address being 0. It fails if more than one does.
func differing(v, w uint64) (int, error) {
	k := bits.TrailingZeros64(v^w) / 8
	if (v^w)&^(0xFF<<(8*k)) != 0 {
		return 0, fmt.Errorf("code that threads may run can't become %#016x at once, from %#016x", w, v)
	}
	return k, nil
}
