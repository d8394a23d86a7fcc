package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Regs are a thread's general registers as ptrace gives them (struct
// user_regs_struct of Linux x86-64).
type Regs unix.PtraceRegs

// PC is the address of the next instruction.
func (r *Regs) PC() uint64 { return r.Rip }

// SP is the stack pointer.
func (r *Regs) SP() uint64 { return r.Rsp }

// ThreadPointer is the address of what belongs to the thread (System V ABI, thread-local storage).
func (r *Regs) ThreadPointer() uint64 { return r.Fs_base }

// SetPC lets the thread go on elsewhere. See LeaveSyscall.
func (r *Regs) SetPC(pc uint64) { r.Rip = pc }

// Syscall is the number of the system call that the thread is in, if it is in one.
func (r *Regs) Syscall() (number uint64, in bool) { return r.Orig_rax, int64(r.Orig_rax) >= 0 }

// SetSyscall changes the number of the system call that the thread is in.
func (r *Regs) SetSyscall(number uint64) { r.Orig_rax = number }

// LeaveSyscall makes the thread one that is in no system call: none is restarted.
func (r *Regs) LeaveSyscall() { r.Orig_rax = ^uint64(0) }

// EnterSyscall puts the thread in front of the system call that it is behind of, which it then makes as if it were the first time.
func (r *Regs) EnterSyscall(number uint64) {
	r.Rax = number
	r.Rip -= arch.syscallSize()
	r.LeaveSyscall()
}

// SetCall puts the thread in front of an instruction that makes a system call.
func (r *Regs) SetCall(at uint64, c Call) {
	r.LeaveSyscall()
	r.Rip, r.Rax = at, uint64(c.Number)
	r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9 = c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5]
}

// Result is what a system call has returned.
func (r *Regs) Result() uint64 { return r.Rax }

// SetResult changes what a system call has returned.
func (r *Regs) SetResult(v uint64) { r.Rax = v }

// Arg is the i-th argument of a system call, from 0; 0 behind the last.
func (r *Regs) Arg(i int) uint64 {
	args := [...]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9}
	if i < 0 || i >= len(args) {
		return 0
	}
	return args[i]
}

// DWARF are the general registers by their DWARF numbers, from 0 (System V AMD64 ABI, figure 3.36).
func (r *Regs) DWARF() []uint64 {
	return []uint64{
		r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, r.Rsp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15,
	}
}

func getRegs(tid int) (r Regs, err error) {
	_, err = ptracePointer(unix.PTRACE_GETREGS, tid, 0, unsafe.Pointer(&r))
	return r, err
}

func setRegs(tid int, r Regs) error {
	_, err := ptracePointer(unix.PTRACE_SETREGS, tid, 0, unsafe.Pointer(&r))
	return err
}
