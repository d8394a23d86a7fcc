package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// tidSearchSize is how far from the thread pointer is searched, in bytes: above it, or below it where that's the end of the thread's block.
const tidSearchSize = 0x1000

// TIDOffset finds the offset from the thread pointer at which the C library keeps a
// thread's own ID, a 32-bit number as the target sees it, the same for all
// threads that run its code. ErrNoThreadID if there is none, as in Go programs without
// cgo, or if several would do and none is known, or if DescribesThreads.
func (s *Stopped) TIDOffset() (int32, error) {
	var offsets []int32
	looked := 0
	err := s.identities(func(id uint32, base uint64) bool {
		var kept []int32
		var ok bool
		if looked == 0 {
			kept, ok = s.p.tidOffsets(base, id)
		} else {
			kept, ok = s.p.keepOffsets(offsets, base, id)
		}
		if ok {
			offsets = kept
			looked++
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	for _, off := range arch.tidOffsets() {
		if slices.Contains(offsets, off) {
			return off, nil
		}
	}
	if len(offsets) == 1 {
		// Of a thread whose descriptor happens to be near; the next one's is somewhere else.
		if described, err := s.DescribesThreads(); err != nil {
			return 0, err
		} else if !described {
			return offsets[0], nil
		}
	}
	return 0, fmt.Errorf("process %d: %w: %d threads looked at, %d places in common", s.p.pid, ErrNoThreadID, looked, len(offsets))
}

// DescribesThreads says whether each thread that runs the program's code has its own ID in a descriptor, see [DescriptorAt].
func (s *Stopped) DescribesThreads() (bool, error) {
	looked, all := 0, true
	err := s.identities(func(id uint32, base uint64) bool {
		var word [8]byte
		at := uint64(0)
		if s.p.ReadUpTo(word[:], base+DescriptorAt) == len(word) {
			at = binary.LittleEndian.Uint64(word[:])
		}
		all = at != 0 && s.p.ReadUpTo(word[:4], at+DescriptorID) == 4 && binary.LittleEndian.Uint32(word[:4]) == id
		looked++
		return all
	})
	if errors.Is(err, ErrNoThreadID) {
		return false, nil
	}
	return err == nil && all && looked > 0, err
}

// identities calls visit with the ID and the thread pointer of each thread that runs the program's code, until it returns false. ErrNoThreadID if
// one has no thread pointer.
func (s *Stopped) identities(visit func(id uint32, base uint64) bool) error {
	for _, t := range s.threads {
		if !t.stopped {
			continue
		}
		id, base, err := t.identity()
		if err != nil {
			return err
		}
		if base == 0 {
			if info, err := t.Info(); err != nil {
				return err
			} else if info.Worker {
				continue // the kernel's own, which runs no code of the program's
			}
			return fmt.Errorf("process %d: %w: thread %d has no thread pointer", s.p.pid, ErrNoThreadID, t.TID)
		}
		if !visit(id, base) {
			return nil
		}
	}
	return nil
}

// identity returns the thread's ID as the target sees it, and its thread pointer, 0
// if it has none.
func (t *Thread) identity() (id uint32, base uint64, err error) {
	base, err = t.ThreadPointer()
	if err != nil || base == 0 || t.s.p.sameNS {
		return uint32(t.TID), base, err
	}
	info, err := t.Info()
	return uint32(info.NSTID), base, err
}

// tidOffsets returns where the ID is in the thread control block at base. ok is false if
// there is no memory.
func (p *Process) tidOffsets(base uint64, id uint32) (offsets []int32, ok bool) {
	tcb, from := p.threadBlock(base)
	for off := 0; off+4 <= len(tcb); off += 4 {
		if binary.LittleEndian.Uint32(tcb[off:]) == id {
			offsets = append(offsets, from+int32(off))
		}
	}
	return offsets, len(tcb) > 0
}

// threadBlock reads what is near the thread pointer, and says from where on. The block may be shorter than what is searched.
func (p *Process) threadBlock(base uint64) (block []byte, from int32) {
	tcb := make([]byte, tidSearchSize)
	if !arch.blockBelow() {
		return tcb[:p.ReadUpTo(tcb, base)], 0
	}
	const leastPage = 4 << 10
	for _, size := range []uint64{tidSearchSize, base % leastPage} { // the page below may not be there
		if part := tcb[:size]; size < base && p.ReadUpTo(part, base-size) == len(part) {
			return part, -int32(size)
		}
	}
	return nil, 0
}

// nearThreadPointer says whether an address is where threadBlock looks.
func nearThreadPointer(addr, base uint64) bool {
	if arch.blockBelow() {
		return base-addr-1 < tidSearchSize
	}
	return addr-base < tidSearchSize
}

// keepOffsets returns those of the offsets at which another thread has its ID, too. ok
// is false if that has no memory there. It reads no more than it must: a process may
// have thousands of threads.
func (p *Process) keepOffsets(offsets []int32, base uint64, id uint32) (kept []int32, ok bool) {
	var word [4]byte
	for _, off := range offsets {
		n := p.ReadUpTo(word[:], base+uint64(off))
		if n == len(word) && binary.LittleEndian.Uint32(word[:]) == id {
			kept = append(kept, off)
		}
	}
	if len(kept) == 0 && p.ReadUpTo(word[:], base) == 0 {
		return nil, false
	}
	return kept, true
}
