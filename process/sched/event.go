package sched

// Kind says what the scheduler did with a thread. The numbers are those of a reel's events.
type Kind uint8

// The kinds.
const (
	In              Kind = iota + 1 // came onto a processor
	Preempted                       // left the processor, could have gone on
	Blocked                         // left the processor to wait
	Uninterruptible                 // left the processor to wait in state D: disk, swap, a page's data
	Woken                           // became ready
	Lost                            // events are missing before this moment: the state since the one before isn't known
	MinorFault                      // a page was missing that was in memory
	MajorFault                      // a page was missing that had to be read
	Ended                           // the thread ended
)

var kindNames = [...]string{"", "in", "preempted", "blocked", "uninterruptible", "woken", "lost", "minor fault", "major fault", "ended"}

// String is the kind in a word or two.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// The special values of Event.Waker.
const (
	WakerUnknown int32 = 0
	WakerKernel  int32 = -1 // an interrupt, a timer, or a thread of the kernel's own
)

// NoSyscall is Event.Syscall of a thread that wasn't in a system call, or where that isn't known.
const NoSyscall int32 = -1

// Event is one thing that the scheduler did with a thread.
type Event struct {
	Time    uint64    // ticks of the processor's clock (the time-stamp counter of x86-64)
	Kind    Kind      //
	CPU     int32     // of In: which processor; -1 not known
	Waker   int32     // of Woken: the thread that woke it, a TID as seen from here; or WakerUnknown, WakerKernel
	Address uint64    // of faults: the address; 0 not known
	Syscall int32     // of Blocked and Uninterruptible: the system call's number, or NoSyscall
	Args    [3]uint64 // its first arguments; of the third the lower 32 bits with some sources
}
