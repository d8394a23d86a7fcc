package recorder_test

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// soon is how long something that takes no time may take on a machine that is
// shared. Whatever needs it is broken, not slow.
const soon = 30 * time.Second

// eventually waits until is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(start) > soon {
			t.Fatalf("after %v: not %s", soon, what)
		}
	}
}

// stateOf returns the letter of /proc/PID/stat, 0 when there is no such process.
func stateOf(pid int) byte {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	if i := bytes.LastIndex(data, []byte(") ")); i >= 0 && i+2 < len(data) {
		return data[i+2]
	}
	return 0
}

// waitState waits until a process is in the state.
func waitState(t testing.TB, pid int, want byte) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d in state %c", pid, want), func() bool { return stateOf(pid) == want })
}
