package reel

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// What the quick loop writes is what the one that every event may go through writes.
func TestTheQuickLoopWritesTheSameBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, events := range map[string][]Event{
		"program": newProgram(5, 300).run(100_000), "no structure": randomEvents(rng, 5000),
		"deeper than there are frames": deepCalls(3 * stackSlots), "one function over and over": sameCalls(rng, 3000),
	} {
		var quick, slow encoder
		quick.reset()
		slow.reset()
		for rest := events; len(rest) > 0; {
			n := min(1+rng.IntN(300), len(rest))
			taken := quick.append(rest[:n], ClockFull)
			slow.encode(rest[:taken], ClockFull)
			if !bytes.Equal(quick.buf[frameSize:quick.pos], slow.buf[frameSize:slow.pos]) || quick.high != slow.high || quick.last != slow.last {
				t.Fatalf("%s: %d events before the end the loops differ", name, len(rest))
			}
			if rest = rest[taken:]; quick.full() {
				quick.reset()
				slow.reset()
			}
		}
	}
}

// sameCalls are calls of one function, now and then at another height or after a wait.
func sameCalls(rng *rand.Rand, n int) (events []Event) {
	now, sp := uint64(1000), uint32(1<<30)
	for range n {
		switch rng.IntN(50) {
		case 0:
			sp = rng.Uint32()
		case 1:
			now += rng.Uint64N(1 << 40)
		}
		events = append(events, Entry(now, sp, 9), Exit(now+rng.Uint64N(50), sp, 9))
		now += 50 + rng.Uint64N(50)
	}
	return events
}

// deepCalls are calls in one another, and their ends.
func deepCalls(n int) (events []Event) {
	for i := range n {
		events = append(events, Entry(uint64(1000+10*i), uint32(1<<30-i*48), 9))
	}
	for i := range n {
		events = append(events, Exit(uint64(1000+10*(n+i)), uint32(1<<30-(n-1-i)*48), 9))
	}
	return events
}
