//go:build linux && !amd64 && !arm64

package sched

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// registers is where struct pt_regs has what tells of a system call: not known for this processor.
type registers struct {
	known     bool
	arguments [3]int16
}

func readRegisters([]btf.Member) registers { return registers{} }

func (r registers) inSyscall(no string) asm.Instructions { return asm.Instructions{asm.Ja.Label(no)} }
