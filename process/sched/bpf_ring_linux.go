package sched

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"unsafe"
)

// bpfRing is one processor's ring of records. A head or record that makes no sense is the kernel's; it is passed over.
type bpfRing struct {
	cpu   int32
	state []byte
	data  []byte

	counts   bool    // records say up to when the kernel has counted
	stint    stint   // of who came last
	edge     uint64  // the last boundary that was told
	switched count   // the last record of a switch that was taken
	counted  []count // of the records from first on
	first    uint64

	head, tail uint64
	lost       uint32 // what is known of
	last       uint64 // time of the last record that was taken
	stuck      bool   // the record at head isn't finished
	holes      []window
}

func (r *bpfRing) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&r.state[at])) }

// record is the one at a place, or nil while it isn't whole.
func (r *bpfRing) record(place uint64) []byte {
	size := uint64(len(r.data))
	at := place * recordSize & (size - 1)
	b := r.data[at : at+recordSize : at+recordSize]
	if uint32(atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[recCommit])))) != uint32(place+1) {
		return nil
	}
	return b
}

// patience is how often an unfinished record is looked at again. Programs run with interrupts off, or nearly, so that it
// takes longer only when the processor itself stands still (a virtual one), or the program has been put off.
const patience = 1000

// load looks at what there is.
func (r *bpfRing) load(limit uint64) {
	r.stuck = false
	lostNow := uint32(atomic.LoadUint64(r.word(stateLost)))
	r.head = atomic.LoadUint64(r.word(stateHead))
	if most := uint64(len(r.data) / recordSize); r.head-r.tail > most {
		r.tail = r.head - most // not reached: programs never pass the tail
	}
	// Only the last ones can be unfinished: those that have interrupted one another.
	for p := r.head - min(r.head-r.tail, ringReserve); p != r.head; p++ {
		for n := 0; r.record(p) == nil && n < patience; n++ {
		}
		if r.record(p) == nil {
			r.head, r.stuck = p, true
			break
		}
	}
	r.counted = r.counted[:0]
	r.holes = r.holes[:0]
	if lostNow == r.lost {
		return
	}
	last, lost := r.last, r.lost
	for p := r.tail; p != r.head; p++ {
		b := r.record(p)
		if b == nil {
			return // not reached
		}
		now := binary.LittleEndian.Uint64(b)
		if n := binary.LittleEndian.Uint32(b[recCommit+4:]); int32(n-lost) > 0 {
			r.holes = append(r.holes, window{from: last, to: now, count: uint64(n - lost)})
			lost = n
		}
		last = now
	}
	if int32(lostNow-lost) > 0 {
		r.holes = append(r.holes, window{from: last, to: max(limit, last), count: uint64(lostNow - lost)})
		lost = lostNow
	}
	r.lost = lost
}

func (r *bpfRing) windows() []window { return r.holes }

// bound is limit, unless a record is under way: then the time of the one before it.
func (r *bpfRing) bound(limit uint64) uint64 {
	if !r.stuck {
		return limit
	}
	last := r.last
	if r.head != r.tail {
		if b := r.record(r.head - 1); b != nil {
			last = binary.LittleEndian.Uint64(b)
		}
	}
	return min(limit, last)
}

// peek is the time of the next record.
func (r *bpfRing) peek() (time uint64, ok bool) {
	if r.tail == r.head {
		return 0, false
	}
	b := r.record(r.tail)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// take reads the next record, which peek has seen, into what happened to one thread or two.
func (r *bpfRing) take(out *[2]told) int {
	place := r.tail
	b := r.record(place)
	r.tail++
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	time := binary.LittleEndian.Uint64(b)
	r.last = time
	flags := u32(recFlags)
	prev := told{time: time, pid: int32(u32(recPrev)), tid: int32(u32(recPrev + 4)), cpu: r.cpu, syscall: NoSyscall}
	switch {
	case flags&flagWoken != 0:
		prev.kind, prev.waker = Woken, int32(u32(recNext))
	case flags&flagExec != 0:
		prev.kind = execed
	}
	if prev.kind != 0 {
		out[0] = prev
		return 1
	}
	n := 0
	if prev.pid != 0 {
		prev.kind = leftFor(flags)
		prev.shift, prev.excess = r.leaves(b, place, prev.kind)
		if prev.kind == Blocked || prev.kind == Uninterruptible {
			if prev.syscall = int32(flags>>numberShift&numberBits) - 1; prev.syscall != NoSyscall {
				for i := range prev.args {
					prev.args[i] = binary.LittleEndian.Uint64(b[recArgs+8*i:])
				}
				prev.args[len(prev.args)-1] &= math.MaxUint32 // recQueued is above it
			}
		}
		out[n] = prev
		n++
	}
	next := binary.LittleEndian.Uint64(b[recNext:])
	r.stint.known = false
	if pid := int32(next & (1<<nextBits - 1)); pid != 0 {
		in := told{time: time, pid: pid, tid: int32(next >> nextBits & (1<<nextBits - 1)), cpu: r.cpu, kind: In, syscall: NoSyscall}
		in.shift, in.length = r.comes(b, place, in.tid)
		in.queued = int64(u32(recQueued))
		out[n] = in
		n++
	}
	r.took(place)
	return n
}

// leftFor says why a thread has left the processor (include/linux/sched.h).
func leftFor(flags uint32) Kind {
	const (
		uninterruptible = 0x0002
		dead            = 0x0080
		sleepingLock    = 0x1000 // TASK_RTLOCK_WAIT
	)
	switch state := flags & flagStates; {
	case flags&flagPreempted != 0, state == 0:
		return Preempted
	case state&dead != 0:
		return Ended
	case flags&flagRunnable != 0:
		return Preempted
	case state&(uninterruptible|sleepingLock) != 0:
		return Uninterruptible
	}
	return Blocked
}

// release gives the room back.
func (r *bpfRing) release() { atomic.StoreUint64(r.word(stateTail), r.tail) }
