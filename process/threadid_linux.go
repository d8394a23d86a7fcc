package process

import (
	"debug/elf"
	"encoding/binary"
	"io"
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
		call, _ := regs.Syscall()
		if call == unix.SYS_SET_TID_ADDRESS {
			ready = !arch.atSyscallEntry(regs) && int64(regs.Result()) > 0
			return ready
		}
		return !slices.Contains(arch.startupCalls(), call) || stops > 2*maxStartupCalls
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

// maxBare is how large the code of a program may be that is searched for what sets a thread pointer, in bytes.
const maxBare = 64 << 20

// hasNoThreadPointer says whether a static program surely sets none: its file has neither thread-local data nor, anywhere in its
// code, what sets one.
func (p *Process) hasNoThreadPointer() (bool, error) {
	f, err := p.openProgram()
	if err != nil {
		return false, err
	}
	defer f.Close()
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
		if err != nil || arch.setsThreadPointer(code) {
			return false, err
		}
	}
	return true, nil
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
	n := t.s.p.ReadUpTo(code[:], regs.PC())
	addr, size, ok := arch.storeOfResult(code[:n], regs)
	if !ok || !nearThreadPointer(addr, regs.ThreadPointer()) {
		_, err := t.Nudge(maxStoreNudges, func(*Regs) bool {
			if _, err := t.s.TIDOffset(); err == nil {
				return true
			}
			described, err := t.s.DescribesThreads()
			return described && err == nil
		})
		return err
	}
	if _, err := t.s.p.WriteAt(binary.LittleEndian.AppendUint32(nil, uint32(regs.Result())), addr); err != nil {
		return err
	}
	regs.SetPC(regs.PC() + uint64(size))
	regs.LeaveSyscall()
	return t.SetRegs(regs)
}

// maxStore is how much code is looked at for such a store, in bytes.
const maxStore = 64
