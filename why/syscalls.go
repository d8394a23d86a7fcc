package why

import (
	"fmt"
	"strings"
)

// syscallNames are the system calls that wait, as a rule, by number and architecture (arch/x86/entry/syscalls/syscall_64.tbl,
// include/uapi/asm-generic/unistd.h).
var syscallNames = map[string]map[int32]string{
	"amd64": {
		0: "read", 1: "write", 3: "close", 5: "fstat", 7: "poll", 9: "mmap", 10: "mprotect", 11: "munmap", 12: "brk", 16: "ioctl", 17: "pread64", 18: "pwrite64",
		19: "readv", 20: "writev", 23: "select", 26: "msync", 28: "madvise", 34: "pause", 35: "nanosleep", 40: "sendfile", 42: "connect",
		43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 56: "clone", 57: "fork", 58: "vfork", 59: "execve", 61: "wait4", 65: "semop", 69: "msgsnd", 70: "msgrcv", 72: "fcntl",
		73: "flock", 74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate", 82: "rename", 87: "unlink", 128: "rt_sigtimedwait", 130: "rt_sigsuspend", 162: "sync", 202: "futex", 208: "io_getevents",
		217: "getdents64", 220: "semtimedop", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll", 277: "sync_file_range",
		281: "epoll_pwait", 288: "accept4", 295: "preadv", 296: "pwritev", 299: "recvmmsg", 306: "syncfs", 426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2",
	},
	"arm64": {
		22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 57: "close", 63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64",
		71: "sendfile", 72: "pselect6", 73: "ppoll", 81: "sync", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 133: "rt_sigsuspend",
		137: "rt_sigtimedwait", 193: "semop", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 214: "brk",
		215: "munmap", 220: "clone", 221: "execve", 222: "mmap", 226: "mprotect", 227: "msync", 233: "madvise", 242: "accept4", 243: "recvmmsg", 260: "wait4", 267: "syncfs", 426: "io_uring_enter", 441: "epoll_pwait2",
	},
}

// sleeps are those that end with a timer.
var sleeps = map[string]bool{"nanosleep": true, "clock_nanosleep": true}

// syscall is the name of a system call, "" if it isn't known.
func (x *explainer) syscall(number int32) string { return syscallNames[x.f.Header().Arch][number] }

func (x *explainer) syscallText(number int32) string {
	if name := x.syscall(number); name != "" {
		return name
	}
	return fmt.Sprintf("system call %d", number)
}

// sleepsByName says whether a function of a C library or a runtime does nothing but sleep.
func sleepsByName(name string) bool {
	return strings.Contains(name, "nanosleep") || name == "usleep" || name == "sleep" || name == "time.Sleep"
}

// waits are functions of libraries that only wait for others: who is in one is named by its caller.
var waits = []string{
	"pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "pthread_join", "pthread_barrier_wait", "lll_lock_wait",
	"sem_wait", "sem_timedwait", "futex_wait", "nanosleep", "clock_nanosleep", "usleep", "sleep", "poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait", "read", "recv", "recvfrom", "recvmsg", "write", "send", "sendto", "sendmsg", "accept",
	"accept4", "connect", "fsync", "fdatasync", "wait4", "waitpid", "waitid", "flock", "runtime.gopark", "runtime.futex",
}

// isWait says whether a function is one of those, by whatever name libraries give it.
func isWait(name string) bool {
	name = strings.TrimLeft(name, "_")
	name = strings.TrimPrefix(name, "libc_")
	name = strings.TrimPrefix(name, "GI_")
	name = strings.TrimLeft(name, "_")
	if at := strings.IndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	for _, w := range waits {
		if name == w || strings.HasPrefix(name, w+"64") || strings.HasPrefix(name, "pthread_") && strings.HasPrefix(name, w+"_") {
			return true
		}
	}
	return false
}
