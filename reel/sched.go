package reel

import "fmt"

// RunState says what the kernel's scheduler had a thread do.
type RunState uint8

// The states of a thread.
const (
	// StateUnknown: before the scheduler's first word on the thread, behind its last one, or where words were lost.
	StateUnknown RunState = iota
	// StateRunning: on a processor, in the program or in the kernel on its behalf.
	StateRunning
	// StateReady: it could have run and didn't: it was preempted, or woken and not yet on a processor.
	StateReady
	// StateBlocked: it waited for something.
	StateBlocked
)

// String returns the state in a word.
func (s RunState) String() string {
	switch s {
	case StateUnknown:
		return "unknown"
	case StateRunning:
		return "cpu"
	case StateReady:
		return "ready"
	case StateBlocked:
		return "blocked"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// SchedKind says what a SchedEvent tells.
type SchedKind uint8

// What the scheduler, or the memory management, did with a thread.
const (
	SchedIn              SchedKind = iota + 1 // came onto a processor
	SchedPreempted                            // left the processor, and could have gone on
	SchedBlocked                              // left the processor to wait
	SchedUninterruptible                      // left the processor to wait in state D: for a disk, swap, a lock of the kernel's
	SchedWoken                                // became ready
	SchedLost                                 // words are missing before this moment: what it did since the one before isn't known
	SchedMinorFault                           // a page fault that needed no input
	SchedMajorFault                           // a page fault that had to read from a disk
	SchedEnded                                // the thread ended

	lastSchedKind = SchedEnded
)

// SchedEvent is one word of the scheduler on a thread.
type SchedEvent struct {
	// Time is in ticks.
	Time uint64
	// Address is, of a page fault, the address that was touched; 0 if that isn't known.
	Address uint64
	// CPU is, of SchedIn, the processor; -1 if that isn't known.
	CPU int32
	// Waker is, of SchedWoken, the ID of the thread that woke it, as the recorder sees it; 0 if that isn't known, [WakerKernel] for the kernel.
	Waker int32
	Kind  SchedKind
}

// WakerKernel stands for a waker that is no thread: an interrupt, a timer.
const WakerKernel = -1

// StateInterval is a time in which a thread was in one state. The intervals of a thread follow one another without holes.
type StateInterval struct {
	// From and To are in ticks, To after From.
	From, To uint64
	State    RunState
	// CPU is, of StateRunning, the processor; -1 if that isn't known.
	CPU int32
	// Waker is, of StateBlocked, who ended it: as in SchedEvent.
	Waker int32
	// Preempted says of StateReady that the thread had been running; otherwise it was woken.
	Preempted bool
	// Uninterruptible says of StateBlocked that it was in state D.
	Uninterruptible bool
}

// StateTimes splits a time by states, in ticks. What is missing to the whole isn't known.
type StateTimes struct{ Running, Ready, Blocked uint64 }

// Add adds so many ticks in a state.
func (t *StateTimes) Add(s RunState, ticks uint64) {
	switch s {
	case StateRunning:
		t.Running += ticks
	case StateReady:
		t.Ready += ticks
	case StateBlocked:
		t.Blocked += ticks
	}
}

// Plus is the sum of both.
func (t StateTimes) Plus(o StateTimes) StateTimes {
	return StateTimes{t.Running + o.Running, t.Ready + o.Ready, t.Blocked + o.Blocked}
}

// Minus is what is left without o, none of it below 0.
func (t StateTimes) Minus(o StateTimes) StateTimes {
	return StateTimes{t.Running - min(t.Running, o.Running), t.Ready - min(t.Ready, o.Ready), t.Blocked - min(t.Blocked, o.Blocked)}
}

// Known is the time of all states.
func (t StateTimes) Known() uint64 { return t.Running + t.Ready + t.Blocked }

// Fault is a page fault of a thread.
type Fault struct {
	Time    uint64 // ticks
	Address uint64 // 0 if that isn't known
	Major   bool   // it had to read from a disk
}

// Scheduling says how the states of threads were learned.
type Scheduling struct {
	// Source is "bpf", "perf" or "schedstat", which has sums only; "" if nothing could be learned.
	Source string
	// Reason says why the source is no better one, and what would make it work; "" if it is the best.
	Reason string
	// WakeUps says that the time at which threads were woken is known. Otherwise StateBlocked lasts until they ran.
	WakeUps bool
	// Faults says that page faults were recorded.
	Faults bool
}

// SchedSums is what the kernel itself says a thread did during the recording (/proc/PID/task/TID/schedstat), in nanoseconds.
type SchedSums struct{ Running, Ready uint64 }

// Wait is what a thread waited for while it was blocked.
type Wait struct {
	// Time is when it became blocked, in ticks: the Time of the SchedEvent.
	Time uint64
	// Syscall is the number of the system call that it was in, by the architecture in the Header; -1 if that isn't known.
	Syscall int32
	// Args are the call's first arguments: a descriptor, a futex's address. Where the system call isn't known but the object is, the first
	// is the descriptor.
	Args [3]uint64
	// Object is what the descriptor stands for: a file's path, "socket 127.0.0.1:80 -> 127.0.0.1:5555", "pipe:[123]"; "" if that isn't known.
	Object string
	// Lock is the address of what it waited for, by the argument of the library's call that it was in: a lock, a condition, a semaphore;
	// 0 if that isn't known. Mutex is that of the mutex that goes with a condition.
	Lock, Mutex uint64
	// Ender is the key of the thread that is known to have let it go on, by the call that thread made, which began at EndedAt, in ticks;
	// 0 if none is. EndedBy says what that call did.
	Ender   uint32
	EndedAt uint64
	EndedBy WaitEnd
}

// WaitEnd is what a thread did that let another one go on.
type WaitEnd uint8

// What it may have done. Their numbers stand in files.
const (
	EndNotKnown   WaitEnd = iota
	EndUnlock             // it unlocked the lock, signalled the condition, posted the semaphore
	EndDescriptor         // it wrote into the other end of the pipe or socket, read from it, connected or closed it
)
