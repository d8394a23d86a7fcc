package waiting

import (
	"runtime"
	"sort"
	"sync"

	"github.com/callreel/callreel/reel"
)

// frame is an open call.
type frame struct {
	function uint32
	start    uint64
	sp       uint32 // at entry
}

// lane are the open calls of a thread, or of a goroutine.
type lane struct {
	pairer reel.Pairer
	stacks [][]frame
	cur    int
	entry  func(c *reel.Call)          // if set, is told of entries
	ended  func(c *reel.Call, l *lane) // if set, is told of ends
}

func newLane(f *reel.File, thread uint32) *lane {
	l := &lane{}
	l.pairer.OnEntry = func(c *reel.Call) {
		for len(l.stacks) <= c.Stack {
			l.stacks = append(l.stacks, nil)
		}
		s := l.stacks[c.Stack]
		l.stacks[c.Stack] = append(s[:min(c.Depth, len(s))], frame{c.Func, c.Start, c.SP})
		if l.entry != nil {
			l.entry(c)
		}
	}
	l.pairer.OnCall = func(c *reel.Call) {
		if c.Stack < len(l.stacks) && c.Depth < len(l.stacks[c.Stack]) {
			l.stacks[c.Stack] = l.stacks[c.Stack][:c.Depth]
		}
		if l.ended != nil {
			l.ended(c, l)
		}
	}
	l.pairer.OnSwitch = func(_, to int, _ uint64) { l.cur = to }
	f.ReadyPairer(&l.pairer, thread)
	l.pairer.SetTime(f.FirstTick())
	return l
}

// open are the open calls of the current stack, outermost first.
func (l *lane) open() []frame {
	if l.cur >= len(l.stacks) {
		return nil
	}
	return l.stacks[l.cur]
}

// moments are the moments of a thread at which its open calls are to be looked at.
type moments interface {
	// next is the next one.
	next() (tick uint64, ok bool)
	// at is called when it has come: l has the open calls.
	at(l *lane)
}

// walk goes through the events of threads, several at once, and looks at their open calls at moments. of returns nil for a thread without
// interest; its lanes are told to begin, which is called before their events.
func walk(f *reel.File, of func(thread uint32) moments, begin func(l *lane, thread uint32)) {
	threads := f.Threads()
	wanted := map[uint32]moments{}
	var order []uint32
	for i := range threads {
		if m := of(threads[i].Key); m != nil {
			wanted[threads[i].Key] = m
			order = append(order, threads[i].Key)
		}
	}
	if len(order) == 0 {
		return
	}
	if f.Header().Goroutines {
		walkGoroutines(f, wanted, begin)
		return
	}
	next := make(chan uint32)
	var wg sync.WaitGroup
	for range min(len(order), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for key := range next {
				l, m := newLane(f, key), wanted[key]
				if begin != nil {
					begin(l, key)
				}
				f.ReadThread(key, func(events []reel.Event, lost bool) bool {
					if lost {
						l.pairer.Lost()
					}
					l.push(events, m)
					return true
				})
				l.rest(m)
			}
		})
	}
	for _, key := range order {
		next <- key
	}
	close(next)
	wg.Wait()
}

// push takes events, and looks at the calls that are open at moments before the next one.
func (l *lane) push(events []reel.Event, m moments) {
	for m != nil && len(events) > 0 {
		tick, ok := m.next()
		if !ok {
			break
		}
		if last := events[len(events)-1].Time; last <= tick {
			break
		}
		n := sort.Search(len(events), func(i int) bool { return events[i].Time > tick })
		l.pairer.Push(events[:n])
		events = events[n:]
		m.at(l)
	}
	l.pairer.Push(events)
}

// rest looks at what is behind the last event.
func (l *lane) rest(m moments) {
	for _, ok := m.next(); ok; _, ok = m.next() {
		m.at(l)
	}
}

// walkGoroutines is walk of a Go program: the open calls of a thread are those of the goroutine that last ran on it.
func walkGoroutines(f *reel.File, wanted map[uint32]moments, begin func(l *lane, thread uint32)) {
	type owner struct {
		goroutine uint64
		thread    uint32 // of goroutine 0
	}
	lanes, last := map[owner]*lane{}, map[uint32]*lane{}
	f.ReadGoroutines(func(goroutine uint64, thread uint32, events []reel.Event, lost bool) bool {
		o := owner{goroutine: goroutine}
		if goroutine == 0 {
			o.thread = thread
		}
		l := lanes[o]
		m := wanted[thread]
		// What is before its first event is the one's before it.
		if before := last[thread]; before != nil && before != l && m != nil {
			for tick, ok := m.next(); ok && tick < events[0].Time; tick, ok = m.next() {
				m.at(before)
			}
		}
		if l == nil {
			l = newLane(f, thread)
			l.pairer.SetTime(events[0].Time)
			l.pairer.SetTops(nil)
			lanes[o] = l
		}
		if begin != nil {
			begin(l, thread)
		}
		if lost {
			for _, other := range lanes {
				other.pairer.Lost()
			}
		}
		l.push(events, m)
		last[thread] = l
		if f.Ends(events) {
			l.pairer.Abandon()
			delete(lanes, o)
		}
		return true
	})
	for thread, m := range wanted {
		l := last[thread]
		if l == nil {
			l = newLane(f, thread)
		}
		l.rest(m)
	}
}
