package invoke

import "strings"

func set(names string) map[string]bool {
	out := map[string]bool{}
	for _, n := range strings.Fields(names) {
		out[n] = true
	}
	return out
}

// waits are functions of C libraries that do nothing but wait in the kernel, or make one system call, without a lock. Not among them are
// those that wait for a lock: what is called may want it, too.
var waits = set(`
	poll ppoll poll_chk ppoll_chk select pselect epoll_wait epoll_pwait epoll_pwait2
	nanosleep clock_nanosleep usleep sleep thrd_sleep pause sigsuspend sigpause sigwait sigwaitinfo sigtimedwait
	read read_chk readv pread pread_chk preadv preadv2 write writev pwrite pwritev
	recv recv_chk recvfrom recvfrom_chk recvmsg recvmmsg send sendto sendmsg sendmmsg accept accept4
	wait wait3 wait4 waitpid waitid msgrcv msgsnd semop semtimedop mq_receive mq_timedreceive io_getevents getrandom
	pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait cnd_wait cnd_timedwait pthread_barrier_wait
	sem_wait sem_timedwait sem_clockwait pthread_join pthread_timedjoin_np pthread_clockjoin_np thrd_join
	syscall flock ioctl splice tee vmsplice sendfile copy_file_range`)

// callsBack are functions of C libraries that hold no lock while they call the program.
var callsBack = set(`
	start_main start_call_main start_thread qsort qsort_r msort_with_tmp bsearch tfind twalk twalk_r lfind`)

// startsThreads are what threads begin in.
var startsThreads = set("clone clone3 start_thread start thread_start")

// isPlain says whether a function of the C library works on memory alone, by its plain name.
func isPlain(name string) bool {
	switch {
	case strings.Contains(name, "dup"), strings.Contains(name, "stream"), strings.Contains(name, "align"), strings.HasPrefix(name, "strf"),
		strings.HasPrefix(name, "strto"), strings.HasPrefix(name, "strerror"), strings.HasPrefix(name, "strsignal"), strings.HasPrefix(name, "strcoll"),
		strings.HasPrefix(name, "strxfrm"), strings.HasPrefix(name, "strptime"):
		return false
	}
	return strings.HasPrefix(name, "mem") || strings.HasPrefix(name, "str")
}

// isCLibrary says whether an image, by its base name, is part of a C library or its loader.
func isCLibrary(image string) bool {
	for _, prefix := range []string{
		"libc.so", "libc-2", "libc.musl", "ld-linux", "ld-2", "ld-musl", "ld.so", "ld64.so", "libpthread", "libdl.so", "libdl-2", "librt.so", "librt-2",
		"libresolv", "libnss", "libanl", "libnsl", "libthread_db", "[vdso]",
	} {
		if strings.HasPrefix(image, prefix) {
			return true
		}
	}
	return false
}

// isAllocator says whether an image is an allocator that stands in for the C library's, or watches it.
func isAllocator(image string) bool {
	for _, part := range []string{"malloc", "libasan", "libtsan", "libmsan", "liblsan", "libubsan", "libhoard", "libsnmalloc", "libscudo", "libmesh", "efence"} {
		if strings.Contains(image, part) {
			return true
		}
	}
	return false
}

func isUnwinder(image string) bool {
	return strings.HasPrefix(image, "libgcc_s") || strings.HasPrefix(image, "libunwind") || strings.HasPrefix(image, "libc++abi")
}

// allocates says whether a function is one of an allocator, by its plain name: the C library's, C++'s, or another one that the program
// has linked.
func allocates(name string) bool {
	lower := strings.ToLower(name)
	for _, part := range []string{"malloc", "calloc", "realloc", "memalign", "aligned_alloc", "tcache", "mmap_lock"} {
		if strings.Contains(lower, part) {
			return true
		}
	}
	for _, prefix := range []string{"je_", "tc_", "mi_", "arena_", "extent_", "tcmalloc", "Znw", "Zna", "Zdl", "Zda"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "free", "cfree", "valloc", "pvalloc", "sdallocx", "dallocx":
		return true
	}
	return false
}
