package reel

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// scheduler is a made-up program of coroutines, which knows what its calls come to.
type scheduler struct {
	rng    *rand.Rand
	now    uint64
	events []Event
	stacks []*coroutine
	cur    *coroutine
	ended  []Call // as they should be found
	throws int    // one in so many calls is left by an exception; 0 for none
}

// coroutine is a stack of it. Times are spent where the last event was.
type coroutine struct {
	base  uint32
	open  []Call
	since uint64
	throw int // calls at the end of open that an exception has left
}

func newScheduler(seed uint64) *scheduler {
	return &scheduler{rng: rand.New(rand.NewPCG(seed, 7)), now: 1000}
}

func (s *scheduler) add(base uint32) *coroutine {
	c := &coroutine{base: base}
	s.stacks = append(s.stacks, c)
	return c
}

// event makes the next event, on a stack that may be another one than the last's.
func (s *scheduler) event(c *coroutine) uint64 {
	s.now += 1 + uint64(s.rng.IntN(50))
	if s.cur != nil && s.cur != c {
		s.cur.since = s.now
		if n := len(c.open); n > 0 {
			c.open[n-1].Inside += s.now - c.since
		}
	}
	s.cur = c
	for ; c.throw > 0; c.throw-- {
		s.end(c, Implicit)
	}
	return s.now
}

func (s *scheduler) enter(c *coroutine, id uint32) {
	now := s.event(c)
	sp := c.base - 64
	if n := len(c.open); n > 0 { // a function's frame is of one size
		sp = c.open[n-1].SP - 16 - 16*(c.open[n-1].Func*7%23)
	}
	s.events = append(s.events, Entry(now, sp, id))
	c.open = append(c.open, Call{Func: id, SP: sp, Start: now})
}

func (s *scheduler) leave(c *coroutine) {
	now := s.event(c)
	o := &c.open[len(c.open)-1]
	s.events = append(s.events, Exit(now, o.SP, o.Func))
	s.end(c, 0)
}

func (s *scheduler) end(c *coroutine, flags CallFlags) {
	n := len(c.open) - 1
	o := c.open[n]
	c.open = c.open[:n]
	o.End, o.Flags = s.now, flags
	if n > 0 {
		c.open[n-1].Inside += o.Duration()
	}
	s.ended = append(s.ended, o)
}

// work makes some calls on a stack, until an exception leaves one.
func (s *scheduler) work(c *coroutine, depth int) (thrown bool) {
	for range s.rng.IntN(4) {
		s.enter(c, 10+uint32(s.rng.IntN(9)))
		if depth > 0 && s.work(c, depth-1) || s.throws > 0 && s.rng.IntN(s.throws) == 0 {
			return true
		}
		s.leave(c)
	}
	return false
}

// run lets a coroutine do some work and wait in a call of yield.
func (s *scheduler) run(c *coroutine) {
	if len(c.open) == 0 {
		s.enter(c, 1)
	} else {
		s.leave(c) // yield
	}
	s.caught(c, 1)
	s.enter(c, 2)
}

// caught lets a stack with some open calls work, with exceptions that are caught there.
func (s *scheduler) caught(c *coroutine, outer int) {
	s.work(c, 3)
	c.throw = len(c.open) - outer
}

// finish ends what is open as the end of the recording does.
func (s *scheduler) finish() uint64 {
	s.now += 100
	for _, c := range s.stacks {
		if c != s.cur && len(c.open) > 0 {
			c.open[len(c.open)-1].Inside += s.now - c.since
		}
		for ; c.throw > 0; c.throw-- {
			s.end(c, Unfinished)
		}
		for len(c.open) > 0 {
			s.end(c, Unfinished)
		}
	}
	return s.now
}

// pairedCalls runs events through a Pairer and returns what ended, without depths and stacks, in order. Before the end it calls before.
func pairedCalls(p *Pairer, events []Event, end uint64, before func()) []Call {
	var got []Call
	p.OnCall = func(c *Call) {
		k := *c
		k.Depth, k.Stack = 0, 0
		got = append(got, k)
	}
	for rest := events; len(rest) > 0; rest = rest[min(len(rest), 777):] {
		p.Push(rest[:min(len(rest), 777)])
	}
	before()
	p.Finish(end)
	sortCalls(got)
	return got
}

func sortCalls(calls []Call) {
	slices.SortFunc(calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.SP, a.SP), cmp.Compare(a.Func, b.Func))
	})
}

// differing counts calls of two lists in order that only one has.
func differing(a, b []Call) (n int, first string) {
	has := map[Call]int{}
	for _, c := range a {
		has[c]++
	}
	for _, c := range b {
		if has[c]--; has[c] < 0 {
			n++
			if first == "" {
				first = fmt.Sprintf("%+v", c)
			}
		}
	}
	return n, first
}

