// Package bigreel makes reels of made-up programs, of any size, for
// benchmarks: busy threads with deep stacks, written as fast as a disk takes
// them.
package bigreel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/callreel/callreel/reel"
)

// Shape says what is made.
type Shape struct {
	Events  uint64 // of all threads, about
	Threads int
	Depth   int // how deep the stacks get, again and again
	Seed    uint64
	// Switches is how often threads of all threads leave a processor or come onto one, about; 0 leaves their states unknown.
	Switches uint64
	// Marks is how many of all threads there are: spans of which some cross, asynchronous ones, flows, counters and instants.
	Marks uint64
	// Last, if set, is called before the reel is closed.
	Last func(w *reel.Writer) error
}

// Functions is how many functions the program has.
const Functions = 600

// patternEvents is how many events are made at random before they repeat, with
// other times.
const patternEvents = 1 << 20

// Write writes the reel and closes it.
func Write(path string, s Shape) error {
	if s.Threads < 1 || s.Depth < 2 {
		return fmt.Errorf("bigreel: %d threads, %d deep", s.Threads, s.Depth)
	}
	w, err := reel.Create(path, reel.Header{Clock: reel.Clock{TicksPerSecond: ticksPerSecond, BaseTick: start}, PID: 1000, Command: []string{"big"}}, reel.Options{Force: true})
	if err != nil {
		return err
	}
	err = fill(w, s)
	if s.Last != nil && err == nil {
		err = s.Last(w)
	}
	return errors.Join(err, w.Close())
}

const (
	ticksPerSecond = 2_450_000_000
	start          = 1 << 40
)

func fill(w *reel.Writer, s Shape) error {
	if _, err := w.AddImage(reel.Image{Path: "/usr/bin/big", ID: "00ff"}); err != nil {
		return err
	}
	functions := make([]reel.Function, Functions)
	for i := range functions {
		functions[i] = reel.Function{Name: fmt.Sprintf("function_%03d", i+1), Image: 1, Addr: uint64(i) * 64, Size: 64, Tier: reel.TierExitSite}
	}
	if _, err := w.AddFunctions(functions); err != nil {
		return err
	}
	if s.Marks > 0 {
		if err := addMarkers(w); err != nil {
			return err
		}
	}
	errs := make([]error, s.Threads)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	var lastMu sync.Mutex
	last := uint64(0)
	for i := range errs {
		tw, err := w.Thread(reel.Thread{TID: 1001 + i, Process: 1000, Name: fmt.Sprintf("worker %d", i)})
		if err != nil {
			return err
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p := &pattern{rng: rand.New(rand.NewPCG(s.Seed, uint64(i))), depth: s.Depth}
			p.make()
			var end uint64
			end, errs[i] = p.repeat(tw, s.Events/uint64(s.Threads))
			if n := s.Switches / uint64(s.Threads); n > 0 && errs[i] == nil {
				errs[i] = sched(tw, rand.New(rand.NewPCG(s.Seed, uint64(i)+1<<32)), n, end)
			}
			if n := s.Marks / uint64(s.Threads); n > 0 && errs[i] == nil {
				errs[i] = marks(tw, rand.New(rand.NewPCG(s.Seed, uint64(i)+2<<32)), uint64(i), n, end)
			}
			lastMu.Lock()
			defer lastMu.Unlock()
			last = max(last, end)
		})
	}
	wg.Wait()
	return errors.Join(append(errs, w.ClockPair(last, int64(float64(last-start)/ticksPerSecond*1e9)))...)
}

