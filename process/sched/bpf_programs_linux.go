package sched

import (
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// The memory that the programs and we share: maps of type array, mapped into our memory.
//
// A record has 64 bytes, one line of a processor's cache. Each processor has a ring of them and a head and a tail. A program
// first takes a place in the ring by adding to the head, then reads the clock, writes, and last of all writes the number of
// the place, by which we know that the record is whole. So whatever isn't in the ring when we read the head and then the
// clock is later than that: there is an exact bound up to which nothing more will come.
const (
	recordSize = 64

	recTime   = 0  // nanoseconds of CLOCK_MONOTONIC
	recPrev   = 8  // process and thread that leave, or that are woken; 0 where they aren't watched
	recNext   = 16 // of wake-ups the waker; of switches process and thread that come, and a difference: see nextBits
	recFlags  = 24
	recCount  = 28 // of switches: up to when the kernel has counted what who leaves ran; or else since when who comes
	recArgs   = 32 // of the system call: two of eight bytes, one of four
	recQueued = 52 // of switches: for how long who comes has been ready, in nanoseconds as the kernel counts; 0 where that isn't known
	recCommit = 56 // place in the ring + 1 in the lower half, records lost so far in the upper

	stateSize = 128 // of one processor: two lines, so that writing the tail doesn't slow the head
	stateHead = 0
	stateLost = 8
	stateTail = 64
)

// Bits of recFlags; the lower ones are the state of who leaves (include/linux/sched.h).
const (
	flagPreempted = 1 << 31
	flagRunnable  = 1 << 30 // it was to wait, but a signal was there
	flagWoken     = 1 << 29 // a wake-up
	flagExec      = 1 << 28 // a new program; without any of these it is a switch
	flagStates    = 1<<17 - 1
	numberShift   = 17 // above them: the number of the system call + 1, or 0
	numberBits    = 1<<11 - 1
)

// nextBits is how many bits a number of a process or a thread takes in recNext (Linux: PID_MAX_LIMIT). Above them is from where
// on the kernel counts what the next one runs, as a difference to recCount in nanoseconds; farthest if that is too much.
const (
	nextBits = 22
	farthest = 1<<(64-2*nextBits) - 1
)

const (
	watchedWords = 1 << 16 // for 2^22 processes, the most that Linux has
	wakerPlaces  = 1 << 16
	ringReserve  = 8 // places that stay free, for programs that interrupt one another between the question and the taking
)

// programs writes the instructions for one kernel, one size of ring and one PID namespace.
type programs struct {
	layout
	level     int16  // of our PID namespace
	namespace uint64 // its address in the kernel
	cpus      int    // processors that there may be
	places    int    // in a ring, a power of two
	children  bool

	state, records, watched, wakers *ebpf.Map
}

// Places on the stack.
const (
	onCommit = -8
	onKey    = -16
	onPrev   = -24 // process, thread
	onNext   = -32
)

// process puts a task's process ID, as seen from our namespace, into R1; R2 and R3 are used. It jumps to no where the process
// isn't in our namespace.
func (p *programs) process(task asm.Register, no string) asm.Instructions {
	if p.level == 0 {
		return asm.Instructions{asm.LoadMem(asm.R1, task, p.tgid, asm.Word)}
	}
	return append(asm.Instructions{
		asm.LoadMem(asm.R1, task, p.signal, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, p.signalTGID, asm.DWord),
	}, p.number(no)...)
}

// thread does the same for the thread ID.
func (p *programs) thread(task asm.Register, no string) asm.Instructions {
	if p.level == 0 {
		return asm.Instructions{asm.LoadMem(asm.R1, task, p.pid, asm.Word)}
	}
	return append(asm.Instructions{asm.LoadMem(asm.R1, task, p.threadPID, asm.DWord)}, p.number(no)...)
}

// number turns the pid at R1 into its number in our namespace.
func (p *programs) number(no string) asm.Instructions {
	at := p.pidNumbers + p.level*p.upidSize
	return asm.Instructions{
		asm.JEq.Imm(asm.R1, 0, no), // it has ended
		asm.LoadMem(asm.R2, asm.R1, p.pidLevel, asm.Word),
		asm.JLT.Imm(asm.R2, int32(p.level), no),
		asm.LoadMem(asm.R2, asm.R1, at+p.upidNamespace, asm.DWord),
		asm.LoadImm(asm.R3, int64(p.namespace), asm.DWord),
		asm.JNE.Reg(asm.R2, asm.R3, no),
		asm.LoadMem(asm.R1, asm.R1, at+p.upidNumber, asm.Word),
	}
}

// watchedWord makes R3 the address of the word of the set of watched processes that has the one in R1, and R1 its bit's
// number. R2 is used.
func (p *programs) watchedWord(no string) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.RSh.Imm(asm.R2, 6),
		asm.JGE.Imm(asm.R2, watchedWords, no),
		asm.LSh.Imm(asm.R2, 3),
		asm.LoadMapValue(asm.R3, p.watched.FD(), 0),
		asm.Add.Reg(asm.R3, asm.R2),
		asm.And.Imm(asm.R1, 63),
	}
}

