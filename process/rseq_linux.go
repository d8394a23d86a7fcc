package process

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rseqConfiguration is struct ptrace_rseq_configuration.
type rseqConfiguration struct {
	pointer         uint64
	size, signature uint32
	flags, _        uint32
}

// leaveRestartableSequence does what the kernel does to a thread that is
// interrupted within a restartable sequence (rseq(2)): it goes to the abort
// address. A remote system call would otherwise hide from the kernel that the
// thread was away, and the sequence would go on as if nothing had happened.
func (t *Thread) leaveRestartableSequence() error {
	var config rseqConfiguration
	n, err := ptracePointer(unix.PTRACE_GET_RSEQ_CONFIGURATION, t.TID, unsafe.Sizeof(config), unsafe.Pointer(&config))
	if err != nil || n < 16 || config.pointer == 0 {
		return nil //nolint:nilerr // a kernel without the request, or a thread without rseq
	}
	var word [8]byte
	if _, err := t.s.p.ReadAt(word[:], config.pointer+8); err != nil { // rseq_cs
		return err
	}
	section := binary.LittleEndian.Uint64(word[:])
	if section == 0 {
		return nil
	}
	var body [32]byte // struct rseq_cs
	if _, err := t.s.p.ReadAt(body[:], section); err != nil {
		return err
	}
	start := binary.LittleEndian.Uint64(body[8:])
	length := binary.LittleEndian.Uint64(body[16:])
	abort := binary.LittleEndian.Uint64(body[24:])
	regs, err := t.Regs()
	if err != nil || regs.PC()-start >= length {
		return err
	}
	regs.SetPC(abort)
	regs.LeaveSyscall()
	return t.SetRegs(regs)
}
