package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's struct sigaction on x86-64.
type sigaction struct {
	handler, flags, restorer, mask uint64
}

const noChildStop = 1 // SA_NOCLDSTOP

// quietStops keeps the kernel from sending this process SIGCHLD for each stop of a thread that
// it traces. Nobody here waits for the signal, but Go's runtime has a handler for it, which the
// tracing OS thread would run while the thread is stopped: a third of a short stop. The ends
// of children are still told. undo makes it as it was; when several threads trace, the last
// one may leave it on.
func quietStops() (undo func()) {
	var before sigaction
	if changeSIGCHLD(nil, &before) != nil || before.flags&noChildStop != 0 {
		return func() {}
	}
	quiet := before
	quiet.flags |= noChildStop
	if changeSIGCHLD(&quiet, nil) != nil {
		return func() {}
	}
	return func() { _ = changeSIGCHLD(&before, nil) } // as it was a moment ago
}

func changeSIGCHLD(to, before *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD),
		uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(before)), unsafe.Sizeof(before.mask), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