// isWatched jumps to no unless the process in R1 is watched. R1 to R3 are used.
func (p *programs) isWatched(no string) asm.Instructions {
	return append(p.watchedWord(no),
		asm.LoadMem(asm.R3, asm.R3, 0, asm.DWord),
		asm.RSh.Reg(asm.R3, asm.R1),
		asm.And.Imm(asm.R3, 1),
		asm.JEq.Imm(asm.R3, 0, no),
	)
}

// ids puts a watched task's process and thread at a place on the stack, or jumps to no.
func (p *programs) ids(task asm.Register, at int16, no string) asm.Instructions {
	return join(
		p.process(task, no),
		asm.Instructions{asm.StoreMem(asm.RFP, onKey, asm.R1, asm.Word)},
		p.isWatched(no),
		p.thread(task, no),
		asm.Instructions{
			asm.StoreMem(asm.RFP, at+4, asm.R1, asm.Word),
			asm.LoadMem(asm.R1, asm.RFP, onKey, asm.Word),
			asm.StoreMem(asm.RFP, at, asm.R1, asm.Word),
		},
	)
}

// reserve takes a place in this processor's ring, makes R9 its address and writes the time; R0 to R5 are used. Where the ring
// is full that is counted, and the program ends.
func (p *programs) reserve() asm.Instructions {
	return asm.Instructions{
		asm.FnGetSmpProcessorId.Call(),
		asm.JGE.Imm(asm.R0, int32(p.cpus), "exit"),
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.LSh.Imm(asm.R0, 7), // stateSize
		asm.LoadMapValue(asm.R1, p.state.FD(), 0),
		asm.Add.Reg(asm.R1, asm.R0),
		asm.LoadMem(asm.R3, asm.R1, stateHead, asm.DWord),
		asm.LoadMem(asm.R4, asm.R1, stateTail, asm.DWord),
		asm.Sub.Reg(asm.R3, asm.R4),
		asm.JLT.Imm(asm.R3, int32(p.places-ringReserve), "room"),
		asm.Mov.Imm(asm.R3, 1),
		atomically(asm.AddAtomic, asm.R1, asm.R3, stateLost),
		asm.Ja.Label("exit"),
		asm.Mov.Imm(asm.R4, 1).WithSymbol("room"),
		atomically(asm.FetchAdd, asm.R1, asm.R4, stateHead),
		asm.LoadMem(asm.R3, asm.R1, stateLost, asm.DWord),
		asm.LSh.Imm(asm.R3, 32),
		asm.Mov.Reg(asm.R2, asm.R4),
		asm.Add.Imm(asm.R2, 1),
		asm.LSh.Imm(asm.R2, 32),
		asm.RSh.Imm(asm.R2, 32),
		asm.Or.Reg(asm.R3, asm.R2),
		asm.StoreMem(asm.RFP, onCommit, asm.R3, asm.DWord),
		asm.And.Imm(asm.R4, int32(p.places-1)),
		asm.Mul.Imm(asm.R9, int32(p.places)),
		asm.Add.Reg(asm.R4, asm.R9),
		asm.StoreMem(asm.RFP, onKey, asm.R4, asm.Word),
		asm.LoadMapPtr(asm.R1, p.records.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, onKey),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R9, recTime, asm.R0, asm.DWord),
	}
}

// commit makes the record whole, and ends the program.
func (p *programs) commit() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, onCommit, asm.DWord).WithSymbol("commit"),
		storeCommit(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}
}

// copy copies two words from the stack into the record.
func (p *programs) copy(from, to int16) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, from, asm.DWord),
		asm.StoreMem(asm.R9, to, asm.R1, asm.DWord),
	}
}

