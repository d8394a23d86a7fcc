package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Activity reads what a thread is doing, without stopping it, in some ten microseconds.
// The error is ErrNoProcess once the thread has ended and was waited for.
func (p *Process) Activity(tid int) (Activity, error) {
	var a Activity
	text, err := readProc(taskPath(p.pid, tid, "stat"))
	if err != nil {
		return a, goneError(p.pid, err)
	}
	st, err := parseStat(text)
	if err != nil {
		return a, fmt.Errorf("process %d: thread %d: %w", p.pid, tid, err)
	}
	a.Name, a.State = st.name, st.state
	if a.StackStart, err = parseStackStart(text); err != nil {
		return a, fmt.Errorf("process %d: thread %d: %w", p.pid, tid, err)
	}
	if a.Ended() {
		return a, nil
	}
	if a.Blocked, err = p.Blocked(tid); err != nil {
		return a, err
	}
	// Kernels may be built without these two; what is known without them has to do.
	if text, err = readProc(taskPath(p.pid, tid, "schedstat")); err == nil {
		a.CPU, a.Queued, _ = parseSchedstat(text)
	}
	if text, err = readProc(taskPath(p.pid, tid, "io")); err == nil {
		a.Reads, _ = parseCounter(text, "syscr")
	}
	if a.State != 'R' {
		if w, err := p.WaitingAt(tid); err == nil {
			a.Waiting = &w
		}
	}
	return a, nil
}

// Blocked reads how often a thread has left the processor to wait for something: as long
// as it waits, the number stays. The error is that of Activity.
func (p *Process) Blocked(tid int) (uint64, error) {
	blocked, _, err := p.Waits(tid)
	return blocked, err
}

// Waits reads whether a thread waits now, and how often it has left the processor to do so, as Blocked does. The error is that of Activity.
func (p *Process) Waits(tid int) (blocked uint64, waits bool, err error) {
	text, err := readProc(taskPath(p.pid, tid, "status"))
	if err != nil {
		return 0, false, goneError(p.pid, err)
	}
	if blocked, err = parseCounter(text, "voluntary_ctxt_switches"); err != nil {
		return 0, false, fmt.Errorf("process %d: thread %d: %w", p.pid, tid, err)
	}
	_, state, _ := bytes.Cut(text, []byte("\nState:\t"))
	return blocked, len(state) > 0 && (state[0] == 'S' || state[0] == 'D'), nil
}

// CPU is the processor time, user and system, that the process has used, with all its
// threads that have ended. The error is ErrNoProcess once the process has ended.
func (p *Process) CPU() (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED (include/linux/posix-timers.h)
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^p.pid<<3|scheduled), &ts); err != nil {
		return 0, goneError(p.pid, unix.ESRCH) // EINVAL, which is said of nothing else
	}
	return time.Duration(ts.Nano()), nil
}

// FileOf says what a file descriptor of the process leads to (proc_pid_fd(5)): a path,
// or "socket:[INODE]", "pipe:[INODE]", "anon_inode:[KIND]".
func (p *Process) FileOf(fd int) (string, error) {
	to, err := os.Readlink(p.path("fd/" + strconv.Itoa(fd)))
	if err != nil {
		return "", p.gone(err)
	}
	return to, nil
}
