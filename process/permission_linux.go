package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const capSysPtrace = 19 // CAP_SYS_PTRACE

// notPermitted explains why the kernel refuses (ptrace(2), "Ptrace access mode
// checking") and names what would make it work.
func notPermitted(pid int, s Status, cause error) error {
	var why []string
	me := os.Getuid()
	switch {
	case otherUserNamespace(pid):
		why = append(why, "it is in another user namespace: run as root of the host or inside its namespace")
	case s.UIDs[0] != me || s.UIDs[1] != me || s.UIDs[2] != me:
		why = append(why, fmt.Sprintf("it runs as user %d and we as %d: run as that user or with CAP_SYS_PTRACE (root)", s.UIDs[0], me))
	case notDumpable(pid, s):
		why = append(why, "it has made itself not dumpable (setuid program or prctl PR_SET_DUMPABLE): CAP_SYS_PTRACE (root) is needed")
	}
	if scope := yamaScope(); scope > 0 {
		why = append(why, yamaAdvice(scope))
	}
	if HasCapability(capSysPtrace) {
		why = append(why, "CAP_SYS_PTRACE is held, so a security module or a container's policy refuses")
	}
	if len(why) == 0 {
		why = append(why, "CAP_SYS_PTRACE (root) is needed, in a container --cap-add SYS_PTRACE")
	}
	return fmt.Errorf("process %d (%s): %w: %s (%w)", pid, s.Name, ErrNotPermitted, strings.Join(why, "; "), cause)
}

func yamaAdvice(scope int) string {
	switch scope {
	case 1:
		return "kernel.yama.ptrace_scope is 1 and allows children only: sysctl kernel.yama.ptrace_scope=0, or CAP_SYS_PTRACE (root)"
	case 2:
		return "kernel.yama.ptrace_scope is 2: CAP_SYS_PTRACE (root) is needed"
	default:
		return fmt.Sprintf("kernel.yama.ptrace_scope is %d: no process can be traced until the next boot", scope)
	}
}

// yamaScope returns kernel.yama.ptrace_scope, 0 where there is no Yama.
func yamaScope() int {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// HasCapability says whether this process may do what a capability allows now, CAP_SYS_PTRACE say (capabilities(7)).
func HasCapability(n uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	return data[n/32].Effective&(1<<(n%32)) != 0
}

// notDumpable uses that the kernel gives the /proc files of such a process to root.
func notDumpable(pid int, s Status) bool {
	var st unix.Stat_t
	return unix.Stat(procPath(pid, "status"), &st) == nil && int(st.Uid) != s.UIDs[1]
}

func otherUserNamespace(pid int) bool {
	ours, err1 := os.Readlink("/proc/self/ns/user")
	theirs, err2 := os.Readlink(procPath(pid, "ns/user"))
	return err1 == nil && err2 == nil && ours != theirs
}
