package process

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// maxStartupCalls bounds how many system calls a static program makes before
// it asks for its thread ID. glibc's and musl's make fewer than ten.
const maxStartupCalls = 200

// runToThreadID runs a static program until set_tid_address(2) has returned and
// the C library has stored the ID.
func (t *Thread) runToThreadID() error {
	stops, ready := 0, false
	err := t.run(unix.PTRACE_SYSCALL, func(r report, regs *Regs) bool {
		if r.signal != sysStop {
			return false
		}
		stops++
		switch regs.Orig_rax {
		case unix.SYS_SET_TID_ADDRESS:
			ready = int64(regs.Rax) > 0 // -ENOSYS at the entry, the ID at the exit
		case unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_EXECVE, unix.SYS_EXIT_GROUP:
			return true
		}
		return ready || stops > 2*maxStartupCalls
	})
	if err != nil {
		return err
	}
	if !ready {
		return fmt.Errorf("process %d: %w", t.TID, ErrNotReady)
	}
	if err := t.settleFromTrap(); err != nil {
		return err
	}
	return t.storeThreadID()
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
