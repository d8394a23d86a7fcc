package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// patienceForCall is how long a thread may take to get back into its system call while it is still ours.
const patienceForCall = 50 * time.Millisecond

// reenter lets a thread go that begins its system call anew, because it has made calls for us. On processors where the kernel doesn't do that
// by itself, a signal that comes before the thread is in its call would find it in none, and would not end it. So it is let go from within
// the call. If it is faster than that, or very slow, it is let go where it is.
func (t *Thread) reenter() {
	if !t.stopped || t.groupStop {
		t.letGo()
		return
	}
	t.stopped = false
	if resume(t.TID, 0) != nil {
		t.ended, t.s.leftover = true, true
		return
	}
	deadline, ordered := time.Now().Add(patienceForCall), false
	for tries := 0; ; tries++ {
		r, ok, err := peek(t.TID)
		if err != nil || ok && r.exited {
			t.markEnded()
			return
		}
		if ok {
			t.letGoFrom(r)
			return
		}
		if st, err := readStat(t.s.p.pid, t.TID); !ordered && (err != nil || st.state == 'S' || time.Now().After(deadline)) {
			t.order()
			ordered = true
		}
		if time.Now().After(deadline.Add(t.s.opts.timeout())) {
			t.s.leftover = true
			return
		}
		pause(tries)
	}
}

// letGoFrom lets a thread go from its stop, with the signal that it has stopped for.
func (t *Thread) letGoFrom(r report) {
	signal := 0
	switch {
	case r.event == 0 && r.signal != sysStop:
		signal = r.signal
		if regs, err := getRegs(t.TID); err == nil && t.hasHandler(signal) && arch.endForHandler(t, &regs) {
			_ = setRegs(t.TID, regs)
		}
	case r.event == unix.PTRACE_EVENT_EXEC:
		takeExec(t.TID)
	case r.event == unix.PTRACE_EVENT_STOP:
		t.keepOnRelease()
	default:
		t.s.leftover = true // it has made another thread, which is ours as well
	}
	t.ordered = false
	if detach(t.TID, signal) != nil {
		t.ended, t.s.leftover = true, true
	}
}

// keepOnRelease is keepRestartable for a thread that is stopped once more as it is let go.
func (t *Thread) keepOnRelease() {
	release := t.s.release
	t.s.release, t.stopped, t.haveRegs = false, true, false
	_ = t.keepRestartable() // else it is as the kernel has it
	t.s.release, t.stopped = release, false
}

// hasHandler says whether the program handles a signal.
func (t *Thread) hasHandler(signal int) bool {
	status, err := readStatus(t.s.p.pid, t.TID)
	return err == nil && signal > 0 && signal <= 64 && status.SigCaught&(1<<(signal-1)) != 0
}
