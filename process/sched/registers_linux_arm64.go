package sched

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// registers is where struct pt_regs has what tells of a system call.
type registers struct {
	known     bool
	number    int16
	arguments [3]int16
}

func readRegisters(members []btf.Member) registers {
	const word = 8
	number, ok1 := offsetOf(members, "syscallno")
	first, ok2 := offsetOf(members, "orig_x0") // x0 becomes the result
	rest, ok3 := offsetOf(members, "regs")
	return registers{
		known: ok1 && ok2 && ok3 && max(number, first, rest) < 1<<12, number: int16(number),
		arguments: [3]int16{int16(first), int16(rest + word), int16(rest + 2*word)},
	}
}

// maxSyscall is above all numbers of system calls.
const maxSyscall = 1024

// inSyscall jumps to no unless the registers at R0 are those of a thread that has come into the kernel by a system call. What comes in
// otherwise has the number -1 (arch/arm64/kernel/entry.S, kernel_entry). R1 is the number.
func (r registers) inSyscall(no string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R0, r.number, asm.Word),
		asm.JGE.Imm(asm.R1, maxSyscall, no),
	}
}
