package ring

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Loads is how often the loader has said that what it has mapped is complete.
func (m *Memory) Loads() uint32 { return atomic.LoadUint32(m.u32(HdrLoads)) }

// WaitLoads waits until that is no longer seen, or the time is over. It needs a thread of its own.
func (m *Memory) WaitLoads(seen uint32, timeout time.Duration) {
	const futexWait = 0
	ts := unix.NsecToTimespec(timeout.Nanoseconds())
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(m.u32(HdrLoads))), futexWait, uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// WakeLoads ends WaitLoads, one that is about to begin included. No thread waits for the number that it takes.
func (m *Memory) WakeLoads() {
	const futexWake = 1
	atomic.AddUint32(m.u32(HdrLoads), 1)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(m.u32(HdrLoads))), futexWake, 1, 0, 0, 0)
}

// TakeLoads tells threads that the recorder is at all loads up to n.
func (m *Memory) TakeLoads(n uint32) { atomic.StoreUint32(m.u32(HdrLoadsTaken), n) }

// EndLoads lets threads go on that wait for loads up to n.
func (m *Memory) EndLoads(n uint32) { atomic.StoreUint32(m.u32(HdrLoadsDone), n) }

// LetLoadsWait says whether threads that load libraries are to wait for the recorder.
func (m *Memory) LetLoadsWait(wait bool) {
	v := uint64(0)
	if wait {
		v = 1
	}
	atomic.StoreUint64(m.u64(HdrLoadWait), v)
}
