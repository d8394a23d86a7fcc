package scheduling

import (
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/process/sched"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// What a thread waited for is worth noting if it waited long. Where only /proc tells the system call it is asked of threads that have
// waited for so long that it will do no harm if they are found in another one, which the words that follow show.
const (
	leastWait     = 100 * time.Microsecond
	leastLookup   = 2 * time.Millisecond
	lookupsAtOnce = 64 // at some 5 µs
)

// block is a thread's waiting.
type block struct {
	at      uint64 // tick since when; 0 if it doesn't wait
	syscall int32  // sched.NoSyscall if that isn't known
	args    [3]uint64
	object  string
	named   bool   // the object was looked for
	looked  uint64 // tick at which /proc has told the system call, 0 if nobody asked
}

// blocked notes that a thread begins to wait.
func (w *Watch) blocked(k *life, e *sched.Event) {
	k.block = block{at: e.Time, syscall: e.Syscall, args: e.Args}
	if !k.waiting {
		k.waiting = true
		w.waiting = append(w.waiting, k)
	}
}

// unblocked notes that a thread waits no more, and what it has waited for if that was long.
func (w *Watch) unblocked(k *life, tick uint64) {
	if x, ok := w.waitsFor(k, tick); ok {
		w.waits++
		w.keep.waited(k, x, tick)
	} else if b := &k.block; !w.tellsCalls && b.at != 0 && tick >= b.at+w.leastWait && tick > w.from {
		w.keep.waited(k, reel.Wait{Time: max(b.at, w.from), Syscall: sched.NoSyscall}, tick)
	}
	k.block = block{}
}

// waitsFor says what a thread waits for that has done so up to a tick, if that is long and it is known.
func (w *Watch) waitsFor(k *life, tick uint64) (x reel.Wait, ok bool) {
	b := &k.block
	if b.at == 0 || tick < b.at+w.leastWait || tick <= w.from || b.looked >= tick {
		return x, false
	}
	w.name(k)
	return reel.Wait{Time: max(b.at, w.from), Syscall: b.syscall, Args: b.args, Object: b.object}, b.syscall != sched.NoSyscall
}

// name finds out what the descriptor is that a thread waits for, once.
func (w *Watch) name(k *life) {
	b := &k.block
	if b.named || b.syscall < 0 {
		return
	}
	b.named = true
	if process.WaitsForDescriptor(uint64(b.syscall)) {
		b.object = w.objects.of(k.pid, b.args[0])
	}
}

// look looks at the threads that wait: what they wait for is there now, and may be closed when they have ended waiting.
func (w *Watch) look(bound uint64) {
	kept, lookups := w.waiting[:0], 0
	for _, k := range w.waiting {
		b := &k.block
		since := bound - min(bound, b.at)
		switch {
		case b.at == 0 || b.syscall != sched.NoSyscall && b.named:
			k.waiting = false
			continue
		case b.syscall != sched.NoSyscall:
			if since >= w.leastWait {
				w.name(k)
			}
		case w.tellsCalls || b.looked != 0 || b.at <= w.from: // it waits for a page, say
			k.waiting = false
			continue
		case since >= w.leastLookup && lookups < lookupsAtOnce:
			lookups++
			w.lookUp(k)
		}
		kept = append(kept, k)
	}
	clear(w.waiting[len(kept):])
	w.waiting = kept
}

// lookUp asks /proc which system call a thread waits in.
func (w *Watch) lookUp(k *life) {
	at, err := process.WaitingAt(k.pid, k.tid)
	b := &k.block
	b.looked = ring.Ticks()
	if err != nil || !at.InSyscall || at.Number > 1<<31-1 {
		return
	}
	b.syscall = int32(at.Number)
	copy(b.args[:], at.Args[:])
	w.name(k)
}
