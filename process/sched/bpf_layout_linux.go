package sched

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// layout is where this kernel keeps what the programs read: offsets in bytes, from its BTF.
type layout struct {
	// Of a task.
	pid, tgid, flags, state, threadPID, signal int16
	// execStart is where a task has the time up to which the kernel has counted what it ran; 0 where that isn't found.
	execStart int16
	// lastQueued is where a task has since when it has been ready, as the kernel counts it; and the way to the clock that it
	// counts by: in a task its cfs_rq, in that the rq, in that the clock. 0 where any of it isn't found.
	lastQueued, taskQueue, queue, queueClock int16
	// Of a signal_struct: the pid of the process.
	signalTGID int16
	// Of a pid: its level, and its numbers.
	pidLevel, pidNumbers, upidSize int16
	// Of an upid: its number and its namespace.
	upidNumber, upidNamespace int16

	regs registers

	preempt []preemptCount // the ways to it, best first

	// prevState says that sched_switch has the state of who leaves as an argument (Linux 5.18).
	prevState bool
}

var errLayout = errors.New("the kernel's BTF is not as expected")

func readLayout(spec *btf.Spec) (layout, error) {
	var l layout
	task, err1 := structOf(spec, "task_struct")
	signal, err2 := structOf(spec, "signal_struct")
	pid, err3 := structOf(spec, "pid")
	upid, err4 := structOf(spec, "upid")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return l, err
	}
	find := func(s *btf.Struct, names ...string) int16 {
		for _, name := range names {
			if off, ok := offsetOf(s.Members, name); ok && off <= 1<<15-64 {
				return int16(off)
			}
		}
		err1 = errors.Join(err1, fmt.Errorf("%w: %s has no %s", errLayout, s.Name, names[0]))
		return 0
	}
	l.pid, l.tgid, l.flags = find(task, "pid"), find(task, "tgid"), find(task, "flags")
	l.state = find(task, "__state", "state") // renamed in Linux 5.14
	l.threadPID, l.signal = find(task, "thread_pid"), find(task, "signal")
	const tgidOfPIDs = 1 // PIDTYPE_TGID
	l.signalTGID = find(signal, "pids") + 8*tgidOfPIDs
	l.pidLevel, l.pidNumbers, l.upidSize = find(pid, "level"), find(pid, "numbers"), int16(upid.Size)
	l.upidNumber, l.upidNamespace = find(upid, "nr"), find(upid, "ns")
	if err1 != nil {
		return l, err1
	}
	if entity, err := structOf(spec, "sched_entity"); err == nil {
		at, ok1 := offsetOf(task.Members, "se")
		in, ok2 := offsetOf(entity.Members, "exec_start")
		if ok1 && ok2 && at+in <= 1<<15-64 {
			l.execStart = int16(at + in)
		}
	}
	l.readQueue(spec, task)
	if regs, err := structOf(spec, "pt_regs"); err == nil {
		l.regs = readRegisters(regs.Members)
	} else if regs, err := structOf(spec, "user_pt_regs"); err == nil {
		l.regs = readRegisters(regs.Members)
	}
	l.preempt = preemptCounts(spec, task)
	var sw *btf.Typedef
	if err := spec.TypeByName("btf_trace_sched_switch", &sw); err != nil {
		return l, fmt.Errorf("%w: sched_switch: %w", errLayout, err)
	}
	pointer, _ := sw.Type.(*btf.Pointer)
	if pointer == nil {
		return l, fmt.Errorf("%w: sched_switch", errLayout)
	}
	proto, _ := pointer.Target.(*btf.FuncProto)
	if proto == nil || len(proto.Params) < 4 {
		return l, fmt.Errorf("%w: sched_switch", errLayout)
	}
	l.prevState = len(proto.Params) >= 5 // the first is the tracepoint's own
	return l, nil
}

// wayToQueue is where a task has its cfs_rq (with CONFIG_FAIR_GROUP_SCHED), and that the rq of its processor.
func wayToQueue(spec *btf.Spec, task *btf.Struct) (inTask, inFair int16, ok bool) {
	entity, err1 := structOf(spec, "sched_entity")
	fair, err2 := structOf(spec, "cfs_rq")
	if err1 != nil || err2 != nil {
		return 0, 0, false
	}
	at, ok1 := offsetOf(task.Members, "se")
	in, ok2 := offsetOf(entity.Members, "cfs_rq")
	rq, ok3 := offsetOf(fair.Members, "rq")
	return int16(at + in), int16(rq), ok1 && ok2 && ok3 && max(at+in, rq) <= 1<<15-64
}

// readQueue finds since when a task has been ready.
func (l *layout) readQueue(spec *btf.Spec, task *btf.Struct) {
	inTask, inFair, ok := wayToQueue(spec, task)
	info, err1 := structOf(spec, "sched_info")
	rq, err2 := structOf(spec, "rq")
	if !ok || err1 != nil || err2 != nil {
		return
	}
	at, ok1 := offsetOf(task.Members, "sched_info")
	queued, ok2 := offsetOf(info.Members, "last_queued")
	clock, ok3 := offsetOf(rq.Members, "clock")
	if ok1 && ok2 && ok3 && max(at+queued, clock) <= 1<<15-64 {
		l.lastQueued, l.taskQueue, l.queue, l.queueClock = int16(at+queued), inTask, inFair, int16(clock)
	}
}

func structOf(spec *btf.Spec, name string) (*btf.Struct, error) {
	var s *btf.Struct
	if err := spec.TypeByName(name, &s); err != nil {
		return nil, fmt.Errorf("%w: struct %s: %w", errLayout, name, err)
	}
	return s, nil
}

// offsetOf finds a member, also in structs and unions without a name.
func offsetOf(members []btf.Member, name string) (uint32, bool) {
	for _, m := range members {
		if m.Name == name {
			return m.Offset.Bytes(), true
		}
		if m.Name != "" {
			continue
		}
		var inner []btf.Member
		switch t := btf.UnderlyingType(m.Type).(type) {
		case *btf.Struct:
			inner = t.Members
		case *btf.Union:
			inner = t.Members
		}
		if off, ok := offsetOf(inner, name); ok {
			return m.Offset.Bytes() + off, true
		}
	}
	return 0, false
}
