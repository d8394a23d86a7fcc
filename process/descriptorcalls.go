package process

// descriptorCalls are the system calls that may wait, and whose first argument is the descriptor that they wait for.
var descriptorCalls = map[string]bool{
	"read": true, "write": true, "pread64": true, "pwrite64": true, "readv": true, "writev": true, "preadv": true, "pwritev": true,
	"preadv2": true, "pwritev2": true, "sendto": true, "recvfrom": true, "sendmsg": true, "recvmsg": true, "sendmmsg": true, "recvmmsg": true,
	"accept": true, "accept4": true, "connect": true, "sendfile": true, "splice": true, "tee": true, "vmsplice": true, "copy_file_range": true,
	"epoll_wait": true, "epoll_pwait": true, "epoll_pwait2": true, "fsync": true, "fdatasync": true, "sync_file_range": true, "syncfs": true,
	"ftruncate": true, "fallocate": true, "flock": true, "fcntl": true, "ioctl": true, "close": true, "lseek": true, "getdents64": true,
	"io_uring_enter": true, "mq_timedreceive": true, "mq_timedsend": true,
}

// WaitsForDescriptor says whether a system call of this machine's processor waits for what its first argument, a descriptor, stands for. Those
// that take several descriptors (poll, select) don't.
func WaitsForDescriptor(number uint64) bool { return descriptorCalls[syscallNames[number]] }
