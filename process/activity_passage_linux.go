package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Passage notices a thread's coming by an address: a hardware breakpoint of the kernel's
// that counts, of which the thread knows nothing. It lets itself go after some times, since
// each costs the thread a microsecond or, in virtual machines, ten. It must be closed; if
// this process is killed, the kernel does that.
type Passage struct {
	fd   int
	ring []byte // a page that tells of the data, and one of records; nil where none is granted
}

// MaxPassages bounds how often a Passage notices its thread.
const MaxPassages = 32

// Passage starts to notice that a thread executes the instruction at addr, up to times
// times, from 1 to MaxPassages. It takes one of the processor's four breakpoints. The error
// wraps ErrNotPermitted where perf_event_paranoid forbids it, ErrReleased when the thread
// has ended, and says so where breakpoints are never hit.
func (p *Process) Passage(tid int, addr uint64, times int) (*Passage, error) {
	if err := p.breakpointsHit(); err != nil {
		return nil, fmt.Errorf("process %d: thread %d: breakpoint at %#x: %w", p.pid, tid, addr, err)
	}
	regSP, _ := arch.breakpoint()
	attr := breakpointEvent(addr)
	attr.Sample = 1 // one hit is an overflow; after so many the event turns itself off
	attr.Sample_type, attr.Sample_regs_user = unix.PERF_SAMPLE_REGS_USER, 1<<regSP
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		w := &Passage{fd: fd}
		page := os.Getpagesize()
		// Memory that may be locked is bounded. Without it hits are only counted.
		if w.ring, err = unix.Mmap(fd, 0, 2*page, unix.PROT_READ, unix.MAP_SHARED); err != nil {
			w.ring = nil
		}
		if err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_REFRESH, min(max(times, 1), MaxPassages)); err == nil {
			return w, nil
		}
		_ = w.Close()
	}
	switch {
	case errors.Is(err, unix.ESRCH):
		err = ErrReleased
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		err = fmt.Errorf("%w: %w (see kernel.perf_event_paranoid)", ErrNotPermitted, err)
	}
	return nil, fmt.Errorf("process %d: thread %d: breakpoint at %#x: %w", p.pid, tid, addr, err)
}

// Seen returns the thread's stack pointer at each time that it has come by since the
// Passage was made; 0 where it is not known. The slice is empty when it has not.
func (w *Passage) Seen() []uint64 {
	var count [8]byte
	n, err := ignoreEINTR(func() (int, error) { return unix.Read(w.fd, count[:]) })
	if err != nil || n != len(count) || count == [8]byte{} {
		return nil
	}
	if sps := w.records(); len(sps) > 0 {
		return sps
	}
	return []uint64{0}
}

// records reads the ring, which is never full: MaxPassages records are less than a page.
func (w *Passage) records() (sps []uint64) {
	const headerSize, size = 8, 8 + 8 + 8 // header, ABI, stack pointer
	page := os.Getpagesize()
	if len(w.ring) != 2*page {
		return nil
	}
	head := atomic.LoadUint64(&(*unix.PerfEventMmapPage)(unsafe.Pointer(&w.ring[0])).Data_head)
	data := w.ring[page:][:min(head, uint64(page))]
	for len(data) >= headerSize {
		n := int(binary.NativeEndian.Uint16(data[6:]))
		if n < headerSize || n > len(data) {
			return sps
		}
		if binary.NativeEndian.Uint32(data) == unix.PERF_RECORD_SAMPLE && n == size {
			sps = append(sps, binary.NativeEndian.Uint64(data[16:]))
		}
		data = data[n:]
	}
	return sps
}

// Close lets go of the breakpoint.
func (w *Passage) Close() error {
	var err error
	if w.ring != nil {
		err = unix.Munmap(w.ring)
	}
	return errors.Join(err, unix.Close(w.fd))
}
