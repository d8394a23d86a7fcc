package recorder

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// startTimeOf returns when a process was started, in clock ticks since boot (proc_pid_stat(5), field 22). With the pid
// it names a process for good. pid "self" is this process.
func startTimeOf(pid string) (uint64, error) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
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