// switches is the program at sched_switch(preempt, prev, next, prev_state).
func (p *programs) switches() asm.Instructions {
	const preempt, prev, next, prevState = 0, 8, 16, 24
	leaves := asm.LoadMem(asm.R2, asm.R7, p.taskState(), asm.Word)
	if p.prevState {
		leaves = asm.LoadMem(asm.R2, asm.R6, prevState, asm.DWord)
	}
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.RFP, onPrev, asm.R1, asm.DWord),
			asm.StoreMem(asm.RFP, onNext, asm.R1, asm.DWord),
			asm.LoadMem(asm.R7, asm.R6, prev, asm.DWord),
			asm.LoadMem(asm.R8, asm.R6, next, asm.DWord),
		},
		p.ids(asm.R7, onPrev, "next"),
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("next")},
		p.ids(asm.R8, onNext, "both"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, onPrev, asm.DWord).WithSymbol("both"),
			asm.LoadMem(asm.R2, asm.RFP, onNext, asm.DWord),
			asm.Or.Reg(asm.R1, asm.R2),
			asm.JEq.Imm(asm.R1, 0, "exit"),
		},
		p.reserve(),
		p.copy(onPrev, recPrev),
		p.counted(),
		asm.Instructions{
			// What it left for.
			asm.LoadMem(asm.R1, asm.R6, preempt, asm.DWord),
			asm.And.Imm(asm.R1, 0xff),
			asm.JEq.Imm(asm.R1, 0, "blocks"),
			asm.LoadImm(asm.R2, flagPreempted, asm.DWord),
			asm.StoreMem(asm.R9, recFlags, asm.R2, asm.Word),
			asm.Ja.Label("commit"),
			leaves.WithSymbol("blocks"),
			asm.And.Imm(asm.R2, flagStates),
			// Kernels before 6.13 say a state here that isn't so when a signal has come: the task's own is 0 then.
			asm.LoadMem(asm.R3, asm.R7, p.taskState(), asm.Word),
			asm.JNE.Imm(asm.R3, 0, "waits"),
			asm.Or.Imm(asm.R2, flagRunnable),
			asm.StoreMem(asm.R9, recFlags, asm.R2, asm.Word).WithSymbol("waits"),
			asm.And.Imm(asm.R2, flagRunnable-1),
			asm.JEq.Imm(asm.R2, 0, "commit"),
			asm.LoadMem(asm.R1, asm.RFP, onPrev, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, "commit"),
		},
		p.systemCall(),
		p.commit(),
	)
}

// counted writes who comes, and since when the kernel counts what it runs. That is up to when it has counted what the one ran
// that leaves, but for who looked for another thread to run meanwhile.
func (p *programs) counted() asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, onNext, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, onNext+4, asm.Word),
		asm.LSh.Imm(asm.R2, nextBits),
		asm.Or.Reg(asm.R1, asm.R2),
	}
	if p.execStart != 0 {
		code = append(code,
			asm.LoadMem(asm.R2, asm.R8, p.execStart, asm.DWord),
			asm.LoadMem(asm.R3, asm.RFP, onPrev, asm.Word),
			asm.JEq.Imm(asm.R3, 0, "count"),
			asm.Mov.Reg(asm.R4, asm.R2),
			asm.LoadMem(asm.R2, asm.R7, p.execStart, asm.DWord),
			asm.Sub.Reg(asm.R4, asm.R2),
			asm.JLE.Imm(asm.R4, farthest, "near"),
			asm.Mov.Imm(asm.R4, farthest),
			asm.LSh.Imm(asm.R4, 2*nextBits).WithSymbol("near"),
			asm.Or.Reg(asm.R1, asm.R4),
			asm.StoreMem(asm.R9, recCount, asm.R2, asm.Word).WithSymbol("count"),
		)
	}
	code = append(code, asm.StoreMem(asm.R9, recNext, asm.R1, asm.DWord))
	return append(code, p.queued()...)
}

// queued writes for how long who comes, the task at R8, has been ready.
func (p *programs) queued() asm.Instructions {
	code := asm.Instructions{asm.Mov.Imm(asm.R1, 0)}
	if p.lastQueued != 0 {
		code = append(code,
			asm.LoadMem(asm.R2, asm.R8, p.lastQueued, asm.DWord),
			asm.JEq.Imm(asm.R2, 0, "queued"),
			asm.LoadMem(asm.R3, asm.R8, p.taskQueue, asm.DWord),
			asm.LoadMem(asm.R3, asm.R3, p.layout.queue, asm.DWord),
			asm.LoadMem(asm.R3, asm.R3, p.queueClock, asm.DWord),
			asm.Sub.Reg(asm.R3, asm.R2),
			asm.Mov.Reg(asm.R2, asm.R3),
			asm.RSh.Imm(asm.R2, 32),
			asm.JNE.Imm(asm.R2, 0, "queued"),
			asm.Mov.Reg(asm.R1, asm.R3),
		)
	}
	return append(code, asm.StoreMem(asm.R9, recQueued, asm.R1, asm.Word).WithSymbol("queued"))
}

