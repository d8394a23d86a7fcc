package waiting

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/callreel/callreel/reel"
)

// Lock is what was waited for at one address.
type Lock struct {
	// Process is that of the threads that waited.
	Process int
	// Address is where it is in memory; 0 if that isn't known.
	Address uint64
	Kind    Kind
	// Waits is how often threads were blocked for it, Waited how long they were in all and Worst the longest time, in ticks. Threads is how
	// many threads waited.
	Waits         uint64
	Waited, Worst uint64
	Threads       int
	// WorstAt is when the longest began, WorstThread the key of the thread.
	WorstAt     uint64
	WorstThread uint32
	// Holders are what those did that had it, or of others than locks those that let threads go on, by Time.
	Holders []LockHolder
	// Unknown is how long it isn't known who that was, in ticks.
	Unknown uint64
}

// LockHolder is a function in which others were kept waiting.
type LockHolder struct {
	// Function is its ID; 0 if no call was open. In is what it spent nearly all of the time in, in the longest case.
	Function uint32
	In       []uint32
	// Time is how long others waited for it, in ticks, in so many Waits.
	Time  uint64
	Waits uint64

	longest uint64 // of one wait
}

// Locks sums up what threads waited for in futex calls, and in functions that lock: locks by the time that was waited, longest first, then
// what may be one, and then what isn't. Times that overlap count for each thread. left is how many stretches were left out.
func Locks(f *reel.File, opt Options) (locks []Lock, left int) {
	keep := opt.Keep
	opt.Keep = func(s *Stretch) bool { return s.Kind != Other && (keep == nil || keep(s)) }
	list, left := Find(f, opt)
	return SumLocks(f, list), left
}

// SumLocks is [Locks] of stretches that are known.
func SumLocks(f *reel.File, list []Stretch) []Lock {
	process := processes(f)
	type key struct {
		placeInMemory
		kind Kind
	}
	index := map[key]int{}
	waiters := map[[2]uint32]bool{}
	var locks []Lock
	for i := range list {
		s := &list[i]
		if s.Kind == Other {
			continue
		}
		k := key{placeInMemory{process[s.Thread], s.Address}, s.Kind}
		at, ok := index[k]
		if !ok {
			at = len(locks)
			index[k] = at
			locks = append(locks, Lock{Process: k.process, Address: s.Address, Kind: s.Kind})
		}
		l, took := &locks[at], s.To-s.From
		l.Waits++
		l.Waited += took
		if took > l.Worst {
			l.Worst, l.WorstAt, l.WorstThread = took, s.From, s.Thread
		}
		if w := [2]uint32{uint32(at), s.Thread}; !waiters[w] {
			waiters[w] = true
			l.Threads++
		}
		l.add(s)
	}
	for i := range locks {
		slices.SortFunc(locks[i].Holders, func(a, b LockHolder) int {
			return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Function, b.Function))
		})
	}
	slices.SortFunc(locks, func(a, b Lock) int {
		return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Kind, b.Kind))
	})
	return locks
}

// add adds who was waited for.
func (l *Lock) add(s *Stretch) {
	known := uint64(0)
	seen := map[uint32]bool{}
	for k := range s.Holders {
		h := &s.Holders[k]
		held := h.Held
		if !s.Kind.IsLock() { // it is waited for from the beginning to the end
			held = h.To - h.From
		}
		if len(h.Path) == 0 {
			continue
		}
		known += held
		fn := h.Function()
		at := slices.IndexFunc(l.Holders, func(x LockHolder) bool { return x.Function == fn })
		if at < 0 {
			at = len(l.Holders)
			l.Holders = append(l.Holders, LockHolder{Function: fn, In: h.In})
		}
		if held > l.Holders[at].longest {
			l.Holders[at].longest, l.Holders[at].In = held, h.In
		}
		l.Holders[at].Time += held
		if !seen[fn] {
			l.Holders[at].Waits++
			seen[fn] = true
		}
	}
	l.Unknown += s.To - s.From - min(s.To-s.From, known)
}

// Place says where an address is: in which image, and how far behind its link address 0; false if it is in none.
func Place(f *reel.File, address uint64) (string, bool) {
	for _, m := range f.Images() {
		if address >= m.Base && address < m.End {
			return fmt.Sprintf("%s+0x%x", path.Base(m.Path), address-m.Slide), true
		}
	}
	return "", false
}
