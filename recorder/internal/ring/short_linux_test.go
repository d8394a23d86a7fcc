package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/reel"
)

// collected keeps what is passed on.
type collected struct {
	events []reel.Event
}

func (c *collected) Append(events []reel.Event) error {
	c.events = append(c.events, events...)

	return nil
}

func (c *collected) Dropped(uint64, uint64, uint64) error { return nil }

// madeUp is what a thread could write: calls of all lengths, some left by longjmp, handlers on a stack of their own, other stacks that
// are left and come back to.
func madeUp(r *rand.Rand, n int) []reel.Event {
	var events []reel.Event
	stacks := [][]reel.Event{{{SP: 0x8000_0000}}, {{SP: 0x2000_0000}}, {{SP: 0xD000_0000}}}
	on, now := 0, uint64(1000)
	for len(events) < n {
		s := stacks[on]
		top := s[len(s)-1]
		now += 1 << r.IntN(10)
		switch k := r.IntN(100); {
		case k < 48:
			e := reel.Event{Time: now, SP: top.SP - 16 - 16*uint32(r.IntN(8)), Word: uint32(1+r.IntN(20)) << 1}
			stacks[on] = append(s, e)
			events = append(events, e)
		case k < 94 && len(s) > 1:
			stacks[on] = s[:len(s)-1]
			events = append(events, reel.Event{Time: now, SP: top.SP, Word: top.Word | 1})
		case k < 96 && len(s) > 3:
			stacks[on] = s[:len(s)-1-r.IntN(3)]
		case k == 96:
			on = r.IntN(len(stacks))
		case k == 97 && len(events) > 0: // a clock that was read before a handler came in between
			events[len(events)-1].Time += 300
		}
	}
	return events
}

// callsOf pairs events. Where a call ends that was left without returning isn't told.
func callsOf(events []reel.Event, end uint64, least uint64) []string {
	var calls []string
	var p reel.Pairer
	p.OnCall = func(c *reel.Call) {
		if c.End-c.Start >= least || c.Flags&reel.Unfinished != 0 {
			s := fmt.Sprintf("%d at %#x from %d", c.Func, c.SP, c.Start)
			if c.Flags == 0 {
				s += fmt.Sprintf(" to %d", c.End)
			}
			calls = append(calls, s)
		}
	}
	p.Push(events)
	p.Finish(end)
	slices.Sort(calls)
	return calls
}

// What is passed on are the calls that take long enough, with the same times, in order.
func TestJustLongCallsArePassedOn(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		events := madeUp(r, 2000)
		end := events[len(events)-1].Time + 1000
		least := uint64(1) << r.IntN(14)
		var got collected
		var totals Totals
		l := newLongEnough(&got, &least, &totals, new(allowance))
		for rest := events; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(100))
			if err := l.Append(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := l.end(); err != nil {
			t.Fatal(err)
		}
		if want, have := callsOf(events, end, least), callsOf(got.events, end, 0); !slices.Equal(want, have) {
			t.Fatalf("seed %d, at least %d ticks: %d calls instead of %d:\n%q\n%q", seed, least, len(have), len(want), have, want)
		}
		if !slices.IsSortedFunc(got.events, func(a, b reel.Event) int { return int(a.Time) - int(b.Time) }) {
			t.Errorf("seed %d: not in order", seed)
		}
		if totals.Events != uint64(len(got.events)) {
			t.Errorf("seed %d: %d events counted of %d", seed, totals.Events, len(got.events))
		}
	}
}

// Calls that never end are passed on in the end, and take bounded memory.
func TestOpenCallsArePassedOnInTheEnd(t *testing.T) {
	var got collected
	var totals Totals
	least := uint64(1 << 60)
	l := newLongEnough(&got, &least, &totals, new(allowance))
	var run []reel.Event
	const calls = maxWaiting + maxWaiting/2
	for i := range uint32(calls) {
		run = append(run, reel.Event{Time: uint64(i), SP: 0 - 16*i, Word: 2})
		if len(run) == 1000 || i == calls-1 {
			if err := l.Append(run); err != nil {
				t.Fatal(err)
			}
			run = run[:0]
		}
	}
	if n := cap(l.line); n > 3*maxWaiting {
		t.Errorf("capacity for %d events in line", n)
	}
	if err := l.end(); err != nil {
		t.Fatal(err)
	}
	if len(got.events) != calls || totals.Entries != calls {
		t.Errorf("%d of %d entries passed on, %d counted", len(got.events), calls, totals.Entries)
	}
}

// nowhere is a sink that keeps nothing.
type nowhere struct{}

func (nowhere) Append([]reel.Event) error              { return nil }
func (nowhere) Dropped(entries, exits, _ uint64) error { return nil }

// A target may have many threads, and write entries in each that nothing ends.
func TestWhatWaitsOfAllThreadsIsBounded(t *testing.T) {
	m := newMemory(t, 600)
	d := NewDrainer(m, func(int, int, string) (Sink, error) { return nowhere{}, nil })
	d.Min = 1 << 40
	d.TakesBack = d.Min != 0
	const threads, entries = 400, 3 * ChunkEvents
	for tid := 1; tid <= threads; tid++ {
		if tid%2 == 0 {
			d.Late(tid)
		}
		p := &producer{m, tid}
		p.register("x")
		sp := uint32(1 << 30)
		for range entries {
			sp -= 16
			if !p.event(reel.Entry(1, sp, 1)) {
				t.Fatal("the pool is empty")
			}
		}
		p.event(reel.Exit(1, sp, 1)) // so that all of them are final
		mustRound(t, d)
	}
	if d.allowance.taken == 0 || d.allowance.taken > totalCapacity {
		t.Errorf("a capacity of %d is taken", d.allowance.taken)
	}
	waiting := 0
	for _, th := range d.order {
		waiting += cap(th.long.line)
	}
	if waiting > 4*(totalCapacity+threads*firstCapacity) {
		t.Errorf("memory for %d events", waiting)
	}
	for tid := 1; tid <= threads; tid++ {
		if err := d.End(tid); err != nil {
			t.Fatal(err)
		}
	}
	if d.allowance.taken != 0 {
		t.Errorf("a capacity of %d is taken by no thread", d.allowance.taken)
	}
}
