package process

import (
	"debug/elf"

	"golang.org/x/sys/unix"
)

// host is AArch64. Live processes aren't supported there yet: what is missing is how a remote system call is made. See docs/porting.md.
type host struct{}

func (host) supported() error        { return ErrUnsupported }
func (host) elfMachine() elf.Machine { return elf.EM_AARCH64 }
func (host) auditArch() uint32       { return AuditArchAArch64 }
func (host) vectorNote() uintptr     { return 2 } // NT_PRFPREG, include/uapi/linux/elf.h
func (host) runs(*Regs) error        { return nil }
func (host) syscallSize() uint64     { return 4 }
func (host) spin() []byte            { return []byte{0, 0, 0, 0x14} }    // b .
func (host) syscallCode() []byte     { return []byte{1, 0, 0, 0xd4} }    // svc #0
func (host) redZone() uint64         { return 0 }                        // AAPCS64 §6.4.5: none on Linux
func (host) endsWithEINTR() []uint64 { return nil }                      // it has none of the old calls
func (host) goesOnByBlock() []uint64 { return []uint64{unix.SYS_PPOLL} } // poll(2) is one
func (host) tidOffsets() []int32     { return nil }

// atSyscallEntry goes by x7, which the kernel changes for that (arch/arm64/kernel/ptrace.c, report_syscall).
func (host) atSyscallEntry(r *Regs) bool { return r.Regs[7] == 0 }

func (host) startupCalls() []uint64 {
	return []uint64{
		unix.SYS_BRK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_UNAME,
		unix.SYS_READLINKAT, unix.SYS_GETRANDOM, unix.SYS_PRLIMIT64, unix.SYS_PRCTL, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	}
}

func (host) sleepCalls() []sleepCall {
	return []sleepCall{
		{number: unix.SYS_PSELECT6, timeArg: 4},
		{number: unix.SYS_PPOLL, timeArg: 2, args: [6]uint64{4: 8}},
		{number: unix.SYS_CLOCK_NANOSLEEP, timeArg: 2, args: [6]uint64{0: 1}},
		{number: unix.SYS_NANOSLEEP, timeArg: 0},
	}
}

// What follows is a port's to write; nothing gets here while supported says no.

func (host) syscallBefore([]byte) (uint64, bool)                { return 0, false }
func (host) setsThreadPointer([]byte) bool                      { return true }
func (host) storeOfResult([]byte, *Regs) (uint64, int, bool)    { return 0, 0, false }
func (host) detour(detourCall, uint64) (code []byte, after int) { return nil, 0 }
func (h host) chain(chainPlan) (*chain, error)                  { return nil, h.supported() }
func (host) cookie(*Regs) (uint64, bool)                        { return 0, false }
func (host) returnCode() (code []byte, home, end uint64)        { return nil, 0, 0 }
func (host) forgetsTimeout(uint64) bool                         { return false }
func (host) isHome(*Regs, *invocationFrame) bool                { return false }
func (host) returned(*Regs, []byte) Returned                    { return Returned{} }
func (h host) invocation(invocationPlan) (*invocationFrame, error) {
	return nil, h.supported()
}
func (p *Process) findGadgets() (*gadgets, error) { return nil, arch.supported() }
func (p *Process) laidGadgets() (*gadgets, error) { return nil, arch.supported() }

// PrepareSyscalls returns ErrUnsupported.
func (p *Process) PrepareSyscalls() error { return arch.supported() }

// gadgets are the addresses of the instructions that remote system calls use.
type gadgets struct {
	syscall uint64
	laid    *laid
}

func (g *gadgets) sigreturnIP() uint64 { return g.syscall }

// laid is where instructions of ours are.
type laid struct{}

func (*laid) lay(*Process) error  { return nil }
func (*laid) take(*Process) error { return nil }
