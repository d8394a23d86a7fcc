package reel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTicksBecomeTime(t *testing.T) {
	const second = 1_000_000_000
	tests := []struct {
		name      string
		perSecond uint64
		pairs     []ClockPair
		tick      uint64
		want      int64
	}{
		{"no pair, ticks are nanoseconds", 0, nil, 77, 77},
		{"no pair, a rate", 2_000_000_000, nil, 100, 50},
		{"one pair, after it", 2_000_000_000, []ClockPair{{100, 5000}}, 300, 5100},
		{"one pair, before it", 2_000_000_000, []ClockPair{{100, 5000}}, 0, 4950},
		{"between two", 1_000_000_000, []ClockPair{{0, 0}, {2 * second, second}}, second, second / 2},
		{"at the second", 1_000_000_000, []ClockPair{{0, 0}, {2 * second, second}}, 2 * second, second},
		{"after the second, by the rate of both", 1_000_000_000, []ClockPair{{0, 0}, {2 * second, second}}, 4 * second, 2 * second},
		{"three, in the later part", 1_000_000_000, []ClockPair{{0, 0}, {second, second}, {2 * second, 3 * second}}, second + second/2, 2 * second},
		{"out of order", 1_000_000_000, []ClockPair{{2 * second, second}, {0, 0}}, second, second / 2},
		{"a pair that runs backward is left out", 1_000_000_000, []ClockPair{{0, 1000}, {10, 5}, {20, 1020}}, 10, 1010},
		{"far beyond", 1, []ClockPair{{0, 0}}, math.MaxUint64, math.MaxInt64},
	}
	for _, test := range tests {
		if got := newTickClock(test.perSecond, test.pairs).UnixNS(test.tick); got != test.want {
			t.Errorf("%s: tick %d is %d ns, want %d", test.name, test.tick, got, test.want)
		}
	}
}

func TestTimeNeverRunsBackward(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var pairs []ClockPair
		for range rng.IntN(6) {
			pairs = append(pairs, ClockPair{rng.Uint64() >> rng.IntN(64), rng.Int64() >> rng.IntN(64)})
		}
		c := newTickClock(rng.Uint64()>>rng.IntN(64), pairs)
		var ticks []uint64
		for range 100 {
			ticks = append(ticks, rng.Uint64()>>rng.IntN(64))
		}
		for _, p := range pairs {
			ticks = append(ticks, p.Tick-1, p.Tick, p.Tick+1)
		}
		for _, a := range ticks {
			for _, b := range ticks {
				if a < b && c.UnixNS(a) > c.UnixNS(b) {
					t.Fatalf("pairs %v: tick %d is at %d, tick %d at %d", pairs, a, c.UnixNS(a), b, c.UnixNS(b))
				}
			}
		}
	}
}
