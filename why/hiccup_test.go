package why

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
)

// What lengthens one stretch, once and for a moment, may be the machine; what several slow calls have, what takes long, and what calls do
// otherwise is none.
func TestHiccupsAreNoCauses(t *testing.T) {
	longer := func(by uint64) func(p *program, r *madereel.Run) {
		return func(p *program, r *madereel.Run) {
			r.Call(fnParse, func() { r.Work(p.about(20*µs) + by) })
			for range 3 {
				r.Call(fnLookup, func() { r.Work(p.about(22 * µs)) })
			}
			r.Call(fnRender, func() { r.Work(p.about(50 * µs)) })
		}
	}
	for _, c := range []struct {
		name   string
		every  int
		slow   func(p *program, r *madereel.Run)
		caused bool
	}{
		{"once 1.5 ms", 2000, longer(1500 * µs), false},
		{"often 1.5 ms", 300, longer(1500 * µs), true},
		{"often 0.3 ms where a tenth of the time is spent", 300, longer(300 * µs), true},
		{"often 0.5 ms where all time is spent", 300, func(_ *program, r *madereel.Run) { r.Work(650 * µs) }, false},
		{"once 5 ms", 2000, longer(5 * ms), true},
		{"once more calls", 2000, func(p *program, r *madereel.Run) {
			p.ordinary(r)
			r.Call(fnLookup, func() {
				for range 300 {
					r.Call(fnCompare, func() { r.Work(p.about(5 * µs)) })
				}
			})
		}, true},
		{"once another path", 2000, func(p *program, r *madereel.Run) {
			p.ordinary(r)
			r.Call(fnRotate, func() { r.Work(1500 * µs) })
		}, true},
		{"once the wait for a thread that works", 2000, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProgram(t, true)
			r, other := madereel.NewRun(baseTick), madereel.NewRun(baseTick)
			ask := func(r *madereel.Run, ns uint64) {
				r.Call(fnAsk, func() {
					other.Idle(r.Now)
					other.Call(fnAnswer, func() { other.Work(ns) })
					r.Wait(other.Now-r.Now, 102)
				})
			}
			for i := range 2000 {
				r.Call(fnHandle, func() {
					switch slow := i%c.every == c.every/2; {
					case c.slow == nil && slow:
						ask(r, 1500*µs)
					case c.slow == nil:
						ask(r, p.about(50*µs))
					case strings.Contains(c.name, "all time") && !slow:
						r.Work(p.about(150 * µs))
					case slow:
						c.slow(p, r)
					default:
						p.ordinary(r)
					}
				})
				r.Idle(r.Now + p.about(100*µs))
			}
			p.thread("worker-1", r)
			p.thread("other", other)
			got := explain(t, p.open(), Options{Slowest: 1})
			if a := got.Calls[0]; len(a.Causes) > 0 != c.caused || !c.caused && !strings.Contains(a.Text, "may be the machine's doing") {
				t.Errorf("got:\n%s", got.Text())
			}
		})
	}
}

// The slowest of many calls lies within what is natural in all but one of a hundred reels or so.
func TestTheLargestOfManyIsSeldomAnOutlier(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		name string
		draw func() float64
	}{
		{"exponential", func() float64 { return 100e3 * rng.ExpFloat64() }},
		{"exponential on top of what is fixed", func() float64 { return 50e3 + 100e3*rng.ExpFloat64() }},
		{"a sum of six exponentials", func() (v float64) {
			for range 6 {
				v += 20e3 * rng.ExpFloat64()
			}
			return v
		}},
		{"uniform", func() float64 { return 100e3 * (1 + rng.Float64()) }},
	} {
		const reels, calls = 400, 2000
		claims := 0
		for range reels {
			values := make([]float64, calls)
			largest := 0.0
			for i := range values {
				values[i] = c.draw()
				largest = max(largest, values[i])
			}
			if largest > newScatter(values, calls).most() {
				claims++
			}
		}
		if claims > reels*3/100 {
			t.Errorf("%s: in %d of %d reels", c.name, claims, reels)
		}
	}
}
