package sched

import "github.com/cilium/ebpf/asm"

// storeCommit writes R1 into the record at R9, after all that was written before: x86-64 keeps the order of stores.
func storeCommit() asm.Instruction { return asm.StoreMem(asm.R9, recCommit, asm.R1, asm.DWord) }
