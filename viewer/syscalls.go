package viewer

import "fmt"

// syscallNames are the system calls that a thread may wait in, by the architecture in a reel's header (arch/x86/entry/syscalls/syscall_64.tbl,
// include/uapi/asm-generic/unistd.h).
var syscallNames = map[string]map[int32]string{
	"amd64": {
		0: "read", 1: "write", 7: "poll", 8: "lseek", 9: "mmap", 11: "munmap", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev",
		23: "select", 24: "sched_yield", 26: "msync", 28: "madvise", 34: "pause", 35: "nanosleep", 40: "sendfile", 42: "connect", 43: "accept",
		44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 56: "clone", 57: "fork", 58: "vfork", 59: "execve", 61: "wait4", 65: "semop",
		72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 128: "rt_sigtimedwait", 130: "rt_sigsuspend", 162: "sync", 202: "futex",
		208: "io_getevents", 220: "semtimedop", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat", 270: "pselect6",
		271: "ppoll", 277: "sync_file_range", 281: "epoll_pwait", 285: "fallocate", 288: "accept4", 299: "recvmmsg", 306: "syncfs", 307: "sendmmsg",
		333: "io_pgetevents", 426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2", 449: "futex_waitv",
	},
	"arm64": {
		4: "io_getevents", 22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 47: "fallocate", 56: "openat", 62: "lseek", 63: "read", 64: "write",
		65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 71: "sendfile", 72: "pselect6", 73: "ppoll", 81: "sync", 82: "fsync",
		83: "fdatasync", 84: "sync_file_range", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 124: "sched_yield",
		133: "rt_sigsuspend", 137: "rt_sigtimedwait", 192: "semtimedop", 193: "semop", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom",
		211: "sendmsg", 212: "recvmsg", 215: "munmap", 220: "clone", 221: "execve", 222: "mmap", 227: "msync", 233: "madvise", 242: "accept4",
		243: "recvmmsg", 260: "wait4", 267: "syncfs", 269: "sendmmsg", 292: "io_pgetevents", 426: "io_uring_enter", 435: "clone3",
		441: "epoll_pwait2", 449: "futex_waitv",
	},
}

// syscallName is what a system call is called, "" if it isn't known which it was.
func syscallName(arch string, number int32) string {
	if number < 0 {
		return ""
	}
	if name := syscallNames[arch][number]; name != "" {
		return name
	}
	return fmt.Sprintf("system call %d", number)
}
