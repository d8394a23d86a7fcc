package ring

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of futex(2) (linux/futex.h). The futexes are shared between processes.
const (
	futexWait = 0
	futexWake = 1
)

func (m *Memory) futex(off uint64, op int, v uint32, wait *unix.Timespec) {
	// Its errors are EAGAIN, EINTR and ETIMEDOUT; whoever waits looks again anyway.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(m.u32(off))), uintptr(op), uintptr(v), uintptr(unsafe.Pointer(wait)), 0, 0)
}

// Asked is how often a thread has asked for a probe. It goes round.
func (m *Memory) Asked() uint32 { return atomic.LoadUint32(m.u32(HdrAsked)) }

// WaitAsked waits until Asked is no longer seen, or the time is over.
func (m *Memory) WaitAsked(seen uint32, most time.Duration) {
	ts := unix.NsecToTimespec(int64(most))
	m.futex(HdrAsked, futexWait, seen, &ts)
}

// WakeAsked ends a WaitAsked.
func (m *Memory) WakeAsked() {
	atomic.AddUint32(m.u32(HdrAsked), 1)
	m.futex(HdrAsked, futexWake, 1, nil)
}

// TakeAsked calls f with each function that is asked for; the asking is over with that. Whether there is such a function is
// for f to check.
func (m *Memory) TakeAsked(f func(id uint32)) {
	const groups = MaxFunctions >> AskedGroupShift
	for w := range uint64(groups / 64) {
		for set := m.takeBits(HdrAskedGroups + 8*w); set != 0; set &= set - 1 {
			group := w*64 + uint64(bits.TrailingZeros64(set))
			first := group << AskedGroupShift
			for k := uint64(0); k < 1<<AskedGroupShift; k += 64 {
				for ids := m.takeBits(AskedOff + (first+k)/8); ids != 0; ids &= ids - 1 {
					f(uint32(first + k + uint64(bits.TrailingZeros64(ids))))
				}
			}
		}
	}
}

func (m *Memory) takeBits(off uint64) uint64 {
	if atomic.LoadUint64(m.u64(off)) == 0 {
		return 0
	}
	return atomic.SwapUint64(m.u64(off), 0)
}

// SetMade says that a function's probe is made. It is to be followed by WakeMade.
func (m *Memory) SetMade(id uint32) { atomic.OrUint64(m.u64(MadeOff+uint64(id)/64*8), 1<<(id%64)) }

// WakeMade lets all threads that wait for a probe look again.
func (m *Memory) WakeMade() {
	const all = 1<<31 - 1
	atomic.AddUint32(m.u32(HdrMade), 1)
	m.futex(HdrMade, futexWake, all, nil)
}

// Compiling lets the target's threads know that the calling thread makes probes, and that it does no more when it has ended,
// however that came about: the kernel says so in HdrCompiler, by the thread's robust list (set_robust_list(2)). The goroutine
// is locked to its thread from here on, and must end before the memory is closed.
func (m *Memory) Compiling() error {
	runtime.LockOSThread()
	// struct robust_list_head (linux/futex.h), and behind it the list's only entry. The kernel reads them when the thread
	// ends, so they stand in memory that is never given back.
	list, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	word := (*[4]uint64)(unsafe.Pointer(unsafe.SliceData(list)))
	head := uint64(uintptr(unsafe.Pointer(word)))
	entry := head + 24
	word[0] = entry
	word[1] = uint64(uintptr(unsafe.Pointer(m.u32(HdrCompiler)))) - entry
	word[3] = head
	atomic.StoreUint32(m.u32(HdrCompiler), uint32(unix.Gettid()))
	if _, _, errno := unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, uintptr(head), 24, 0); errno != 0 {
		return errno
	}
	return nil
}
