package ring

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watches are the part of the memory by which calls are watched; off is where it begins.
type Watches struct {
	m   *Memory
	off uint64
}

// WatchesAt returns that part of the memory.
func (m *Memory) WatchesAt(off uint64) (*Watches, error) {
	if off+WatchesSize > uint64(len(m.mem)) {
		return nil, fmt.Errorf("callreel: ring memory of %d bytes has no watches at %d", len(m.mem), off)
	}
	return &Watches{m, off}, nil
}

// Watch is what is watched of a function.
type Watch struct {
	Kind      uint32
	Bits      int // of a result's type
	Signed    bool
	Not       bool
	Low, High int64
}

// Set makes w the i-th watch, i being below MaxWatches.
func (w *Watches) Set(i int, v Watch) {
	b := w.m.mem[w.off+WatchesOff+uint64(i)<<WatchShift:][:1<<WatchShift]
	le := binary.LittleEndian
	flag := func(on bool) uint32 {
		if on {
			return 1
		}
		return 0
	}
	if v.Bits > 0 && v.Bits < 64 {
		le.PutUint32(b[WatchShiftL:], uint32(64-v.Bits))
	} else {
		le.PutUint32(b[WatchShiftL:], 0)
	}
	le.PutUint32(b[WatchSign:], flag(v.Signed))
	le.PutUint32(b[WatchNot:], flag(v.Not))
	le.PutUint64(b[WatchLow:], uint64(v.Low))
	le.PutUint64(b[WatchHigh:], uint64(v.High))
	atomic.StoreUint32(w.m.u32(w.off+WatchesOff+uint64(i)<<WatchShift+WatchKind), v.Kind)
}

// Arm says whether a trigger that fires freezes the rings; else it is only counted.
func (w *Watches) Arm(on bool) {
	v := uint64(0)
	if on {
		v = 1
	}
	atomic.StoreUint64(w.m.u64(HdrArmed), v)
}

// Fired is how often triggers have fired.
func (w *Watches) Fired() uint32 { return atomic.LoadUint32(w.m.u32(HdrFired)) }

// FrozenAt is when the call ended, in TSC ticks, that froze the rings last; it is written just after that.
func (w *Watches) FrozenAt() uint64 { return atomic.LoadUint64(w.m.u64(HdrFrozenAt)) }

// Unwatched is how many calls were not watched since too many were open.
func (w *Watches) Unwatched() uint64 { return atomic.LoadUint64(w.m.u64(HdrUnwatched)) }

// Wait waits until Fired is no longer seen, or the time is over. It needs a thread of its own.
func (w *Watches) Wait(seen uint32, timeout time.Duration) {
	const futexWait = 0
	ts := unix.NsecToTimespec(timeout.Nanoseconds())
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w.m.u32(HdrFired))), futexWait, uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// Wake ends a Wait.
func (w *Watches) Wake() {
	const futexWake = 1
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w.m.u32(HdrFired))), futexWake, 1, 0, 0, 0)
}

// Firing is what a trigger had to say.
type Firing struct {
	Number   uint32
	Watch    int
	TID      int
	Ctx      uint64
	SP, Word uint32 // of the call's events
	From, To uint64 // TSC behind the entry and at the exit
	Result   uint64 // RAX
}

// Firing returns the firing of that number, if it is (still) there.
func (w *Watches) Firing(n uint32) (f Firing, ok bool) {
	return w.firing(w.off+FiringsOff+uint64(n%Firings)<<FiringShift, n)
}

// Freezer returns the firing that froze the rings last, if it is complete and not the one of number last.
func (w *Watches) Freezer(last uint32) (f Firing, ok bool) {
	at := w.off + FreezerOff
	n := atomic.LoadUint32(w.m.u32(at + FiringNumber))
	if n == last {
		return f, false
	}
	return w.firing(at, n)
}

func (w *Watches) firing(at uint64, n uint32) (f Firing, ok bool) {
	m := w.m
	if atomic.LoadUint32(m.u32(at+FiringNumber)) != n || n == 0 {
		return f, false
	}
	spword := atomic.LoadUint64(m.u64(at + FiringSPWord))
	f = Firing{
		Number: n, Watch: int(atomic.LoadUint32(m.u32(at + FiringWatch))), TID: int(atomic.LoadUint32(m.u32(at + FiringTID))),
		Ctx: atomic.LoadUint64(m.u64(at + FiringCtx)), SP: uint32(spword), Word: uint32(spword >> 32),
		From: atomic.LoadUint64(m.u64(at + FiringFrom)), To: atomic.LoadUint64(m.u64(at + FiringTo)), Result: atomic.LoadUint64(m.u64(at + FiringResult)),
	}
	return f, atomic.LoadUint32(m.u32(at+FiringNumber)) == n
}

// OpenCall is a watched call that had not returned when it was looked at.
type OpenCall struct {
	Place    int
	Ctx      uint64
	SP, Word uint32
	From     uint64
	Number   uint64
}

// EachOpen calls f for the watched calls that are open and weren't taken for such that don't return.
func (w *Watches) EachOpen(f func(c OpenCall)) {
	m := w.m
	for i := range OpenCalls {
		at := w.off + OpenCallsOff + uint64(i)<<OpenCallShift
		spword := atomic.LoadUint64(m.u64(at + OpenSPWord))
		if spword == 0 {
			continue
		}
		// From is stored last: what is loaded after it is of the same call.
		c := OpenCall{Place: i, SP: uint32(spword), Word: uint32(spword >> 32), From: atomic.LoadUint64(m.u64(at + OpenFrom))}
		c.Ctx, c.Number = atomic.LoadUint64(m.u64(at+OpenCtx)), atomic.LoadUint64(m.u64(at+OpenNumber))
		if c.From != 0 && c.Number&OpenFired == 0 && atomic.LoadUint64(m.u64(at+OpenSPWord)) == spword {
			f(c)
		}
	}
}

// Take notes that the recorder has taken an open call for one that doesn't return: its exit doesn't fire. It says whether the call was
// still there.
func (w *Watches) Take(c OpenCall) bool {
	at := w.off + OpenCallsOff + uint64(c.Place)<<OpenCallShift
	return atomic.CompareAndSwapUint64(w.m.u64(at+OpenNumber), c.Number, c.Number|OpenFired)
}

// Forget frees the place of a call that is gone without an exit.
func (w *Watches) Forget(c OpenCall) {
	at := w.off + OpenCallsOff + uint64(c.Place)<<OpenCallShift
	if atomic.LoadUint64(w.m.u64(at+OpenFrom)) == c.From {
		atomic.StoreUint64(w.m.u64(at+OpenFrom), 0)
		atomic.StoreUint64(w.m.u64(at+OpenCtx), 0)
		atomic.StoreUint64(w.m.u64(at+OpenSPWord), 0)
	}
}