// taskState is where a task has its state.
func (p *programs) taskState() int16 { return p.layout.state }

// systemCall writes which system call the task at R7 is in.
func (p *programs) systemCall() asm.Instructions {
	if !p.regs.known {
		return nil
	}
	code := asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.FnTaskPtRegs.Call(),
	}
	code = append(code, p.regs.inSyscall("commit")...)
	code = append(code,
		asm.Add.Imm(asm.R1, 1),
		asm.LSh.Imm(asm.R1, numberShift),
		asm.LoadMem(asm.R2, asm.R9, recFlags, asm.Word),
		asm.Or.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.R9, recFlags, asm.R1, asm.Word),
	)
	for i, at := range p.regs.arguments {
		size := asm.DWord
		if recArgs+8*int16(i)+8 > recQueued {
			size = asm.Word
		}
		code = append(code, asm.LoadMem(asm.R1, asm.R0, at, asm.DWord), asm.StoreMem(asm.R9, recArgs+8*int16(i), asm.R1, size))
	}
	return code
}

// wakes is the program at sched_waking(task): the decision to wake it. Who woke is noted until sched_wakeup, which may be
// on another processor: the place is that of the task's number, so that it may be another's by now, which is seen.
func (p *programs) wakes() asm.Instructions {
	return join(
		asm.Instructions{asm.LoadMem(asm.R7, asm.R1, 0, asm.DWord)},
		p.process(asm.R7, "exit"),
		p.isWatched("exit"),
		p.waker(),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R7, p.pid, asm.Word),
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.And.Imm(asm.R2, wakerPlaces-1),
			asm.LSh.Imm(asm.R2, 3),
			asm.LoadMapValue(asm.R3, p.wakers.FD(), 0),
			asm.Add.Reg(asm.R3, asm.R2),
			asm.LSh.Imm(asm.R1, 32),
			asm.LSh.Imm(asm.R9, 32),
			asm.RSh.Imm(asm.R9, 32),
			asm.Or.Reg(asm.R1, asm.R9),
			asm.StoreMem(asm.R3, 0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
			asm.Return(),
		},
	)
}

// waker makes R9 the thread that is running, or WakerKernel when it has been interrupted or is the kernel's own. R0 to R8 but R7
// are used.
func (p *programs) waker() asm.Instructions {
	const kernelThread = 0x00200000 // PF_KTHREAD
	code := asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.Mov.Imm(asm.R9, WakerKernel),
		asm.LoadMem(asm.R1, asm.R8, p.flags, asm.Word),
		asm.And.Imm(asm.R1, kernelThread),
		asm.JNE.Imm(asm.R1, 0, "known"),
	}
	if len(p.preempt) > 0 {
		code = join(code, p.preempt[0].read("unknown"), asm.Instructions{
			asm.And.Imm(asm.R1, interrupted),
			asm.JNE.Imm(asm.R1, 0, "known"),
		}, p.thread(asm.R8, "unknown"), asm.Instructions{
			asm.Mov.Reg(asm.R9, asm.R1),
			asm.Ja.Label("known"),
		})
	}
	// The kernel takes no program with instructions that nothing leads to: on some processors both are always found.
	if len(p.preempt) == 0 || slices.ContainsFunc(code, func(i asm.Instruction) bool { return i.Reference() == "unknown" }) {
		code = append(code, asm.Mov.Imm(asm.R9, WakerUnknown).WithSymbol("unknown"))
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("known"))
}

