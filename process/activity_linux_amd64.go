package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"

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
	if text, err = readProc(taskPath(p.pid, tid, "status")); err != nil {
		return a, goneError(p.pid, err)
	}
	if a.Blocked, err = parseCounter(text, "voluntary_ctxt_switches"); err != nil {
		return a, fmt.Errorf("process %d: thread %d: %w", p.pid, tid, err)
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

// FileOf says what a file descriptor of the process leads to (proc_pid_fd(5)): a path,
// or "socket:[INODE]", "pipe:[INODE]", "anon_inode:[KIND]".
func (p *Process) FileOf(fd int) (string, error) {
	to, err := os.Readlink(p.path("fd/" + strconv.Itoa(fd)))
	if err != nil {
		return "", p.gone(err)
	}
	return to, nil
}

// A Passage notices a thread's coming by an address: a hardware breakpoint of the kernel's
// that counts, of which the thread knows nothing. It lets itself go the first time, since
// it costs the thread a microsecond or, in virtual machines, ten. It must be closed; if
// this process is killed, the kernel does that.
type Passage struct{ fd int }

// Passage starts to notice that a thread executes the instruction at addr. It takes one
// of the processor's four breakpoints. The error wraps ErrNotPermitted where
// perf_event_paranoid forbids it, ErrReleased when the thread has ended.
func (p *Process) Passage(tid int, addr uint64) (*Passage, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: unix.PERF_ATTR_SIZE_VER1, Bp_type: 4, // HW_BREAKPOINT_X
		Ext1: addr, Ext2: 8, // bp_addr; bp_len must be that of a long
		Sample: 1, // one hit is an overflow, after which the event turns itself off
		Bits:   unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		if err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_REFRESH, 1); err == nil {
			return &Passage{fd}, nil
		}
		_ = unix.Close(fd)
	}
	switch {
	case errors.Is(err, unix.ESRCH):
		err = ErrReleased
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		err = fmt.Errorf("%w: %w (see kernel.perf_event_paranoid)", ErrNotPermitted, err)
	}
	return nil, fmt.Errorf("process %d: thread %d: breakpoint at %#x: %w", p.pid, tid, addr, err)
}

// Seen says whether the thread has come by since the Passage was made.
func (w *Passage) Seen() bool {
	var count [8]byte
	n, err := ignoreEINTR(func() (int, error) { return unix.Read(w.fd, count[:]) })
	return err == nil && n == len(count) && count != [8]byte{}
}

// Close lets go of the breakpoint.
func (w *Passage) Close() error { return unix.Close(w.fd) }
