package process

// syscallNames holds the x86-64 system calls that this package or its callers
// make in a target or meet a thread blocked in; messages name the others by
// number (arch/x86/entry/syscalls/syscall_64.tbl).
var syscallNames = map[uint64]string{
	0: "read", 1: "write", 2: "open", 3: "close", 7: "poll", 8: "lseek", 9: "mmap", 10: "mprotect",
	11: "munmap", 13: "rt_sigaction", 14: "rt_sigprocmask", 15: "rt_sigreturn", 16: "ioctl",
	17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select", 24: "sched_yield",
	25: "mremap", 26: "msync", 28: "madvise", 32: "dup", 34: "pause", 35: "nanosleep", 39: "getpid", 40: "sendfile",
	42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg",
	56: "clone", 57: "fork", 58: "vfork", 59: "execve", 61: "wait4", 65: "semop", 70: "msgrcv", 72: "fcntl",
	73: "flock", 74: "fsync", 75: "fdatasync", 77: "ftruncate", 110: "getppid", 127: "rt_sigpending", 128: "rt_sigtimedwait",
	130: "rt_sigsuspend", 131: "sigaltstack", 157: "prctl", 158: "arch_prctl", 162: "sync", 186: "gettid",
	202: "futex", 208: "io_getevents", 218: "set_tid_address", 219: "restart_syscall",
	220: "semtimedop", 230: "clock_nanosleep", 231: "exit_group", 232: "epoll_wait", 243: "mq_timedreceive", 247: "waitid",
	217: "getdents64", 242: "mq_timedsend", 257: "openat", 270: "pselect6", 271: "ppoll", 275: "splice", 276: "tee", 277: "sync_file_range", 278: "vmsplice", 281: "epoll_pwait", 285: "fallocate", 288: "accept4", 295: "preadv", 296: "pwritev", 299: "recvmmsg", 306: "syncfs", 307: "sendmmsg", 310: "process_vm_readv",
	319: "memfd_create", 326: "copy_file_range", 327: "preadv2", 328: "pwritev2", 324: "membarrier", 333: "io_pgetevents", 334: "rseq", 426: "io_uring_enter",
	435: "clone3", 441: "epoll_pwait2", 449: "futex_waitv",
}
