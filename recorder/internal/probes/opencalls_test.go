package probes

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/reel"
)

// A target can write whatever it likes: entries that nothing ends, on stacks without number.
func TestOpenCallsAreBounded(t *testing.T) {
	for name, sp := range map[string]func(i uint32) uint32{
		"one stack, ever deeper":   func(i uint32) uint32 { return -i },
		"many stacks":              func(i uint32) uint32 { return i * 3 << 20 },
		"stacks that lie near":     func(i uint32) uint32 { return i * 70 << 10 },
		"two stacks, turn by turn": func(i uint32) uint32 { return i%2<<31 - i },
	} {
		t.Run(name, func(t *testing.T) {
			all := 0
			threads := make([]OpenCalls, 40)
			began, events := time.Now(), 0
			for k := range threads {
				o := &threads[k]
				o.all = &all
				batch := make([]reel.Event, 4096)
				for i := uint32(0); i < 100_000; {
					for j := range batch {
						batch[j] = reel.Entry(uint64(i), sp(i), 1)
						i++
					}
					if i%3 == 0 {
						o.pass(batch)
					} else {
						for j := range batch {
							o.step(&batch[j])
						}
					}
					events += len(batch)
				}
				if open := opened(o); open > maxOpenCalls || o.count > maxOpenCalls || len(o.parts)*partCost+open != o.count {
					t.Fatalf("%d calls are open in %d parts, counted as %d", open, len(o.parts), o.count)
				}
			}
			if all > maxAllOpen {
				t.Errorf("%d calls of all threads are open", all)
			}
			t.Logf("%d events, %v each", events, time.Since(began)/time.Duration(events))
			for k := range threads {
				threads[k].Forget()
			}
			if all != 0 {
				t.Errorf("%d calls are open, of no thread", all)
			}
		})
	}
}

// opened counts the open calls.
func opened(o *OpenCalls) int {
	n := 0
	for range o.Functions {
		n++
	}
	return n
}

// Twenty thousand coroutines take turns, each with a call open while others run: every exit has its call.
func TestOpenCallsOfManyStacksEnd(t *testing.T) {
	const stacks, apart, turns = 20_000, 96 << 10, 5
	var o OpenCalls
	began, events := time.Now(), 0
	step := func(e reel.Event) bool {
		events++
		return o.step(&e)
	}
	for i := range uint32(stacks) {
		step(reel.Entry(1, 1<<20+i*apart, 1))
		step(reel.Entry(1, 1<<20+i*apart-64, 2))
	}
	for range turns {
		for i := range uint32(stacks) {
			if !step(reel.Exit(1, 1<<20+i*apart-64, 2)) {
				t.Fatalf("stack %d: the exit has no call", i)
			}
			step(reel.Entry(1, 1<<20+i*apart-64, 2))
		}
	}
	if n := opened(&o); n != 2*stacks {
		t.Errorf("%d calls are open, want %d", n, 2*stacks)
	}
	t.Logf("%d events, %v each", events, time.Since(began)/time.Duration(events))
}

// Deep recursion is no attack.
func TestOpenCallsOfADeepRecursionEnd(t *testing.T) {
	const deep = 60_000
	var o OpenCalls
	for i := range uint32(deep) {
		e := reel.Entry(1, 1<<31-64*i, 7)
		o.step(&e)
	}
	for i := range uint32(deep) {
		e := reel.Exit(1, 1<<31-64*(deep-1-i), 7)
		if !o.step(&e) {
			t.Fatalf("exit %d has no call", i)
		}
	}
	if n := opened(&o); n != 0 || o.count != 0 {
		t.Errorf("%d calls are open, counted as %d", n, o.count)
	}
}

// What is remembered of the part that was used last is never wrong: the same events come to the same without it.
func TestOpenCallsAreTheSameHoweverTheirPartsAreFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const rounds, least = 2000, 100
	matches := 0
	for range rounds {
		var near, plain OpenCalls
		stacks := []uint32{0x10000, 0x18000, 0x20000, 0xfffff000, 0x800, 0x7fff0000}
		for range 60 {
			if random.IntN(20) == 0 {
				near.Forget()
				plain.Forget()
			}
			sp := stacks[random.IntN(len(stacks))] - uint32(random.IntN(6))*0x40
			e := reel.Entry(1, sp, uint32(1+random.IntN(3)))
			if random.IntN(2) == 0 {
				e = reel.Exit(1, sp, uint32(1+random.IntN(3)))
			}
			plain.near.known = false
			var a, b bool
			if random.IntN(4) == 0 {
				near.pass([]reel.Event{e, e})
				plain.pass([]reel.Event{e, e})
			} else {
				a, b = near.step(&e), plain.step(&e)
			}
			if a && e.IsExit() {
				matches++
			}
			if x, y := list(&near), list(&plain); a != b || near.count != plain.count || !slices.Equal(x, y) {
				t.Fatalf("event at %#x: %v, and %v where nothing is remembered; open %v and %v", sp, a, b, x, y)
			}
		}
	}
	if matches < least {
		t.Errorf("%d exits had an entry: the test tests nothing", matches)
	}
}

// list are the functions of which calls are open, one for each.
func list(o *OpenCalls) (ids []uint32) {
	for id := range o.Functions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
