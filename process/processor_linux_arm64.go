package process

import (
	"debug/elf"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// host is AArch64.
type host struct{}

func (host) supported() error        { return nil }
func (host) codeSupported() error    { return nil }
func (host) callsSupported() error   { return nil }
func (host) elfMachine() elf.Machine { return elf.EM_AARCH64 }
func (host) auditArch() uint32       { return AuditArchAArch64 }
func (host) syscallSize() uint64     { return 4 }
func (host) spin() []byte            { return words(0x1400_0000) }      // b .
func (host) syscallCode() []byte     { return words(insnSVC, insnRET) } //
func (host) endsWithEINTR() []uint64 { return nil }                     // it has none of the old calls
func (host) goesOnByBlock() []uint64 { return nil }

// redZone is that of Go's compiler, whose functions keep a frame pointer below the stack pointer (cmd/compile/abi-internal.md), in units of its
// alignment. By AAPCS64 §6.4.5 there is none on Linux.
func (host) redZone() uint64 { return 16 }

// mode32 is the bit of the processor's state that 32-bit code has (PSR_MODE32_BIT).
const mode32 = 1 << 4

func (host) runs(r *Regs) error {
	if r.Pstate&mode32 != 0 {
		return errors.New("it runs 32-bit code")
	}
	return nil
}

// breakpoint goes by arch/arm64/include/uapi/asm/perf_regs.h; the length is an instruction's.
func (host) breakpoint() (sp int, size uint64) { return 31, 4 }

func (host) blockBelow() bool { return true }

// tidOffsets are those of glibc 2.36's struct pthread, and musl 1.2.3's. They matter where a small number is at several places.
func (host) tidOffsets() []int32 { return []int32{-0x670, -0xa8} }

// atSyscallEntry goes by x7, which the kernel changes for that (arch/arm64/kernel/ptrace.c, report_syscall).
func (host) atSyscallEntry(r *Regs) bool { return r.Regs[7] == 0 }

func (host) startupCalls() []uint64 {
	return []uint64{
		unix.SYS_BRK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_UNAME,
		unix.SYS_READLINKAT, unix.SYS_GETRANDOM, unix.SYS_PRLIMIT64, unix.SYS_PRCTL, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	}
}

// setsThreadPointer looks for MSR to TPIDR_EL0.
func (host) setsThreadPointer(code []byte) bool {
	const setTPIDR = 0xd51b_d040 // msr tpidr_el0, x0
	return findWords(code, func(w, _ uint32) bool { return w&^31 == setTPIDR }) >= 0
}

// detour keeps x0, which the loader gives the entry point: what is to be called at the program's end (ELF for the Arm 64-bit Architecture,
// Linux: "process initialization"). It's entered by BR, and enters a program that may be guarded by BR with x16.
func (host) detour(c detourCall, entry uint64) (code []byte, after int) {
	move := func(reg int, v uint32) []byte {
		return words(0x5280_0000|v&0xffff<<5|uint32(reg), 0x72a0_0000|v>>16<<5|uint32(reg)) // movz, movk w
	}
	code = words(0xd503_24df, 0xaa00_03e9) // bti jc; mov x9, x0
	code = append(code, move(8, c.number)...)
	code = append(code, move(0, c.arg0)...)
	code = append(code, move(1, c.arg1)...)
	code = append(code, words(insnSVC)...)
	after = len(code)
	code = append(code, words(0xaa09_03e0, 0x5800_0050, 0xd61f_0200)...) // mov x0, x9; ldr x16, entry; br x16
	return binary.LittleEndian.AppendUint64(code, entry), after
}

func (host) leaveDetour(r *Regs, entry uint64) {
	r.Regs[0] = r.Regs[9]
	r.SetPC(entry)
}
