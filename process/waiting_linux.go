package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// errNotWaiting is why a thread's registers are not known to /proc.
var errNotWaiting = errors.New("it is not waiting in the kernel")

// WaitingAt returns what is known of the registers of a thread that waits in the
// kernel, without stopping it (proc_pid_syscall(5)). It is the only way to see where a
// thread is that cannot be stopped: blocked on a disk, or in vfork.
func (p *Process) WaitingAt(tid int) (Waiting, error) {
	text, err := os.ReadFile(taskPath(p.pid, tid, "syscall"))
	if err != nil {
		return Waiting{}, goneError(p.pid, err)
	}
	w, err := parseWaiting(string(text))
	if err != nil {
		return Waiting{}, fmt.Errorf("process %d: thread %d: %w", p.pid, tid, err)
	}
	return w, nil
}

// parseWaiting reads the call's number, six arguments, stack pointer and program
// counter; outside of a call the number is -1 and there are no arguments.
func parseWaiting(text string) (Waiting, error) {
	fields := strings.Fields(text)
	if len(fields) != 3 && len(fields) != 9 {
		return Waiting{}, errNotWaiting
	}
	var w Waiting
	var values []uint64
	for _, f := range fields[1:] {
		v, err := strconv.ParseUint(strings.TrimPrefix(f, "0x"), 16, 64)
		if err != nil {
			return Waiting{}, fmt.Errorf("system call: %w", err)
		}
		values = append(values, v)
	}
	if w.InSyscall = len(values) == 8; w.InSyscall {
		number, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			return Waiting{}, fmt.Errorf("system call: %w", err)
		}
		w.Number = number
		copy(w.Args[:], values)
	}
	w.SP, w.PC = values[len(values)-2], values[len(values)-1]
	return w, nil
}
