package amd64

// System calls that the slow path makes (arch/x86/entry/syscalls/syscall_64.tbl).
const (
	sysRtSigprocmask = 14
	sysNanosleep     = 35
	sysPrctl         = 157
	prGetName        = 16
	sigBlock         = 0
	sigSetmask       = 2
	modeDropping     = 1
)

// SlowSyscalls are the numbers of the system calls that code in the arena makes, for a check against seccomp filters.
func SlowSyscalls() []uint64 { return []uint64{sysRtSigprocmask, sysNanosleep, sysPrctl} }

// SyscallOption are the arguments that all of the arena's calls of a number have, besides those of NameSyscalls.
func SyscallOption(number uint64) []uint64 {
	if number == sysPrctl {
		return []uint64{prGetName}
	}
	return nil
}

// Numbers of further system calls (arch/x86/entry/syscalls/syscall_64.tbl).
const (
	sysGetpid = 39
	sysGettid = 186
	sysFutex  = 202
	futexWake = 1
)

// FollowSyscalls are the numbers of the system calls that code in the arena makes where children are followed, besides
// SlowSyscalls.
func FollowSyscalls() []uint64 { return []uint64{sysGetpid, sysGettid, sysFutex} }

// ThreadIDSyscalls are the numbers of the system calls that code in the arena makes where NoTLS is set, besides SlowSyscalls.
func ThreadIDSyscalls() []uint64 { return []uint64{sysGettid} }

// PredicateSyscalls are the numbers of the system calls that predicates make, as SlowSyscalls.
func PredicateSyscalls() []uint64 { return []uint64{sysFutex} }

// LoaderSyscalls are the numbers of the system calls that code in the arena makes at a loader's function, besides SlowSyscalls.
func LoaderSyscalls() []uint64 { return []uint64{sysFutex} }

const sysProcessVMReadv = 310

// ReadSyscalls are the numbers of those that reading arguments in memory makes, besides SlowSyscalls.
func ReadSyscalls() []uint64 { return []uint64{sysProcessVMReadv} }

const prSetName = 15 // linux/prctl.h

// NameSyscalls are the system calls that code in the arena makes where a thread names itself, besides SlowSyscalls: their numbers, each with
// the arguments that filters may look at.
func NameSyscalls() [][]uint64 {
	return [][]uint64{{sysGettid}, {sysPrctl, prSetName}, {sysPrctl, prGetName}}
}

// The calls that matter (linux/prctl.h, linux/seccomp.h, arch/x86/entry/syscalls/syscall_64.tbl).
const (
	sysSeccomp    = 317
	prSetSeccomp  = 22
	modeStrict    = 1 // of prctl's modes
	modeFilter    = 2
	seccompStrict = 0 // of seccomp's operations
	seccompFilter = 1
)
