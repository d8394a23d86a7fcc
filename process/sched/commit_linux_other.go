//go:build linux && !amd64

package sched

import "github.com/cilium/ebpf/asm"

// storeCommit writes R1 into the record at R9, after all that was written before: an exchange has that order everywhere.
func storeCommit() asm.Instruction { return atomically(asm.Xchg, asm.R9, asm.R1, recCommit) }
