package sampler

import (
	"encoding/binary"
	"strings"

	"github.com/callreel/callreel/process"
)

// A StallState is what keeps a thread from going on.
type StallState string

// The states of a thread that stands.
const (
	StallRunning StallState = "running" // it computes, or makes system calls that don't wait
	StallStarved StallState = "starved" // it could run, but others have the processors
	StallDisk    StallState = "disk"    // uninterruptibly in the kernel, or in a call for a file
	StallLock    StallState = "lock"    // for another thread: a mutex, a condition variable, a file lock
	StallNetwork StallState = "network" // for a socket
	StallPipe    StallState = "pipe"    // for a pipe, a terminal or the like
	StallSleep   StallState = "sleep"   // for time to pass
	StallChild   StallState = "child"   // for another process
	StallEvents  StallState = "events"  // for one of several things, elsewhere than usual
	StallStopped StallState = "stopped" // by a signal, or by a debugger
	StallBlocked StallState = "blocked" // in another system call
)

// rest is how readily a place where a thread waits is taken for its usual wait.
type rest int

const (
	neverRest rest = iota // a wait for a lock or for an answer
	maybeRest             // as a worker waits for work, but also anybody for an answer
	eventRest             // made for event loops
	idleRest              // a language's run-time library has nothing for the thread to do
)

// blockage says what a thread that waits is waiting for.
type blockage struct {
	state StallState
	rest  rest
}

// files answers what a file descriptor leads to, and reads memory, of the process.
type files interface {
	FileOf(fd int) (string, error)
	ReadUpTo(buf []byte, addr uint64) int
}

// blockageOf judges by the system call, its arguments and, for futexes, which know
// nothing of what they are for, by the functions that wait.
func blockageOf(a *process.Activity, f files, functions []Frame) blockage {
	if a.State == 'T' || a.State == 't' {
		return blockage{StallStopped, neverRest}
	}
	w := a.Waiting
	call := ""
	if w != nil {
		call = w.Syscall()
	}
	switch call {
	case "clone", "clone3", "fork", "vfork": // only vfork waits
		return blockage{StallChild, neverRest}
	}
	if a.State == 'D' {
		return blockage{StallDisk, neverRest}
	}
	if parked(functions) {
		return blockage{StallEvents, idleRest}
	}
	if call == restartSyscall {
		call = restarted(functions)
	}
	switch call {
	case "epoll_wait", "epoll_pwait", "epoll_pwait2", "select", "pselect6", "pause", "rt_sigsuspend", "rt_sigtimedwait", "io_getevents", "io_pgetevents":
		return blockage{StallEvents, eventRest}
	case "accept", "accept4":
		return blockage{StallNetwork, eventRest}
	case "poll", "ppoll":
		return pollBlockage(w, f)
	case "futex", "futex_waitv":
		return futexBlockage(w, functions)
	case "nanosleep", "clock_nanosleep":
		return blockage{StallSleep, maybeRest}
	case "wait4", "waitid":
		return blockage{StallChild, maybeRest}
	case "read", "readv", "pread64", "preadv", "recvfrom", "recvmsg", "recvmmsg":
		return blockage{fileState(f, w.Args[0]), maybeRest}
	case "msgrcv", "mq_timedreceive", "io_uring_enter", restartSyscall:
		return blockage{StallBlocked, maybeRest}
	case "connect", "sendto", "sendmsg", "sendmmsg":
		return blockage{StallNetwork, neverRest}
	case "write", "writev", "pwrite64", "pwritev", "sendfile", "ioctl":
		return blockage{fileState(f, w.Args[0]), neverRest}
	case "flock", "fcntl", "semop", "semtimedop":
		return blockage{StallLock, neverRest}
	case "fsync", "fdatasync", "sync", "syncfs", "msync", "sync_file_range", "open", "openat", "ftruncate", "fallocate":
		return blockage{StallDisk, neverRest}
	}
	return blockage{StallBlocked, neverRest}
}

// parked says that Go's scheduler has no goroutine for the thread: it may rest in many
// places, and none of them is a stall.
func parked(functions []Frame) bool {
	const near = 8
	for k := 0; k < len(functions) && k < near; k++ {
		switch functions[k].Function {
		case "runtime.findRunnable", "runtime.stopm", "runtime.mPark":
			return true
		}
	}
	return false
}

// restarted names the call that is resumed: the kernel no longer tells, but its arguments
// are still there.
func restarted(functions []Frame) string {
	const near = 4
	for k := 0; k < len(functions) && k < near; k++ {
		switch name := functions[k].Function; {
		case holdsAny(name, "nanosleep"):
			return "nanosleep"
		case holdsAny(name, "poll"):
			return "poll"
		case holdsAny(name, "futex", "pthread_", "sem_"):
			return "futex"
		}
	}
	return restartSyscall
}

// fileState is the state of a thread that waits for a file descriptor.
func fileState(f files, fd uint64) StallState {
	if fd > 1<<31-1 {
		return StallBlocked
	}
	to, err := f.FileOf(int(fd))
	switch {
	case err != nil:
		return StallBlocked
	case strings.HasPrefix(to, "socket:"):
		return StallNetwork
	case strings.HasPrefix(to, "pipe:"), strings.HasPrefix(to, "/dev/"):
		return StallPipe
	case strings.HasPrefix(to, "anon_inode:"):
		return StallEvents
	case strings.HasPrefix(to, "/"):
		return StallDisk
	}
	return StallBlocked
}

// pollBlockage looks at what is polled: one descriptor is waited for as if it were read,
// several as an event loop does. None is a way to sleep.
func pollBlockage(w *process.Waiting, f files) blockage {
	switch w.Args[1] {
	case 0:
		return blockage{StallSleep, maybeRest}
	case 1:
		var pollfd [8]byte // int fd; short events, revents (poll(2))
		if f.ReadUpTo(pollfd[:], w.Args[0]) == len(pollfd) {
			return blockage{fileState(f, uint64(binary.LittleEndian.Uint32(pollfd[:]))), maybeRest}
		}
		return blockage{StallEvents, maybeRest}
	}
	return blockage{StallEvents, eventRest}
}

// Operations of futex(2), and what is over and above them in its argument.
const (
	futexOp      = 0x7f
	futexWait    = 0
	futexLockPI  = 6
	futexLockPI2 = 13
	// glibc's and Rust's locks with waiters have this value.
	futexContended = 2
)

// futexBlockage tells locks, which a thread never rests in, from condition variables and
// their like, in which workers wait for work.
func futexBlockage(w *process.Waiting, functions []Frame) blockage {
	const near = 8 // the C library's and a language's own functions
	for k := 0; k < len(functions) && k < near; k++ {
		name := functions[k].Function
		switch {
		case holdsAny(name, "cond_", "condvar", "condition_variable", "Condvar", "sem_", "thread_join", "timedjoin", "barrier_wait", "park", "futexsleep"):
			return blockage{StallLock, maybeRest}
		case holdsAny(name, "lll_lock", "mutex", "Mutex", "rwlock", "RwLock", "spin_lock", "__lock"):
			return blockage{StallLock, neverRest}
		}
	}
	op := w.Args[1] & futexOp
	if op == futexLockPI || op == futexLockPI2 || op == futexWait && w.Args[2]&0xffffffff == futexContended {
		return blockage{StallLock, neverRest}
	}
	return blockage{StallLock, maybeRest}
}

func holdsAny(name string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
