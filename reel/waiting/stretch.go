package waiting

import (
	"math"

	"github.com/callreel/callreel/reel"
)

// Stretch is a time in which a thread was blocked. Times are in ticks.
type Stretch struct {
	// Thread is the thread's key.
	Thread uint32
	// From is when it became blocked, To when it was woken, or, if the reel's Scheduling has no WakeUps, when it ran.
	From, To uint64
	// Uninterruptible says that it was in state D: for a disk, swap, a lock of the kernel's.
	Uninterruptible bool
	// Function is the ID of the innermost call that was open, which began at CallStart; 0 if none was.
	Function  uint32
	CallStart uint64
	// Wait is what the thread is known to have waited for, if HasWait: system call, arguments, a descriptor's object.
	Wait    reel.Wait
	HasWait bool
	// Kind is what it waited for, as far as the call and the system call tell, and Address, unless it is 0, where that is in memory.
	Kind    Kind
	Address uint64
	// Waker is the key of the thread that let it go on, and WokenAt when that did so; 0 if that isn't known. By says how it is known.
	Waker   uint32
	WokenAt uint64
	By      Source
	// Holders are what that thread did in the stretch and, of a lock, what those did that had it before, latest first. There is none if
	// no Waker is known.
	Holders []Holder
}

// Holder is what a thread did while another one waited for it.
type Holder struct {
	// Thread is its key, From and To are the part of the stretch in which it was waited for, in ticks.
	Thread   uint32
	From, To uint64
	// Path are the IDs of the functions that were open, outermost first, at To and for most of that time. The last one is the one
	// that let the other go on, without functions that merely lock, unlock or wake: of a lock, the one that held it. Nil if no call was open.
	Path []uint32
	// Held is for how long of the time the last one was open, in ticks; it isn't known to have been its for the rest. Since is when its last
	// call began.
	Held  uint64
	Since uint64
	// In are the functions below the last one in which nearly all of the time went, one called by the other.
	In []uint32
}

// Function is the last of the Path, or 0.
func (h *Holder) Function() uint32 {
	if len(h.Path) == 0 {
		return 0
	}
	return h.Path[len(h.Path)-1]
}

// Source says how it is known who let a thread go on.
type Source uint8

// The sources.
const (
	NotKnown     Source = iota
	ByWakeUp            // the scheduler said whom it was woken by
	ByUnlock            // it was the last that unlocked the address, or signalled it, by the argument of its call
	ByKernel            // no thread did: an interrupt, a timer
	ByDescriptor        // it was the last that wrote into the other end of the pipe or socket, or read from it, connected or closed it
)

// Options say which stretches are looked for.
type Options struct {
	// Threads are the keys of the threads whose stretches are looked for; nil for all.
	Threads []uint32
	// From and To bound the stretches' time, in ticks: those that overlap are taken. A To of 0 is no bound.
	From, To uint64
	// Least is how long a stretch is at least, in ticks.
	Least uint64
	// Keep, if set, says which are kept, before Waker and Holders are known. It may be called by several goroutines at once.
	Keep func(*Stretch) bool
	// Most is how many are kept, the longest; 0 means 1<<18.
	Most int
}

const defaultMost = 1 << 18

func (o *Options) to() uint64 {
	if o.To == 0 {
		return math.MaxUint64
	}
	return o.To
}

func (o *Options) most() int {
	if o.Most <= 0 {
		return defaultMost
	}
	return o.Most
}

// Find returns the stretches in which threads of the file were blocked, by thread and time, and how many were left out beyond Most. It reads
// the events of the threads and then those of the threads that have let them go on.
func Find(f *reel.File, opt Options) (list []Stretch, left int) {
	n := newNames(f)
	list, left = stretches(f, n, &opt)
	findUnlockers(f, n, list)
	findHolders(f, n, list)
	return list, left
}
