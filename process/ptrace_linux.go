package process

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests below must come from the OS thread that seized tid.

func ptrace(request, tid int, addr, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func ptracePointer(request, tid int, addr uintptr, data unsafe.Pointer) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, uintptr(data), 0, 0)
	runtime.KeepAlive(data)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// attachOptions never holds PTRACE_O_EXITKILL: the target outlives us.
const attachOptions = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC

func seize(tid, options int) error {
	return ptrace(unix.PTRACE_SEIZE, tid, 0, uintptr(options))
}

func interrupt(tid int) error { return ptrace(unix.PTRACE_INTERRUPT, tid, 0, 0) }

func resume(tid, signal int) error { return ptrace(unix.PTRACE_CONT, tid, 0, uintptr(signal)) }

func detach(tid, signal int) error { return ptrace(unix.PTRACE_DETACH, tid, 0, uintptr(signal)) }

func setOptions(tid, options int) error {
	return ptrace(unix.PTRACE_SETOPTIONS, tid, 0, uintptr(options))
}

func eventMessage(tid int) (uint64, error) {
	var message uint64
	_, err := ptracePointer(unix.PTRACE_GETEVENTMSG, tid, 0, unsafe.Pointer(&message))
	return message, err
}

func getSigMask(tid int) (mask uint64, err error) {
	_, err = ptracePointer(unix.PTRACE_GETSIGMASK, tid, unsafe.Sizeof(mask), unsafe.Pointer(&mask))
	return mask, err
}

func setSigMask(tid int, mask uint64) error {
	_, err := ptracePointer(unix.PTRACE_SETSIGMASK, tid, unsafe.Sizeof(mask), unsafe.Pointer(&mask))
	return err
}

// maxXState bounds the vector state; with AMX it is some 11 KB, with SVE 8 KB.
const maxXState = 64 << 10

// registerNote reads what ptrace gives for an ELF note (include/uapi/linux/elf.h).
func registerNote(tid int, note uintptr) ([]byte, error) {
	buf := make([]byte, maxXState)
	iov := unix.Iovec{Base: &buf[0]}
	iov.SetLen(len(buf))
	if _, err := ptracePointer(unix.PTRACE_GETREGSET, tid, note, unsafe.Pointer(&iov)); err != nil {
		return nil, err
	}
	return buf[:iov.Len:iov.Len], nil
}

func setRegisterNote(tid int, note uintptr, state []byte) error {
	if len(state) == 0 {
		return unix.EINVAL
	}
	iov := unix.Iovec{Base: &state[0]}
	iov.SetLen(len(state))
	_, err := ptracePointer(unix.PTRACE_SETREGSET, tid, note, unsafe.Pointer(&iov))
	return err
}

// A sigInfo is the start of the kernel's siginfo_t on 64-bit processors.
type sigInfo struct {
	signo, errno, code, _ int32
	pid, uid              int32 // for SIGCHLD and signals sent by kill
	status                int32 // for SIGCHLD
	_                     [100]byte
}

func getSigInfo(tid int) (info sigInfo, err error) {
	_, err = ptracePointer(unix.PTRACE_GETSIGINFO, tid, 0, unsafe.Pointer(&info))
	return info, err
}

// A report is what a thread last told its tracer.
type report struct {
	exited bool
	signal int // the stop's signal; SIGTRAP for most events
	event  int // PTRACE_EVENT_…, 0 in a signal-delivery-stop
}

const (
	childTrapped = 4 // CLD_TRAPPED
	childStopped = 5 // CLD_STOPPED
)

// peek looks for a report without consuming it: see the package's comment on
// WNOWAIT. ok is false while the thread still runs; ECHILD when it is gone.
func peek(tid int) (r report, ok bool, err error) {
	var info sigInfo
	for {
		err = unix.Waitid(unix.P_PID, tid, (*unix.Siginfo)(unsafe.Pointer(&info)),
			unix.WSTOPPED|unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil || info.pid == 0 {
		return report{}, false, err
	}
	if info.code != childTrapped && info.code != childStopped {
		return report{exited: true}, true, nil
	}
	return report{signal: int(info.status & 0xff), event: int(info.status >> 8)}, true, nil
}

// takeExec consumes the report of an exec. As long as nobody has, the kernel takes no order for a thread
// that got the leader's ID by it. There is no signal to lose.
func takeExec(tid int) {
	for {
		if err := unix.Waitid(unix.P_PID, tid, nil, unix.WSTOPPED|unix.WNOHANG|unix.WALL, nil); err != unix.EINTR {
			return
		}
	}
}

// reap takes an ended thread off the kernel's hands.
func reap(tid int) {
	for {
		if _, err := unix.Wait4(tid, nil, unix.WALL|unix.WNOHANG, nil); err != unix.EINTR {
			return
		}
	}
}
