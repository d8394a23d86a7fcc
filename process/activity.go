package process

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Activity is what a thread is doing and has done up to now, as far as the kernel tells
// without stopping it. Two of them show whether it has got anywhere between.
type Activity struct {
	Name  string // of the thread, at most 15 bytes
	State byte   // R, S, D, T, t, Z, X, I
	// Blocked is how often the thread has left the processor to wait for something.
	Blocked uint64
	// Reads is how often it has called read(2) or its like, other than on message queues.
	Reads uint64
	// CPU is how long it has run, Queued how long it was ready to but had no processor.
	CPU, Queued time.Duration
	// StackStart is the address at which the program's stack begins: another one than
	// before means another program.
	StackStart uint64
	// Waiting is where it waits in the kernel. Nil when it runs, or is about to.
	Waiting *Waiting
}

// Ended says that the thread will never run again.
func (a *Activity) Ended() bool { return a.State == 'Z' || a.State == 'X' }

var errActivity = errors.New("malformed thread activity")

// parseStackStart reads field 28 of /proc/PID/stat (proc_pid_stat(5)).
func parseStackStart(text []byte) (uint64, error) {
	end := bytes.LastIndexByte(text, ')')
	fields := bytes.Fields(text[end+1:])
	if len(fields) <= 28-3 {
		return 0, fmt.Errorf("%w: stat has %d fields", errActivity, len(fields))
	}
	return strconv.ParseUint(string(fields[28-3]), 10, 64)
}

// parseSchedstat reads /proc/PID/schedstat: nanoseconds on a processor, and waiting for
// one (Linux Documentation/scheduler/sched-stats.rst).
func parseSchedstat(text []byte) (cpu, queued time.Duration, err error) {
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("%w: schedstat has %d fields", errActivity, len(fields))
	}
	ran, err1 := strconv.ParseInt(string(fields[0]), 10, 64)
	waited, err2 := strconv.ParseInt(string(fields[1]), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("%w: schedstat: %w", errActivity, err)
	}
	return time.Duration(ran), time.Duration(waited), nil
}

// parseCounter finds "key: number" in the lines of a file of /proc.
func parseCounter(text []byte, key string) (uint64, error) {
	for line := range bytes.Lines(text) {
		if name, value, ok := strings.Cut(string(line), ":"); ok && name == key {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%w: %s: %w", errActivity, key, err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: there is no %s", errActivity, key)
}

// StartsOver says whether a stop, as Process.EachThread makes it, would have the thread
// wait for its whole timeout again: these calls are begun anew, and the kernel does not
// keep what was left. A thread that is stopped oftener than that waits for ever. Timeouts
// of sockets (SO_RCVTIMEO) are not known of here.
func (w *Waiting) StartsOver() bool {
	const extendedArgument = 1 << 3 // IORING_ENTER_EXT_ARG, which may hold a timeout
	switch w.Syscall() {
	case "epoll_wait", "epoll_pwait":
		return int32(w.Args[3]) > 0
	case "epoll_pwait2", "semtimedop":
		return w.Args[3] != 0
	case "rt_sigtimedwait":
		return w.Args[2] != 0
	case "io_getevents", "io_pgetevents", "recvmmsg":
		return w.Args[4] != 0
	case "io_uring_enter":
		return w.Args[3]&extendedArgument != 0
	case "connect": // it has begun to, and would say so
		return true
	}
	return false
}
