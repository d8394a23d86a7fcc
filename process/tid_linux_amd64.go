package process

import (
	"encoding/binary"
	"fmt"
)

// Where C libraries keep a thread's own ID, counted from the thread pointer:
// glibc's struct pthread, musl's with one canary, musl's older with two.
var knownTIDOffsets = []int32{0x2d0, 0x30, 0x38}

// tidWindow is how far above the thread pointer is searched, in bytes.
const tidWindow = 0x1000

// TIDOffset finds the offset from the FS base at which the C library keeps a
// thread's own ID, a 32-bit number as the target sees it, the same for all
// threads. ErrNoThreadID if there is none, as in Go programs without cgo, or if
// several would do and none is known.
func (s *Stopped) TIDOffset() (int32, error) {
	var candidates map[int32]bool
	looked := 0
	for _, t := range s.Threads() {
		found, ok, err := t.tidOffsets()
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		looked++
		if candidates == nil {
			candidates = found
			continue
		}
		for off := range candidates {
			if !found[off] {
				delete(candidates, off)
			}
		}
	}
	for _, off := range knownTIDOffsets {
		if candidates[off] {
			return off, nil
		}
	}
	if len(candidates) == 1 {
		for off := range candidates {
			return off, nil
		}
	}
	return 0, fmt.Errorf("process %d: %w: %d threads looked at, %d places in common", s.p.pid, ErrNoThreadID, looked, len(candidates))
}

// tidOffsets returns where the thread's ID stands. ok is false for a thread
// that has no thread pointer or no memory there.
func (t *Thread) tidOffsets() (found map[int32]bool, ok bool, err error) {
	base, err := t.FSBase()
	if err != nil || base == 0 {
		return nil, false, err
	}
	info, err := t.Info()
	if err != nil {
		return nil, false, err
	}
	window := make([]byte, tidWindow)
	// The block may end before the window does.
	n, _ := t.s.p.ReadAt(window, base)
	if n == 0 {
		return nil, false, nil
	}
	found = map[int32]bool{}
	for off := 0; off+4 <= n; off += 4 {
		if binary.LittleEndian.Uint32(window[off:]) == uint32(info.NSTID) {
			found[int32(off)] = true
		}
	}
	return found, true, nil
}
