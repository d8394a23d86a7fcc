package process

// Waiting is what is known of the registers of a thread that waits in the kernel.
type Waiting struct {
	PC, SP    uint64
	InSyscall bool      // else it waits for a page, say, and Args are not known
	Number    uint64    // of the system call
	Args      [6]uint64 // of the system call: rdi, rsi, rdx, r10, r8, r9
}

// Syscall is the name of the system call, "" outside of one.
func (w *Waiting) Syscall() string {
	if !w.InSyscall {
		return ""
	}
	return syscallName(w.Number)
}
