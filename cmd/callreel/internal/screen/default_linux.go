package screen

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// byDefault gives a signal its default effect while f runs. signal.Reset doesn't for SIGTSTP: the runtime's handler stays and does nothing.
func byDefault(sig syscall.Signal, f func()) {
	const setBytes = 8 // of a set of signals
	// The kernel's struct sigaction, of at most 32 bytes; all zeros are SIG_DFL.
	var standard, before [8]uint64
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&standard)), uintptr(unsafe.Pointer(&before)), setBytes, 0, 0); errno == 0 {
		defer unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&before)), 0, setBytes, 0, 0)
	}
	f()
}
