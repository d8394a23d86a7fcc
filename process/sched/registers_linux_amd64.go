package sched

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// registers is where struct pt_regs has what tells of a system call.
type registers struct {
	known      bool
	number     int16 // orig_ax
	ax, cx, ip int16
	arguments  [3]int16
}

func readRegisters(members []btf.Member) registers {
	r := registers{known: true}
	for name, to := range map[string]*int16{
		"orig_ax": &r.number, "ax": &r.ax, "cx": &r.cx, "ip": &r.ip,
		"di": &r.arguments[0], "si": &r.arguments[1], "dx": &r.arguments[2],
	} {
		off, ok := offsetOf(members, name)
		r.known = r.known && ok
		*to = int16(off)
	}
	return r
}

// maxSyscall is above all numbers of system calls; those of x32 are not wanted.
const maxSyscall = 1024

// inSyscall jumps to no unless the registers at R0 are those of a thread that has come into the kernel by the syscall
// instruction. Number and error code of an exception share a place: a page fault's 4 would be stat. But the entry of system
// calls leaves -ENOSYS in ax, and the processor the address to return to in cx (arch/x86/entry/entry_64.S). R1 and R2 are
// used; R1 is the number.
func (r registers) inSyscall(no string) asm.Instructions {
	const notImplemented = -38
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R0, r.ax, asm.DWord),
		asm.JNE.Imm(asm.R1, notImplemented, no),
		asm.LoadMem(asm.R1, asm.R0, r.cx, asm.DWord),
		asm.LoadMem(asm.R2, asm.R0, r.ip, asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, no),
		asm.LoadMem(asm.R1, asm.R0, r.number, asm.DWord),
		asm.JGE.Imm(asm.R1, maxSyscall, no),
	}
}