func TestCoroutinesAreToldApart(t *testing.T) {
	const far = 0x10000000
	tests := []struct {
		name   string
		stacks int
		size   int32 // of a stack; negative where the next one is below
		main   bool  // calls on the thread's own stack between all turns
		random bool
	}{
		{"16 KB, up", 20, 16 << 10, false, false},
		{"16 KB, down", 20, -16 << 10, false, false},
		{"64 KB, up", 20, 64 << 10, false, false},
		{"64 KB, down", 20, -64 << 10, false, false},
		{"256 KB, up", 20, 256 << 10, false, false},
		{"256 KB, down", 20, -256 << 10, false, false},
		{"16 KB, at random", 50, 16 << 10, false, true},
		{"64 KB, at random", 50, 64 << 10, false, true},
		{"64 KB, by way of the thread's own", 20, 64 << 10, true, false},
		{"64 KB, down, by way of the thread's own", 20, -64 << 10, true, false},
		{"256 KB, at random, by way of the thread's own", 50, 256 << 10, true, true},
		{"a pool of 1,000 of 64 KB", 1000, 64 << 10, false, false},
		{"a pool of 1,000 of 16 KB, down", 1000, -16 << 10, false, false},
		{"a pool of 1,000 of 256 KB, by way of the thread's own", 1000, 256 << 10, true, false},
		{"a pool of 1,000 of 16 KB, at random", 1000, 16 << 10, false, true},
	}
	for _, test := range tests {
		for _, throws := range []int{0, 20} {
			t.Run(fmt.Sprintf("%s, exceptions %v", test.name, throws > 0), func(t *testing.T) {
				s := newScheduler(uint64(test.stacks) + uint64(throws))
				s.throws = throws
				own := s.add(base)
				for i := range test.stacks {
					s.add(uint32(far + int32(i)*test.size))
				}
				s.enter(own, 3)
				rounds := max(6, 1000/test.stacks)
				for i := range rounds * test.stacks {
					n := i % test.stacks
					if test.random {
						n = s.rng.IntN(test.stacks)
					}
					if test.main || i == 0 {
						s.caught(own, 1)
						s.enter(own, 4) // resume
					}
					s.run(s.stacks[1+n])
					if test.main {
						s.leave(own)
					}
				}
				end := s.finish()
				sortCalls(s.ended)

				var p Pairer
				var tops []uint32
				calls := pairedCalls(&p, s.events, end, func() { tops = p.Tops() })
				wrong, first := differing(s.ended, calls)
				// Those that were open until it was known that there are neighbours have been taken for over.
				if most := 2 * test.stacks; wrong > most || p.Unmatched > uint64(wrong) {
					t.Errorf("%d of %d calls are wrong, want no more than %d; the first is %s", wrong, len(calls), most, first)
				}
				spent(t, calls, end-s.events[0].Time)

				var q Pairer
				q.SetTops(tops)
				calls = pairedCalls(&q, s.events, end, func() {})
				if wrong, first := differing(s.ended, calls); wrong > 0 || q.Unmatched > 0 {
					t.Errorf("with %d tops known %d of %d calls are wrong, the first is %s; %d unmatched", len(tops), wrong, len(calls), first, q.Unmatched)
				}
				spent(t, calls, end-s.events[0].Time)
			})
		}
	}
}

// Stacks that nobody comes back to cost no more, the ten-thousandth as the first, and what is open on them is given up when there are too
// many. (In 4 GB few have room: some lie where others, or the thread's own, were.)
func TestAbandonedStacks(t *testing.T) {
	const abandoned = 20_000
	for _, size := range []int32{64 << 10, -64 << 10, 1 << 20, -3 << 20} {
		s := newScheduler(5)
		own := s.add(base)
		s.enter(own, 3)
		for i := range abandoned {
			s.work(own, 1)
			s.enter(own, 4)
			s.run(s.add(uint32(0x10000000 + int32(i)*size)))
			s.leave(own)
		}
		end := s.finish()
		var p Pairer
		most := 0
		given := 0
		p.OnEntry = func(*Call) { most = max(most, p.open) }
		calls := pairedCalls(&p, s.events, end, func() {})
		for _, c := range calls {
			if c.Flags&Implicit != 0 {
				given++
			}
		}
		if most > 3*MaxStacks || cap(p.stacks) > 2*MaxStacks || p.Unmatched > 10 {
			t.Errorf("%d KB: up to %d calls are open, room for %d stacks, %d exits unmatched", size>>10, most, cap(p.stacks), p.Unmatched)
		}
		// All else is as it was: but for the two calls that wait on each stack.
		if wrong, first := differing(s.ended, calls); wrong > 2*abandoned || given > 2*abandoned {
			t.Errorf("%d KB: %d calls are wrong, %d given up; the first is %s", size>>10, wrong, given, first)
		}
		spent(t, calls, end-s.events[0].Time)
	}
}

// spent checks that no instant is two calls' own.
func spent(t *testing.T, calls []Call, most uint64) {
	t.Helper()
	self := uint64(0)
	for i := range calls {
		if calls[i].Inside > calls[i].Duration() {
			t.Fatalf("more time inside than there was: %+v", calls[i])
		}
		self += calls[i].Self()
	}
	if self > most {
		t.Errorf("calls have %d ticks of their own in %d", self, most)
	}
}
