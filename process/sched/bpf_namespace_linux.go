package sched

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// firstNamespace is the first PID namespace (include/linux/proc_ns.h: PROC_PID_INIT_INO).
const firstNamespace = "pid:[4026531836]"

var errNamespace = errors.New("our PID namespace isn't found in the kernel")

// ownNamespace finds our PID namespace: how many are above it, and its address in the kernel. Numbers of processes and threads
// are those that we see only in the first one.
func (p *programs) ownNamespace() (level int16, address uint64, err error) {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return 0, 0, fmt.Errorf("our PID namespace: %w", err)
	}
	if own == firstNamespace {
		return 0, 0, nil
	}
	const words = 3 // level, address, our number there
	found, err := ebpf.NewMap(&ebpf.MapSpec{Name: "callreel_ns", Type: ebpf.Array, KeySize: 4, ValueSize: 8 * words, MaxEntries: 1})
	if err != nil {
		return 0, 0, fmt.Errorf("map: %w", err)
	}
	defer found.Close()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "callreel_ns", Type: ebpf.RawTracepoint, License: "GPL", Instructions: p.findNamespace(found.FD())})
	if err != nil {
		return 0, 0, fmt.Errorf("our PID namespace: %w", err)
	}
	defer prog.Close()
	// The program runs in our own system call (Linux 5.10).
	if _, err := prog.Run(&ebpf.RunOptions{}); err != nil {
		return 0, 0, fmt.Errorf("our PID namespace: %w", err)
	}
	var got [words]uint64
	if err := found.Lookup(uint32(0), &got); err != nil {
		return 0, 0, fmt.Errorf("our PID namespace: %w", err)
	}
	const deepest = 32 // MAX_PID_NS_LEVEL
	if got[0] == 0 || got[0] > deepest || got[1] == 0 || got[2] != uint64(os.Getpid()) {
		return 0, 0, errNamespace
	}
	return int16(got[0]), got[1], nil
}

// findNamespace reads where the task that runs has its process's pid.
func (p *programs) findNamespace(found int) asm.Instructions {
	const at = -8
	read := func(offset int32, size int32) asm.Instructions { // from R6 into the stack
		return asm.Instructions{
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.RFP, at, asm.R1, asm.DWord),
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, at),
			asm.Mov.Imm(asm.R2, size),
			asm.Mov.Reg(asm.R3, asm.R6),
			asm.Add.Imm(asm.R3, offset),
			asm.FnProbeReadKernel.Call(),
		}
	}
	take := func(r asm.Register) asm.Instructions {
		return asm.Instructions{asm.LoadMem(r, asm.RFP, at, asm.DWord)}
	}
	return join(
		asm.Instructions{
			asm.FnGetCurrentTask.Call(),
			asm.Mov.Reg(asm.R6, asm.R0),
			asm.LoadMapValue(asm.R7, found, 0),
		},
		read(int32(p.signal), 8), take(asm.R6),
		read(int32(p.signalTGID), 8), take(asm.R6),
		read(int32(p.pidLevel), 4), take(asm.R8),
		asm.Instructions{
			asm.StoreMem(asm.R7, 0, asm.R8, asm.DWord),
			asm.Mul.Imm(asm.R8, int32(p.upidSize)),
			asm.Add.Reg(asm.R6, asm.R8),
		},
		read(int32(p.pidNumbers+p.upidNamespace), 8), take(asm.R8),
		asm.Instructions{asm.StoreMem(asm.R7, 8, asm.R8, asm.DWord)},
		read(int32(p.pidNumbers+p.upidNumber), 4), take(asm.R8),
		asm.Instructions{
			asm.StoreMem(asm.R7, 16, asm.R8, asm.DWord),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		},
	)
}