// woken is the program at sched_wakeup(task): the task is among those that may run. That and its switches are told under
// the lock of one queue, so that their order is the true one; sched_waking may come before the task has left.
func (p *programs) woken() asm.Instructions {
	return join(
		p.wokenTask(),
		asm.Instructions{
			// Not of a task that is only about to wait: it goes on, and interrupts are on here.
			asm.FnGetCurrentPidTgid.Call(),
			asm.LSh.Imm(asm.R0, 32),
			asm.RSh.Imm(asm.R0, 32),
			asm.LoadMem(asm.R1, asm.R7, p.pid, asm.Word),
			asm.JEq.Reg(asm.R0, asm.R1, "exit"),
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.And.Imm(asm.R2, wakerPlaces-1),
			asm.LSh.Imm(asm.R2, 3),
			asm.LoadMapValue(asm.R3, p.wakers.FD(), 0),
			asm.Add.Reg(asm.R3, asm.R2),
			asm.LoadMem(asm.R8, asm.R3, 0, asm.DWord),
			asm.Mov.Reg(asm.R2, asm.R8),
			asm.RSh.Imm(asm.R2, 32),
			asm.JEq.Reg(asm.R1, asm.R2, "noted"),
			asm.Mov.Imm(asm.R8, WakerUnknown),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("noted"),
		},
		p.wokenRecord(),
	)
}

// born is the program at sched_wakeup_new(task): the task's life begins. Who runs is its maker.
func (p *programs) born() asm.Instructions {
	return join(
		p.wokenTask(),
		p.waker(),
		asm.Instructions{asm.Mov.Reg(asm.R8, asm.R9)},
		p.wokenRecord(),
	)
}

func (p *programs) wokenTask() asm.Instructions {
	return join(
		asm.Instructions{asm.LoadMem(asm.R7, asm.R1, 0, asm.DWord)},
		p.ids(asm.R7, onPrev, "exit"),
	)
}

// wokenRecord tells of a wake-up whose waker is in the lower half of R8.
func (p *programs) wokenRecord() asm.Instructions {
	return join(
		p.reserve(),
		p.copy(onPrev, recPrev),
		asm.Instructions{
			asm.StoreMem(asm.R9, recNext, asm.R8, asm.Word),
			asm.StoreImm(asm.R9, recFlags, flagWoken, asm.Word),
		},
		p.commit(),
	)
}

// forks is the program at sched_process_fork(parent, child). A new process of a watched one is watched, if that is asked for.
// Any other is not, also when a watched one that has ended had its number.
func (p *programs) forks() asm.Instructions {
	const parent, child = 0, 8
	code := join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R7, asm.R6, child, asm.DWord),
			asm.LoadMem(asm.R1, asm.R7, p.pid, asm.Word),
			asm.LoadMem(asm.R2, asm.R7, p.tgid, asm.Word),
			asm.JNE.Reg(asm.R1, asm.R2, "exit"), // a thread
		},
		p.process(asm.R7, "exit"),
		p.watchedWord("exit"),
		asm.Instructions{
			asm.Mov.Reg(asm.R8, asm.R3),
			asm.Mov.Imm(asm.R9, 1),
			asm.LSh.Reg(asm.R9, asm.R1),
		},
	)
	if p.children {
		code = join(code,
			asm.Instructions{asm.LoadMem(asm.R7, asm.R6, parent, asm.DWord)},
			p.process(asm.R7, "other"),
			p.isWatched("other"),
			asm.Instructions{
				atomically(asm.OrAtomic, asm.R8, asm.R9, 0),
				asm.Ja.Label("exit"),
			},
		)
	}
	return join(code, asm.Instructions{
		asm.LoadMem(asm.R1, asm.R8, 0, asm.DWord).WithSymbol("other"),
		asm.And.Reg(asm.R1, asm.R9),
		asm.JEq.Imm(asm.R1, 0, "exit"),
		asm.Xor.Imm(asm.R9, -1),
		atomically(asm.AndAtomic, asm.R8, asm.R9, 0),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	})
}

// execs is the program at sched_process_exec(task, …): it has a new program, and no other threads any more.
func (p *programs) execs() asm.Instructions {
	return join(
		p.wokenTask(),
		p.reserve(),
		p.copy(onPrev, recPrev),
		asm.Instructions{asm.StoreImm(asm.R9, recFlags, flagExec, asm.Word)},
		p.commit(),
	)
}

// atomically does op with the eight bytes at to. The library (ebpf 0.22) forgets which operation it is when it encodes an
// instruction, and writes its Constant instead: so it is said there, too.
func atomically(op asm.AtomicOp, to, by asm.Register, offset int16) asm.Instruction {
	in := op.Mem(to, by, asm.DWord, offset)
	in.Constant = int64(op >> 8)
	return in
}

func join(parts ...asm.Instructions) asm.Instructions {
	var out asm.Instructions
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
