package arm64

import "github.com/callreel/callreel/recorder/internal/stub"

// Numbers of the system calls that stubs make, and what they are called with (include/uapi/asm-generic/unistd.h, linux/prctl.h).
const (
	sysFutex          = 98
	sysNanosleep      = 101
	sysRtSigprocmask  = 135
	sysPrctl          = 167
	sysGetpid         = 172
	sysGettid         = 178
	sysProcessVMReadv = 270
	prSetName         = 15
	prGetName         = 16
	sigBlock          = 0
	sigSetmask        = 2
	futexWake         = 1
	modeDropping      = 1
)

// Syscalls are the system calls that stubs make for a purpose, for a check against seccomp filters.
func (Generator) Syscalls(p stub.Purpose) []stub.Syscall {
	switch p {
	case stub.ForRings:
		return []stub.Syscall{{Number: sysRtSigprocmask}, {Number: sysNanosleep}, {Number: sysPrctl, Args: []uint64{prGetName}}}
	case stub.ForChildren:
		return []stub.Syscall{{Number: sysGetpid}, {Number: sysGettid}, {Number: sysFutex}}
	case stub.ForThreadIDs:
		return []stub.Syscall{{Number: sysGettid}}
	case stub.ForReading:
		return []stub.Syscall{{Number: sysProcessVMReadv}}
	case stub.ForPredicates, stub.ForLoader:
		return []stub.Syscall{{Number: sysFutex}}
	case stub.ForNames:
		return []stub.Syscall{{Number: sysGettid}, {Number: sysPrctl, Args: []uint64{prSetName}}, {Number: sysPrctl, Args: []uint64{prGetName}}}
	}
	return nil
}

// The calls that matter (linux/prctl.h, linux/seccomp.h, include/uapi/asm-generic/unistd.h).
const (
	sysSeccomp    = 277
	prSetSeccomp  = 22
	modeStrict    = 1 // of prctl's modes
	modeFilter    = 2
	seccompStrict = 0 // of seccomp's operations
	seccompFilter = 1
)
