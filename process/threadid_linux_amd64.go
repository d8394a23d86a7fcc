package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// maxStartupCalls bounds how many system calls a static program makes before
// it asks for its thread ID. glibc's and musl's make fewer than ten.
const maxStartupCalls = 200

// runToThreadID runs a static program until set_tid_address(2) has returned and
// the C library has stored the ID. One without a C library stays at its entry point if
// it surely has no thread pointer, else it gets to its first system call of another kind.
func (t *Thread) runToThreadID() error {
	if bare, err := t.s.p.hasNoThreadPointer(); err == nil && bare {
		return t.leaveExec()
	}
	stops, ready := 0, false
	err := t.run(unix.PTRACE_SYSCALL, func(r report, regs *Regs) bool {
		if r.signal != sysStop {
			return false
		}
		stops++
		if regs.Orig_rax == unix.SYS_SET_TID_ADDRESS {
			ready = int64(regs.Rax) > 0 // -ENOSYS at the entry, the ID at the exit
			return ready
		}
		return !slices.Contains(startupCalls, regs.Orig_rax) || stops > 2*maxStartupCalls
	})
	if err != nil {
		return err
	}
	// Without an ID it may be about to make any system call, which is then like one that it is stopped in.
	if err := t.settleFromTrap(); err != nil || !ready {
		return err
	}
	return t.storeThreadID()
}

// startupCalls are the system calls that C libraries make before they ask for their thread ID: a program that makes another one
// doesn't keep it.
var startupCalls = []uint64{
	unix.SYS_ARCH_PRCTL, unix.SYS_BRK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE,
	unix.SYS_UNAME, unix.SYS_READLINK, unix.SYS_READLINKAT, unix.SYS_ACCESS, unix.SYS_GETRANDOM, unix.SYS_PRLIMIT64, unix.SYS_PRCTL,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MAP_SHADOW_STACK,
}

// maxBare is how large the code of a program may be that is searched for what sets a thread pointer, in bytes.
const maxBare = 64 << 20

// hasNoThreadPointer says whether a static program surely sets none: its file has neither thread-local data nor, anywhere in its
// code, the number of arch_prctl(2) or a wrfsbase instruction (Intel SDM volume 2).
func (p *Process) hasNoThreadPointer() (bool, error) {
	file, err := p.openFile("exe", os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer file.Close()
	f, err := elf.NewFile(file)
	if err != nil {
		return false, err
	}
	for _, s := range f.Progs {
		switch {
		case s.Type == elf.PT_TLS || s.Type == elf.PT_INTERP:
			return false, nil
		case s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0:
			continue
		case s.Filesz > maxBare:
			return false, nil
		}
		code, err := io.ReadAll(s.Open())
		if err != nil || setsThreadPointer(code) {
			return false, err
		}
	}
	return true, nil
}

// setsThreadPointer says whether code may set its thread pointer.
func setsThreadPointer(code []byte) bool {
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

// maxStoreNudges is how often a C library that does not store its ID at once is let run for
// some microseconds.
const maxStoreNudges = 10

// storeThreadID carries out the instruction by which C libraries store the ID that
// set_tid_address has just returned: a step of the processor's would end the program if
// we died. A library that stores it elsewhere or not at all is ready as it is.
func (t *Thread) storeThreadID() error {
	regs, err := t.Regs()
	if err != nil {
		return err
	}
	var code [maxStore]byte
	n := t.s.p.ReadUpTo(code[:], regs.Rip)
	addr, size, ok := storeOfEAX(code[:n], regs)
	if !ok || addr-regs.Fs_base >= tidWindow {
		_, err := t.Nudge(maxStoreNudges, func(*Regs) bool {
			_, err := t.s.TIDOffset()
			return err == nil
		})
		return err
	}
	if _, err := t.s.p.WriteAt(binary.LittleEndian.AppendUint32(nil, uint32(regs.Rax)), addr); err != nil {
		return err
	}
	regs.Rip += uint64(size)
	regs.Orig_rax = ^uint64(0)
	return t.SetRegs(regs)
}

// maxStore is the length of the longest instruction that storeOfEAX knows.
const maxStore = 8

// storeOfEAX returns the address to which code stores eax, and the instruction's length. ok is
// false if it is no such store of 4 bytes to a register with a displacement or to %fs:disp32.
func storeOfEAX(code []byte, r *Regs) (addr uint64, size int, ok bool) {
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
