package process

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A Handle holds on to a process, whatever it is and whomever it belongs to, without looking into it: while it is alive its ID is
// nobody else's. What is found out about the process by its ID counts if Alive says true afterwards.
type Handle struct {
	pid   int
	start uint64 // clock ticks since boot
	pidfd int    // -1 before Linux 5.3, where the start time has to do
}

// Hold returns the process that has that ID now. ErrNoProcess if there is none, or it has ended and waits to be reaped.
func Hold(pid int) (*Handle, error) {
	if pid <= 0 {
		return nil, fmt.Errorf("process %d: %w: IDs are positive", pid, ErrNoProcess)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ENOSYS):
		fd = -1
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // since Linux 6.9
		return nil, fmt.Errorf("process %d: %w: it is a thread of another", pid, ErrThreadGroup)
	case err != nil:
		return nil, fmt.Errorf("process %d: pidfd: %w", pid, err)
	}
	h := &Handle{pid: pid, pidfd: fd}
	st, err := readStat(pid, pid)
	if err == nil {
		h.start = st.startTime
		if !h.Alive() {
			err = fmt.Errorf("process %d: %w: it has ended", pid, ErrNoProcess)
		}
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Hold returns a handle on the process, which outlives p. ErrNoProcess if it has ended.
func (p *Process) Hold() (*Handle, error) {
	h, err := Hold(p.pid)
	if err != nil {
		return nil, err
	}
	if h.start != p.start || !p.Alive() { // else its ID was its own when h was made
		h.Close()
		return nil, fmt.Errorf("process %d: %w: it has ended", p.pid, ErrNoProcess)
	}
	return h, nil
}

// Close lets go of the process's ID. It may be called more than once, and of a nil Handle.
func (h *Handle) Close() {
	if h != nil && h.pidfd >= 0 {
		_ = unix.Close(h.pidfd) // nothing was written
		h.pidfd = -1
	}
}

// Pid returns the process ID as seen from here.
func (h *Handle) Pid() int { return h.pid }

// StartTime returns when the process was started, in clock ticks since boot.
func (h *Handle) StartTime() uint64 { return h.start }

// Alive says whether any of the process's threads still runs.
func (h *Handle) Alive() bool {
	return (&Process{pid: h.pid, start: h.start, pidfd: h.pidfd}).Alive()
}

// Parent returns the ID of its parent: 0 if that is none, or not seen from here.
func (h *Handle) Parent() (int, error) {
	st, err := readStat(h.pid, h.pid)
	if err == nil && !h.Alive() {
		err = fmt.Errorf("process %d: %w: it has ended", h.pid, ErrNoProcess)
	}
	return st.parent, err
}

// Status returns the status of its first thread.
func (h *Handle) Status() (Status, error) {
	st, err := readStatus(h.pid, h.pid)
	if err == nil && !h.Alive() {
		err = fmt.Errorf("process %d: %w: it has ended", h.pid, ErrNoProcess)
	}
	return st, err
}

// Is says whether p, which was opened later than h, is that process. It is false once the process has ended.
func (h *Handle) Is(p *Process) bool { return h.pid == p.pid && h.start == p.start && h.Alive() }

// TicksSinceBoot is the time now as StartTime counts it: in 1/100 s, and with what the machine was asleep for.
func TicksSinceBoot() (uint64, error) {
	const userHZ = 100 // of x86-64, whatever the kernel's own clock
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("clock: %w", err)
	}
	return uint64(time.Duration(ts.Nano()) / (time.Second / userHZ)), nil
}
