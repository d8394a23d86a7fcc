package process

import (
	"bytes"
	"strconv"
	"time"
)

// ThreadRan is how much processor time a thread has used, in user space and in the kernel. It is false for a thread that has
// ended, and where the kernel does not count it (proc(5), /proc/PID/schedstat).
func ThreadRan(pid, tid int) (time.Duration, bool) {
	text, err := readProc(taskPath(pid, tid, "schedstat"))
	if err != nil {
		return 0, false
	}
	field, _, _ := bytes.Cut(text, []byte(" "))
	ns, err := strconv.ParseInt(string(field), 10, 64)
	return time.Duration(ns), err == nil && ns > 0
}
