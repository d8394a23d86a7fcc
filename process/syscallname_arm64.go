package process

// syscallNames are those of AArch64 (include/uapi/asm-generic/unistd.h).
var syscallNames = map[uint64]string{
	4: "io_getevents", 22: "epoll_pwait", 23: "dup", 25: "fcntl", 29: "ioctl", 32: "flock", 46: "ftruncate",
	47: "fallocate", 56: "openat", 57: "close", 61: "getdents64", 62: "lseek", 63: "read", 64: "write", 65: "readv", 66: "writev",
	67: "pread64", 68: "pwrite64", 69: "preadv", 70: "pwritev", 71: "sendfile", 72: "pselect6", 73: "ppoll", 75: "vmsplice", 76: "splice", 77: "tee", 81: "sync",
	82: "fsync", 83: "fdatasync", 84: "sync_file_range", 94: "exit_group", 95: "waitid", 96: "set_tid_address",
	98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 124: "sched_yield", 128: "restart_syscall",
	132: "sigaltstack", 133: "rt_sigsuspend", 134: "rt_sigaction", 135: "rt_sigprocmask", 136: "rt_sigpending",
	137: "rt_sigtimedwait", 139: "rt_sigreturn", 167: "prctl", 172: "getpid", 173: "getppid", 178: "gettid",
	182: "mq_timedsend", 183: "mq_timedreceive", 188: "msgrcv", 192: "semtimedop", 193: "semop", 202: "accept", 203: "connect",
	206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 215: "munmap", 216: "mremap", 220: "clone",
	221: "execve", 222: "mmap", 226: "mprotect", 227: "msync", 233: "madvise", 242: "accept4", 243: "recvmmsg",
	260: "wait4", 267: "syncfs", 269: "sendmmsg", 270: "process_vm_readv", 279: "memfd_create", 283: "membarrier", 292: "io_pgetevents",
	285: "copy_file_range", 286: "preadv2", 287: "pwritev2", 293: "rseq", 426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2", 449: "futex_waitv",
}
