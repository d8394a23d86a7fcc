package ring

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/reel"
)

// namesFor gives the target's functions below n other numbers, but for every tenth, of which nothing is known.
func namesFor(n uint32) Names {
	names := Names{Words: make([]uint32, 2*n), Targets: make([]uint32, 2*n)}
	for id := uint32(1); id < n; id++ {
		if id%10 == 0 {
			continue
		}
		as := 2*n - id
		names.Words[2*id], names.Words[2*id+1] = as<<1, as<<1|1
		names.Targets[as] = id
	}
	return names
}

func calls(rng *rand.Rand, n int) []reel.Event {
	events := make([]reel.Event, n)
	for i := range events {
		events[i] = reel.Event{Time: uint64(100 + 3*i), SP: rng.Uint32(), Word: (1+rng.Uint32N(9))<<1 | rng.Uint32N(2)}
	}
	return events
}

func TestChunksOfCallsAreNamedWhileTheyAreCopied(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	names := namesFor(20)
	for _, n := range []int{1, PeakEvents - 1, PeakEvents, 3*PeakEvents + 5, ChunkEvents} {
		from := calls(rng, n)
		h := Run{Events: make([]reel.Event, n), Targets: names.Targets}
		var ok bool
		if h.Peaks, ok = copyAs(h.Events, from, names.Words, nil); !ok {
			t.Fatalf("%d events are none of calls", n)
		}
		for k, block := range slices.Collect(slices.Chunk(h.Events, PeakEvents)) {
			if peak := slices.MaxFunc(block, func(a, b reel.Event) int { return int(a.SP) - int(b.SP) }).SP; peak != h.Peaks[k] {
				t.Errorf("%d events: the peak of block %d is %#x, not %#x", n, k, h.Peaks[k], peak)
			}
		}
		for i, e := range h.Events {
			if e.Word != names.Words[from[i].Word] || e.Time != from[i].Time || e.SP != from[i].SP {
				t.Fatalf("%d events: number %d is %+v, of %+v", n, i, e, from[i])
			}
		}
		if h.TakeBackNames(); !slices.Equal(h.Events, from) || h.Targets != nil {
			t.Errorf("%d events: without names they differ", n)
		}
	}
}

// What isn't as usual is found, wherever it is.
func TestOtherChunksAreNotNamed(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	names := namesFor(20)
	for name, change := range map[string]func(e *reel.Event){
		"an event isn't written":       func(e *reel.Event) { *e = reel.Event{} },
		"it is none of a call":         func(e *reel.Event) { e.Word = MarkWord | 4 },
		"a function that nobody knows": func(e *reel.Event) { e.Word = 10 << 1 },
		"one that there isn't":         func(e *reel.Event) { e.Word = 20 << 1 },
		"a word of all ones":           func(e *reel.Event) { e.Word = ^uint32(0) },
		"a time before the last":       func(e *reel.Event) { e.Time = 5 },
		"no time":                      func(e *reel.Event) { e.Time = 0 },
		"a time out of this world":     func(e *reel.Event) { e.Time = 1 << 63 },
	} {
		for range 20 {
			from := calls(rng, ChunkEvents)
			change(&from[1+rng.IntN(len(from)-2)])
			if _, ok := copyAs(make([]reel.Event, len(from)), from, names.Words, nil); ok {
				t.Errorf("%s: it was named", name)
			}
		}
	}
	if _, ok := copyAs(make([]reel.Event, 5), calls(rng, 5), nil, nil); ok {
		t.Error("there are names where there are none")
	}
}
