package scheduling

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process/sched"
	"github.com/callreel/callreel/reel"
)

// A wait is settled some time after it has ended: the scheduler tells of it, the rings of the call that it was in and of the one that ended it,
// and neither is first.

// maxEnded bounds how many waits of a thread are to be settled.
const maxEnded = 1 << 12

// endedWait is a wait that has ended at a tick.
type endedWait struct {
	reel.Wait
	to uint64
}

func (r *Reel) waited(k *life, x reel.Wait, to uint64) {
	p := &k.part
	if len(p.ended) >= maxEnded {
		r.settleFirst(k, len(p.ended)/2)
	}
	p.ended = append(p.ended, endedWait{x, to})
	if !p.open {
		p.open = true
		r.unsettled = append(r.unsettled, k)
	}
}

// settle settles the waits that ended long enough ago; all if nothing follows.
func (r *Reel) settle(bound uint64) {
	r.join.links = linksAtOnce
	after, atLast := r.ticks(settleTime), r.ticks(socketTime)
	kept := r.unsettled[:0]
	for _, k := range r.unsettled {
		p := &k.part
		n := 0
		for n < len(p.ended) {
			x := &p.ended[n]
			if !r.last && (x.to+after > bound || x.to+atLast > bound && r.looksForSockets(k, x)) {
				break
			}
			n++
		}
		r.settleFirst(k, n)
		if len(p.ended) > 0 {
			kept = append(kept, k)
		} else {
			p.open, p.ended = false, nil
		}
	}
	clear(r.unsettled[len(kept):])
	r.unsettled = kept
}

// looksForSockets says whether a thread waited for a socket, and sockets of the process are still looked for.
func (r *Reel) looksForSockets(k *life, x *endedWait) bool {
	if len(r.objects.asked[k.pid]) == 0 {
		return false
	}
	c := callOf(k.part.calls, x)
	return c != nil && c.Descriptor && (len(c.watched) > 0 || strings.HasPrefix(c.object, "socket:"))
}

// callOf is the innermost of a thread's calls that it has waited in, nil if none is known.
func callOf(calls []waitCall, x *endedWait) (c *waitCall) {
	for i := range calls {
		if y := &calls[i]; y.Start <= x.Time && y.End >= x.to && (c == nil || c.Start < y.Start) {
			c = y
		}
	}
	return c
}

// settleFirst settles the first n waits of a thread. Those of which nothing is known by then are left out.
func (r *Reel) settleFirst(k *life, n int) {
	if n == 0 {
		return
	}
	p := &k.part
	for i := range p.ended[:n] {
		x := &p.ended[i]
		known := x.Syscall != sched.NoSyscall
		r.join.explain(k, p.calls, x, func(by *life) *reel.ThreadWriter { return by.part.w })
		if !x.isKnown() {
			continue
		}
		if !known {
			r.waits++
		}
		p.waits = append(p.waits, x.Wait)
		r.touch(k)
	}
	done := p.ended[n-1].to
	p.ended = append(p.ended[:0], p.ended[n:]...)
	over := 0
	for over < len(p.calls) && p.calls[over].End <= done {
		over++
	}
	p.calls = append(p.calls[:0], p.calls[over:]...)
}

// isKnown says whether anything is known of it.
func (x *endedWait) isKnown() bool {
	return x.Syscall != sched.NoSyscall || x.Lock != 0 || x.Object != ""
}

// explain finds the call that a thread has waited in, and the one that has let it go on. writer is the part of the reel that a thread has, nil if
// it has none.
func (j *joining) explain(k *life, calls []waitCall, x *endedWait, writer func(*life) *reel.ThreadWriter) {
	c := callOf(calls, x)
	of := j.enders[k.pid]
	if c == nil || of == nil {
		return
	}
	var by *ender
	how := reel.EndUnlock
	switch {
	case c.Descriptor:
		if x.Syscall == sched.NoSyscall {
			x.Args[0], x.Object = uint64(uint32(c.Args[0])), c.object
		}
		by, how = of.reached(&j.watch.objects, k, c, x.Time, x.to), reel.EndDescriptor
	case x.Syscall != sched.NoSyscall && x.Syscall != unix.SYS_FUTEX:
		return
	default:
		x.Lock, x.Mutex = c.Args[0], c.Args[1]
		by = of.unlocked(k, x.Lock, x.Time, x.to)
		if by == nil && x.Mutex != 0 { // it was signalled before, and waits for the mutex
			if by = of.unlocked(k, x.Mutex, x.Time, x.to); by != nil && by.start > x.Time {
				x.Lock = x.Mutex
			} else {
				by = nil
			}
		}
	}
	if by == nil {
		return
	}
	if w := writer(by.k); w != nil {
		x.Ender, x.EndedAt, x.EndedBy = w.Key(), max(by.start, x.Time), how
	}
}
