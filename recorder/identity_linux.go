package recorder

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// startTimeOf returns when a process was started, in clock ticks since boot (proc_pid_stat(5), field 22). With the pid
// it names a process for good. pid "self" is this process.
func startTimeOf(pid string) (uint64, error) {
	var room [procRoom]byte
	b, err := readProc("/proc/"+pid+"/stat", room[:])
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything, a parenthesis too.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%s/stat has %d fields", pid, len(fields))
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// recorderLives says whether the recorder with that PID and start time is at work. One that is being killed isn't, but
// may still be about it: then it waits a little for its end.
func recorderLives(pid int, start uint64) bool {
	for try := 0; ; try++ {
		now, err := startTimeOf(strconv.Itoa(pid))
		if err != nil || now != start {
			return false
		}
		dying, dead := endOf(strconv.Itoa(pid))
		if dead {
			return false
		}
		if !dying || try >= 100 {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// endOf says whether a process has SIGKILL pending or is ending, and whether it has ended and only waits for its parent
// to notice (proc_pid_stat(5), fields 3 and 9; proc_pid_status(5), ShdPnd).
func endOf(pid string) (dying, dead bool) {
	const (
		exiting = 0x4 // PF_EXITING
		sigkill = 1 << 8
	)
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false, true
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 7 {
		return false, false
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return true, true
	}
	if flags, err := strconv.ParseUint(string(fields[6]), 10, 64); err == nil && flags&exiting != 0 {
		return true, false
	}
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return false, true
	}
	_, rest, _ := bytes.Cut(status, []byte("\nShdPnd:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	pending, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
	return err == nil && pending&sigkill != 0, false
}
