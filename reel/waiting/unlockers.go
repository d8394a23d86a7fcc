package waiting

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/callreel/callreel/reel"
)

// findUnlockers finds, for stretches whose waker isn't known, the thread that was the last to unlock the address in them, if that is recorded as an
// argument of the calls that do it.
func findUnlockers(f *reel.File, n *names, list []Stretch) {
	findConditionWaits(f, list)
	byAddress := map[placeInMemory][]int{}
	process := processes(f)
	for i := range list {
		s := &list[i]
		if s.By == NotKnown && s.Address != 0 && s.Kind.IsLock() {
			key := placeInMemory{process[s.Thread], s.Address}
			byAddress[key] = append(byAddress[key], i)
		}
	}
	unlocks := false
	for id := range n.address {
		unlocks = unlocks || n.roles[id].unlock
	}
	if len(byAddress) == 0 || !unlocks {
		return
	}
	for _, of := range byAddress {
		slices.SortFunc(of, func(a, b int) int { return cmp.Compare(list[a].To, list[b].To) })
	}
	type found struct {
		thread uint32
		at     uint64
	}
	var mu sync.Mutex
	last := map[int]found{}
	walk(f, func(thread uint32) moments { return never{} }, func(l *lane, thread uint32) {
		values, proc := f.Values(thread), process[thread]
		l.entry = func(c *reel.Call) {
			if !n.roles[c.Func].unlock {
				return
			}
			address := n.argument(values, &frame{c.Func, c.Start, c.SP})
			of := byAddress[placeInMemory{proc, address}]
			i := sort.Search(len(of), func(i int) bool { return list[of[i]].To >= c.Start })
			for k := 0; i < len(of) && k < maxWaiters; i, k = i+1, k+1 {
				s := &list[of[i]]
				if s.From >= c.Start || s.Thread == thread {
					continue
				}
				mu.Lock()
				if c.Start > last[of[i]].at {
					last[of[i]] = found{thread, c.Start}
				}
				mu.Unlock()
			}
		}
	})
	for i, who := range last {
		list[i].Waker, list[i].WokenAt, list[i].By = who.thread, who.at, ByUnlock
	}
}

// findConditionWaits finds, for waits for a mutex whose waker isn't known, the thread that was the last to begin to wait for a condition in them,
// and so has unlocked the mutex that goes with it.
func findConditionWaits(f *reel.File, list []Stretch) {
	began := map[placeInMemory][]*Stretch{}
	process := processes(f)
	for i := range list {
		if s := &list[i]; s.HasWait && s.Wait.Mutex != 0 && s.CallStart != 0 {
			key := placeInMemory{process[s.Thread], s.Wait.Mutex}
			began[key] = append(began[key], s)
		}
	}
	if len(began) == 0 {
		return
	}
	for _, of := range began {
		slices.SortFunc(of, func(a, b *Stretch) int { return cmp.Compare(a.CallStart, b.CallStart) })
	}
	for i := range list {
		s := &list[i]
		if s.By != NotKnown || s.Kind != Mutex || s.Address == 0 {
			continue
		}
		of := began[placeInMemory{process[s.Thread], s.Address}]
		k := sort.Search(len(of), func(k int) bool { return of[k].CallStart >= s.To }) - 1
		for ; k >= 0 && of[k].CallStart > s.From; k-- {
			if of[k].Thread != s.Thread {
				s.Waker, s.WokenAt, s.By = of[k].Thread, of[k].CallStart, ByUnlock
				break
			}
		}
	}
}

// maxWaiters is for how many stretches on one address that end behind an unlock it is looked whether the unlock ended them.
const maxWaiters = 256

// placeInMemory is an address of a process.
type placeInMemory struct {
	process int
	address uint64
}

// processes are the threads' processes, by their keys.
func processes(f *reel.File) map[uint32]int {
	of := map[uint32]int{}
	for _, t := range f.Threads() {
		of[t.Key] = t.Process
	}
	return of
}

// never are no moments.
type never struct{}

func (never) next() (uint64, bool) { return 0, false }
func (never) at(*lane)             {}
