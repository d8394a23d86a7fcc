package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Regs are a thread's general registers as ptrace gives them (struct user_pt_regs of Linux arm64), and what it gives apart.
type Regs struct {
	unix.PtraceRegs
	Call int32  // the system call that the thread is in, -1 if it is in none (NT_ARM_SYSTEM_CALL)
	TLS  uint64 // TPIDR_EL0 (NT_ARM_TLS)
}

// PC is the address of the next instruction.
func (r *Regs) PC() uint64 { return r.Pc }

// SP is the stack pointer.
func (r *Regs) SP() uint64 { return r.Sp }

// ThreadPointer is the address of what belongs to the thread.
func (r *Regs) ThreadPointer() uint64 { return r.TLS }

// SetPC lets the thread go on elsewhere. See LeaveSyscall.
func (r *Regs) SetPC(pc uint64) { r.Pc = pc }

// Syscall is the number of the system call that the thread is in, if it is in one.
func (r *Regs) Syscall() (number uint64, in bool) { return uint64(r.Call), r.Call >= 0 }

// SetSyscall changes the number of the system call that the thread is in.
func (r *Regs) SetSyscall(number uint64) { r.Call, r.Regs[8] = int32(number), number }

// LeaveSyscall makes the thread one that is in no system call: none is restarted.
func (r *Regs) LeaveSyscall() { r.Call = -1 }

// EnterSyscall puts the thread in front of the system call that it is behind of, which it then makes as if it were the first time. The
// kernel has overwritten its first argument, which is the caller's to set.
func (r *Regs) EnterSyscall(number uint64) {
	r.Regs[8] = number
	r.Pc -= arch.syscallSize()
	r.LeaveSyscall()
}

// SetCall puts the thread in front of an instruction that makes a system call.
func (r *Regs) SetCall(at uint64, c Call) {
	r.LeaveSyscall()
	r.Pc, r.Regs[8] = at, uint64(c.Number)
	copy(r.Regs[:6], c.Args[:])
}

// Result is what a system call has returned.
func (r *Regs) Result() uint64 { return r.Regs[0] }

// SetResult changes what a system call has returned.
func (r *Regs) SetResult(v uint64) { r.Regs[0] = v }

// Arg is the i-th argument of a system call, from 0; 0 behind the last. The first is known only before the call has a result.
func (r *Regs) Arg(i int) uint64 {
	if i < 0 || i >= 6 {
		return 0
	}
	return r.Regs[i]
}

// DWARF are the general registers by their DWARF numbers, from 0 (DWARF for the Arm 64-bit Architecture, §4.1).
func (r *Regs) DWARF() []uint64 { return append(r.Regs[:31:31], r.Sp) }

// Notes of include/uapi/linux/elf.h.
const (
	noteRegisters  = 1     // NT_PRSTATUS
	noteTLS        = 0x401 // NT_ARM_TLS
	noteSystemCall = 0x404 // NT_ARM_SYSTEM_CALL
)

func getRegs(tid int) (r Regs, err error) {
	err = registerSet(unix.PTRACE_GETREGSET, tid, noteRegisters, unsafe.Pointer(&r.PtraceRegs), unsafe.Sizeof(r.PtraceRegs))
	if err == nil {
		err = registerSet(unix.PTRACE_GETREGSET, tid, noteSystemCall, unsafe.Pointer(&r.Call), unsafe.Sizeof(r.Call))
	}
	if err == nil {
		err = registerSet(unix.PTRACE_GETREGSET, tid, noteTLS, unsafe.Pointer(&r.TLS), unsafe.Sizeof(r.TLS))
	}
	return r, err
}

func setRegs(tid int, r Regs) error {
	err := registerSet(unix.PTRACE_SETREGSET, tid, noteSystemCall, unsafe.Pointer(&r.Call), unsafe.Sizeof(r.Call))
	if err == nil {
		err = registerSet(unix.PTRACE_SETREGSET, tid, noteRegisters, unsafe.Pointer(&r.PtraceRegs), unsafe.Sizeof(r.PtraceRegs))
	}
	return err
}

func registerSet(request, tid int, note uintptr, p unsafe.Pointer, size uintptr) error {
	iov := unix.Iovec{Base: (*byte)(p)}
	iov.SetLen(int(size))
	_, err := ptracePointer(request, tid, note, unsafe.Pointer(&iov))
	return err
}
