package ring

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetFollow says whether forked children may open their gates.
func (m *Memory) SetFollow(on bool) {
	v := uint64(0)
	if on {
		v = 1
	}
	atomic.StoreUint64(m.u64(HdrFollow), v)
}

// FollowEnded says whether a child has restricted its own system calls, and so ended the following of others.
func (m *Memory) FollowEnded() bool { return atomic.LoadUint64(m.u64(HdrFollow)) == FollowSandboxed }

// Execs is how often a thread has asked to be awaited while it replaces its program.
func (m *Memory) Execs() uint32 { return atomic.LoadUint32(m.u32(HdrExecs)) }

// WaitExecs waits until that is no longer seen, or the time is over. It needs a thread of its own.
func (m *Memory) WaitExecs(seen uint32, timeout time.Duration) {
	const futexWait = 0
	ts := unix.NsecToTimespec(timeout.Nanoseconds())
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(m.u32(HdrExecs))), futexWait, uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// EachExec calls f for the threads that have asked to be awaited and are waiting: entry i, process and thread as the target's
// namespace counts.
func (m *Memory) EachExec(f func(i int, pid, tid int)) {
	for i := range ExecSlots {
		at := uint64(ExecsOff + i<<ExecShift)
		if atomic.LoadUint32(m.u32(at+ExecState)) == ExecAsked {
			f(i, int(atomic.LoadUint32(m.u32(at+ExecPID))), int(atomic.LoadUint32(m.u32(at+ExecTID))))
		}
	}
}

// LetExec lets the thread of entry i go on.
func (m *Memory) LetExec(i int) {
	atomic.CompareAndSwapUint32(m.u32(uint64(ExecsOff+i<<ExecShift)+ExecState), ExecAsked, ExecGo)
}

// FreeExec frees entry i, whose thread has gone.
func (m *Memory) FreeExec(i int) {
	atomic.CompareAndSwapUint32(m.u32(uint64(ExecsOff+i<<ExecShift)+ExecState), ExecGo, 0)
}
