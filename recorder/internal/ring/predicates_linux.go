package ring

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Predicates are the part of the memory by which stubs tell whether a call is one that a trigger is about; off is where it begins.
type Predicates struct {
	m   *Memory
	off uint64
}

// PredicatesAt returns that part of the memory.
func (m *Memory) PredicatesAt(off uint64) (*Predicates, error) {
	if off+PredicatesSize > uint64(len(m.mem)) {
		return nil, fmt.Errorf("callreel: ring memory of %d bytes has no predicates at %d", len(m.mem), off)
	}
	return &Predicates{m, off}, nil
}

// Predicate is what a stub compares at the exit of a call.
type Predicate struct {
	Kind      uint32
	Bits      int // of a result's type
	Signed    bool
	Not       bool
	Low, High int64
}

// Set makes v the i-th predicate, i being below MaxPredicates.
func (w *Predicates) Set(i int, v Predicate) {
	b := w.m.mem[w.off+PredicatesOff+uint64(i)<<PredicateShift:][:1<<PredicateShift]
	le := binary.LittleEndian
	flag := func(on bool) uint32 {
		if on {
			return 1
		}
		return 0
	}
	if v.Bits > 0 && v.Bits < 64 {
		le.PutUint32(b[PredicateShiftL:], uint32(64-v.Bits))
	} else {
		le.PutUint32(b[PredicateShiftL:], 0)
	}
	le.PutUint32(b[PredicateSign:], flag(v.Signed))
	le.PutUint32(b[PredicateNot:], flag(v.Not))
	le.PutUint64(b[PredicateLow:], uint64(v.Low))
	le.PutUint64(b[PredicateHigh:], uint64(v.High))
	atomic.StoreUint32(w.m.u32(w.off+PredicatesOff+uint64(i)<<PredicateShift+PredicateKind), v.Kind)
}

// Arm says whether a trigger that fires freezes the rings; else it is only counted.
func (w *Predicates) Arm(on bool) {
	v := uint64(0)
	if on {
		v = 1
	}
	atomic.StoreUint64(w.m.u64(HdrArmed), v)
}

// Fired is how often triggers have fired.
func (w *Predicates) Fired() uint32 { return atomic.LoadUint32(w.m.u32(HdrFired)) }

// FrozenAt is when the call ended, in TSC ticks, that froze the rings last; it is written just after that.
func (w *Predicates) FrozenAt() uint64 { return atomic.LoadUint64(w.m.u64(HdrFrozenAt)) }

// Untracked is how many calls were not tracked since too many were open.
func (w *Predicates) Untracked() uint64 { return atomic.LoadUint64(w.m.u64(HdrUntracked)) }

// Wait waits until Fired is no longer seen, or the time is over. It needs a thread of its own.
func (w *Predicates) Wait(seen uint32, timeout time.Duration) {
	const futexWait = 0
	ts := unix.NsecToTimespec(timeout.Nanoseconds())
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w.m.u32(HdrFired))), futexWait, uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// Wake ends a Wait.
func (w *Predicates) Wake() {
	const futexWake = 1
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w.m.u32(HdrFired))), futexWake, 1, 0, 0, 0)
}

// Firing is what a trigger had to say.
type Firing struct {
	Number    uint32
	Predicate int
	TID       int
	Ctx       uint64
	SP, Word  uint32 // of the call's events
	From, To  uint64 // TSC behind the entry and at the exit
	Result    uint64 // RAX
}

// Firing returns the firing of that number, if it is (still) there.
func (w *Predicates) Firing(n uint32) (f Firing, ok bool) {
	return w.firing(w.off+FiringsOff+uint64(n%Firings)<<FiringShift, n)
}

// Freezer returns the firing that froze the rings last, if it is complete and not the one of number last.
func (w *Predicates) Freezer(last uint32) (f Firing, ok bool) {
	at := w.off + FreezerOff
	n := atomic.LoadUint32(w.m.u32(at + FiringNumber))
	if n == last {
		return f, false
	}
	return w.firing(at, n)
}

func (w *Predicates) firing(at uint64, n uint32) (f Firing, ok bool) {
	m := w.m
	if atomic.LoadUint32(m.u32(at+FiringNumber)) != n || n == 0 {
		return f, false
	}
	spword := atomic.LoadUint64(m.u64(at + FiringSPWord))
	f = Firing{
		Number: n, Predicate: int(atomic.LoadUint32(m.u32(at + FiringPredicate))), TID: int(atomic.LoadUint32(m.u32(at + FiringTID))),
		Ctx: atomic.LoadUint64(m.u64(at + FiringCtx)), SP: uint32(spword), Word: uint32(spword >> 32),
		From: atomic.LoadUint64(m.u64(at + FiringFrom)), To: atomic.LoadUint64(m.u64(at + FiringTo)), Result: atomic.LoadUint64(m.u64(at + FiringResult)),
	}
	return f, atomic.LoadUint32(m.u32(at+FiringNumber)) == n
}

// OpenCall is a tracked call that had not returned when it was looked at.
type OpenCall struct {
	Place    int
	Ctx      uint64
	SP, Word uint32
	From     uint64
	Number   uint64
}

// EachOpen calls f for the tracked calls that are open and weren't taken for such that don't return.
func (w *Predicates) EachOpen(f func(c OpenCall)) {
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
func (w *Predicates) Take(c OpenCall) bool {
	at := w.off + OpenCallsOff + uint64(c.Place)<<OpenCallShift
	return atomic.CompareAndSwapUint64(w.m.u64(at+OpenNumber), c.Number, c.Number|OpenFired)
}

// Forget frees the place of a call that is gone without an exit.
func (w *Predicates) Forget(c OpenCall) {
	at := w.off + OpenCallsOff + uint64(c.Place)<<OpenCallShift
	if atomic.LoadUint64(w.m.u64(at+OpenFrom)) == c.From {
		atomic.StoreUint64(w.m.u64(at+OpenFrom), 0)
		atomic.StoreUint64(w.m.u64(at+OpenCtx), 0)
		atomic.StoreUint64(w.m.u64(at+OpenSPWord), 0)
	}
}
