package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// host is x86-64.
type host struct{}

func (host) supported() error        { return nil }
func (host) codeSupported() error    { return nil }
func (host) callsSupported() error   { return nil }
func (host) elfMachine() elf.Machine { return elf.EM_X86_64 }
func (host) auditArch() uint32       { return AuditArchX8664 }
func (host) syscallSize() uint64     { return 2 }
func (host) spin() []byte            { return []byte{0xeb, 0xfe} } // jmp to itself
func (host) syscallCode() []byte     { return syscallRet }
func (host) redZone() uint64         { return 128 } // System V AMD64 ABI §3.2.2

func (host) getVector(tid int) ([]byte, error) { return registerNote(tid, noteXState) }
func (host) setVector(tid int, v []byte) error { return setRegisterNote(tid, noteXState, v) }
func (host) leaveDetour(r *Regs, entry uint64) { r.SetPC(entry) }

const noteXState = 0x202 // NT_X86_XSTATE, include/uapi/linux/elf.h

// userCS is the code segment of 64-bit programs (__USER_CS).
const userCS = 0x33

func (host) runs(r *Regs) error {
	if r.Cs != userCS {
		return errors.New("it runs 32-bit code")
	}
	return nil
}

// atSyscallEntry goes by what the kernel has as the result until there is one (arch/x86/entry).
func (host) atSyscallEntry(r *Regs) bool { return r.Rax == negative(int64(unix.ENOSYS)) }

func (host) endsWithEINTR() []uint64 { return []uint64{unix.SYS_EPOLL_WAIT} }
func (host) goesOnByBlock() []uint64 { return []uint64{unix.SYS_POLL} }

// syscallBefore knows "mov $number, %eax; syscall".
func (host) syscallBefore(code []byte) (number uint64, ok bool) {
	const size = 7
	if len(code) < size {
		return 0, false
	}
	code = code[len(code)-size:]
	if code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05 {
		return 0, false
	}
	return uint64(binary.LittleEndian.Uint32(code[1:])), true
}

// detour returns its code, and the offset of what follows the call. By the ABI
// (System V AMD64 §3.4.1) programs rely on rsp, rbp and rdx only.
func (host) detour(c detourCall, entry uint64) (code []byte, after int) {
	le := binary.LittleEndian
	code = append(code, 0xf3, 0x0f, 0x1e, 0xfa)          // endbr64
	code = le.AppendUint32(append(code, 0xb8), c.number) // mov $number, %eax
	code = le.AppendUint32(append(code, 0xbf), c.arg0)   // mov $arg0, %edi
	code = le.AppendUint32(append(code, 0xbe), c.arg1)   // mov $arg1, %esi
	code = append(code, 0x0f, 0x05)                      // syscall
	after = len(code)
	code = append(code, 0xff, 0x25, 0, 0, 0, 0) // jmp *0(%rip)
	return le.AppendUint64(code, entry), after
}

func (host) startupCalls() []uint64 {
	return []uint64{
		unix.SYS_ARCH_PRCTL, unix.SYS_BRK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE,
		unix.SYS_UNAME, unix.SYS_READLINK, unix.SYS_READLINKAT, unix.SYS_ACCESS, unix.SYS_GETRANDOM, unix.SYS_PRLIMIT64, unix.SYS_PRCTL,
		unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MAP_SHADOW_STACK,
	}
}

// setsThreadPointer looks for the number of arch_prctl(2) and for wrfsbase (Intel SDM volume 2).
func (host) setsThreadPointer(code []byte) bool {
	if bytes.Contains(code, binary.LittleEndian.AppendUint32(nil, unix.SYS_ARCH_PRCTL)) {
		return true
	}
	for {
		at := bytes.Index(code, []byte{0x0F, 0xAE})
		if at < 0 || at+2 >= len(code) {
			return false
		}
		if code[at+2]&^7 == 0xD0 { // wrfsbase: F3 0F AE /2 with a register
			return true
		}
		code = code[at+2:]
	}
}

// storeOfResult knows stores of eax to a register with a displacement, and to %fs:disp32.
func (host) storeOfResult(code []byte, r *Regs) (addr uint64, size int, ok bool) {
	var all [maxStore]byte
	n := copy(all[:], code)
	if [4]byte(all[:4]) == [4]byte{0x64, 0x89, 0x04, 0x25} {
		return r.Fs_base + signed32(all[4:]), 8, n >= 8
	}
	bases := [...]uint64{r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rsp, r.Rbp, r.Rsi, r.Rdi, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15}
	at, high := 0, 0
	if all[0] == 0x41 { // REX.B
		at, high = 1, 8
	}
	form, base := all[at+1]&^7, int(all[at+1]&7)
	const sib = 4
	switch {
	case all[at] != 0x89 || base == sib:
		return 0, 0, false
	case form == 0x40: // disp8(base)
		return bases[base|high] + uint64(int8(all[at+2])), at + 3, n >= at+3
	case form == 0x80: // disp32(base)
		return bases[base|high] + signed32(all[at+2:]), at + 6, n >= at+6
	}
	return 0, 0, false
}

func signed32(b []byte) uint64 { return uint64(int32(binary.LittleEndian.Uint32(b))) }

// breakpoint goes by arch/x86/include/uapi/asm/perf_regs.h; the length must be that of a long.
func (host) breakpoint() (sp int, size uint64) { return 7, 8 }

func (host) blockBelow() bool { return false }

// tidOffsets are those of glibc's struct pthread, musl's with one canary, and musl's older with two.
func (host) tidOffsets() []int32 { return []int32{0x2d0, 0x30, 0x38} }

// cookie returns the number that marks a thread in a chain. One of the
// registers may be the base of a store.
func (host) cookie(r *Regs) (cookie uint64, ok bool) {
	marked := [...]uint64{r.R12, r.R13, r.R14, r.R15}
	for _, v := range marked[:2] {
		count := 0
		for _, w := range marked {
			if w == v {
				count++
			}
		}
		if count >= len(marked)-1 && v>>32 == chainMark {
			return v, true
		}
	}
	return 0, false
}