// sched writes so many switches of a thread until its end, with wake-ups, page faults and now and then a burst.
func sched(tw *reel.ThreadWriter, rng *rand.Rand, switches, end uint64) error {
	mean := 1.5 * float64(end-start) / float64(switches) // two switches take about 4/3 of it
	batch := make([]reel.SchedEvent, 0, 1<<10)
	now := uint64(start)
	pace := 1.0
	for now < end {
		if rng.IntN(500) == 0 {
			pace = [...]float64{0.2, 0.5, 1, 2}[rng.IntN(4)]
		}
		step := func(share float64) uint64 {
			now += uint64(rng.ExpFloat64()*mean*pace*share) + 8
			return now
		}
		batch = append(batch, reel.SchedEvent{Kind: reel.SchedIn, Time: step(0.1), CPU: int32(rng.IntN(8))})
		if rng.IntN(50) == 0 {
			batch = append(batch, reel.SchedEvent{Kind: reel.SchedMinorFault, Time: step(0.1), Address: rng.Uint64() >> 20})
		}
		if rng.IntN(10) == 0 {
			batch = append(batch, reel.SchedEvent{Kind: reel.SchedPreempted, Time: step(1.2)})
		} else {
			kind := reel.SchedBlocked
			if rng.IntN(20) == 0 {
				kind = reel.SchedUninterruptible
			}
			batch = append(batch, reel.SchedEvent{Kind: kind, Time: step(0.8)}, reel.SchedEvent{Kind: reel.SchedWoken, Time: step(0.8), Waker: int32(1001 + rng.IntN(9) - 1)})
		}
		if len(batch) > cap(batch)-4 {
			if err := tw.Sched(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return tw.Sched(batch)
}

// pattern is a stretch of a thread's life that ends where it began.
type pattern struct {
	rng    *rand.Rand
	depth  int
	events []reel.Event
	now    uint64
}

func (p *pattern) make() {
	p.events = make([]reel.Event, 0, patternEvents+4096)
	for len(p.events) < patternEvents {
		p.call(1, 0x7ffffff0, 0)
		p.now += uint64(p.rng.IntN(20000)) // between requests
	}
}

// call makes a call of a function and of what it calls: mostly one, of a few
// that are its own, now and then two, so that there are some more calls at each
// depth than at the one above.
func (p *pattern) call(fn, sp uint32, depth int) {
	p.now += 24 + uint64(p.rng.IntN(3))*24
	p.events = append(p.events, reel.Entry(p.now, sp, fn))
	if depth+1 < p.depth {
		callees := 1
		switch n := p.rng.IntN(40); {
		case depth == 0:
			callees = 4 + n%12
		case n == 0:
			callees = 0
		case n == 1 || fn%6 == 0:
			callees = 2
		}
		for k := range callees {
			site := uint32(k)
			if p.rng.IntN(12) == 0 {
				site = 2
			}
			p.call(1+(fn*7+site*13+31)%Functions, sp-48-fn%8*16, depth+1)
		}
	} else if p.rng.IntN(400) == 0 {
		p.now += uint64(p.rng.IntN(100_000)) // waits for something
	}
	p.now += 24 + uint64(p.rng.IntN(3))*24
	p.events = append(p.events, reel.Exit(p.now, sp, fn))
}

// repeat appends the pattern over and over, stretched differently each time, within a call of main that ends with the thread.
func (p *pattern) repeat(tw *reel.ThreadWriter, events uint64) (end uint64, err error) {
	now := uint64(start + p.rng.IntN(1<<20))
	batch := make([]reel.Event, 0, 1<<14)
	batch = append(batch, reel.Entry(now, 0x80000000, Functions))
	rng := uint32(p.rng.Uint32() | 1)
	for done := uint64(1); done < events; {
		before := uint64(0)
		for i := range p.events {
			if done >= events && p.events[i].ID() == 1 && !p.events[i].IsExit() {
				break
			}
			e := p.events[i]
			rng ^= rng << 13
			rng ^= rng >> 17
			rng ^= rng << 5
			now += e.Time - before
			if rng&0xff == 0 {
				now += uint64(rng>>20) + 24
			}
			before = e.Time
			e.Time = now
			batch = append(batch, e)
			done++
			if len(batch) == cap(batch) {
				if err := tw.Append(batch); err != nil {
					return now, err
				}
				batch = batch[:0]
			}
		}
	}
	batch = append(batch, reel.Exit(now+100, 0x80000000, Functions))
	return now + 100, tw.Append(batch)
}
