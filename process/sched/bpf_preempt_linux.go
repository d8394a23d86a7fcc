package sched

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// preemptCount is a way to where the kernel counts what keeps this processor from being preempted: interrupts are among that.
type preemptCount struct {
	// A variable of each processor (x86-64), which the kernel finds by its name: that needs CONFIG_KALLSYMS_ALL.
	variable btf.TypeID
	offset   int16 // in it; or in the task, where the task has it (others)

	// Without names of variables: it lies beside this processor's queue, to which the task that runs leads.
	beside          int32 // bytes from the queue to the variable; 0 for the other ways
	taskQueue       int16 // in a task: its cfs_rq
	queue, queueCPU int16 // in a cfs_rq: the rq; in an rq: its processor
}

// interrupted are the bits of NMIs, interrupts and softirqs that are served (include/linux/preempt.h). Softirqs that are only
// kept away count in 0x200 and more.
const interrupted = 0x00ff0100

// preemptCounts finds the ways, best first.
func preemptCounts(spec *btf.Spec, task *btf.Struct) []preemptCount {
	var out []preemptCount
	var v *btf.Var
	if err := spec.TypeByName("__preempt_count", &v); err == nil {
		if id, err := spec.TypeID(v); err == nil {
			out = append(out, preemptCount{variable: id})
		}
		if c, ok := besideQueue(spec, task); ok {
			out = append(out, c)
		}
	}
	if err := spec.TypeByName("pcpu_hot", &v); err == nil { // Linux 6.2 to 6.14
		hot, _ := btf.UnderlyingType(v.Type).(*btf.Struct)
		if id, err := spec.TypeID(v); err == nil && hot != nil {
			if off, ok := offsetOf(hot.Members, "preempt_count"); ok {
				out = append(out, preemptCount{variable: id, offset: int16(off)})
			}
		}
	}
	if info, ok := offsetOf(task.Members, "thread_info"); ok {
		if s, err := structOf(spec, "thread_info"); err == nil {
			if at, ok := offsetOf(s.Members, "preempt_count"); ok {
				out = append(out, preemptCount{offset: int16(info + at)})
			}
		}
	}
	return out
}

func besideQueue(spec *btf.Spec, task *btf.Struct) (preemptCount, bool) {
	var c preemptCount
	var section *btf.Datasec
	if err := spec.TypeByName(".data..percpu", &section); err != nil {
		return c, false
	}
	var queue, count int64 = -1, -1
	for _, v := range section.Vars {
		if variable, ok := v.Type.(*btf.Var); ok {
			switch variable.Name {
			case "runqueues":
				queue = int64(v.Offset)
			case "__preempt_count":
				count = int64(v.Offset)
			}
		}
	}
	inTask, inFair, ok := wayToQueue(spec, task)
	rq, err := structOf(spec, "rq")
	if queue < 0 || count < 0 || queue == count || !ok || err != nil {
		return c, false
	}
	cpu, ok := offsetOf(rq.Members, "cpu")
	c = preemptCount{beside: int32(count - queue), taskQueue: inTask, queue: inFair, queueCPU: int16(cpu)}
	return c, ok
}

// read puts the count into R1, for the task at R8, which runs; R0 to R6 are used. It jumps to no where it isn't found.
func (c preemptCount) read(no string) asm.Instructions {
	const at = -40 // on the stack
	switch {
	case c.beside != 0:
		return asm.Instructions{
			asm.LoadMem(asm.R6, asm.R8, c.taskQueue, asm.DWord),
			asm.LoadMem(asm.R6, asm.R6, c.queue, asm.DWord),
			asm.FnGetSmpProcessorId.Call(),
			asm.LoadMem(asm.R1, asm.R6, c.queueCPU, asm.Word),
			asm.JNE.Reg(asm.R1, asm.R0, no),
			asm.Mov.Reg(asm.R3, asm.R6),
			asm.Add.Imm(asm.R3, c.beside),
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.RFP, at, asm.R1, asm.DWord),
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, at),
			asm.Mov.Imm(asm.R2, 4),
			asm.FnProbeReadKernel.Call(),
			asm.JNE.Imm(asm.R0, 0, no),
			asm.LoadMem(asm.R1, asm.RFP, at, asm.Word),
		}
	case c.variable != 0:
		const pseudoBTFID = asm.R3 // BPF_PSEUDO_BTF_ID
		return asm.Instructions{
			{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R1, Src: pseudoBTFID, Constant: int64(c.variable)},
			asm.FnThisCpuPtr.Call(),
			asm.LoadMem(asm.R1, asm.R0, c.offset, asm.Word),
		}
	}
	return asm.Instructions{asm.LoadMem(asm.R1, asm.R8, c.offset, asm.Word)}
}
