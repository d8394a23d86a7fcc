package why

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
)

// What recursion has folded is named by the new path that it came by, and a loop that tries again by itself, not by what is new in it.
func TestPlacesOfRecursionAndOfLoops(t *testing.T) {
	for _, c := range []struct {
		name string
		slow func(p *program, r *madereel.Run)
		path []string
		kind Kind
	}{
		{"a new path recurses", func(p *program, r *madereel.Run) {
			r.Call(fnLookup, func() {
				r.Call(fnRotate, func() {
					r.Call(fnRead, func() {
						for range 100 {
							r.Call(fnLookup, func() { r.Work(p.about(100 * µs)) })
						}
					})
				})
			})
		}, []string{"lookup", "rotate", "read"}, NewPath},
		{"a known path recurses", func(p *program, r *madereel.Run) {
			r.Call(fnLookup, func() {
				for range 100 {
					r.Call(fnCompare, func() { r.Call(fnLookup, func() { r.Work(p.about(100 * µs)) }) })
				}
			})
		}, []string{"lookup"}, Self},
		{"a loop tries again", func(p *program, r *madereel.Run) {
			for range 1000 {
				r.Call(fnLookup, func() { r.Call(fnRotate, func() { r.Work(p.about(10 * µs)) }) })
			}
		}, []string{"lookup"}, MoreCalls},
		{"a new path once in many rounds", func(p *program, r *madereel.Run) {
			for i := range 60 {
				r.Call(fnLookup, func() {
					r.Work(p.about(10 * µs))
					if i == 20 {
						r.Call(fnRotate, func() { r.Work(9 * ms) })
					}
				})
			}
		}, []string{"lookup", "rotate"}, NewPath},
		{"a new path in as many rounds as always", func(p *program, r *madereel.Run) {
			for range 3 {
				r.Call(fnLookup, func() { r.Call(fnRotate, func() { r.Work(p.about(3 * ms)) }) })
			}
		}, []string{"lookup", "rotate"}, NewPath},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProgram(t, true)
			r := madereel.NewRun(baseTick)
			p.requests(r, 1200, 400, func(r *madereel.Run) {
				p.ordinary(r)
				c.slow(p, r)
			})
			p.thread("worker-1", r)
			got := explain(t, p.open(), Options{})
			if x := first(t, got); !slices.Equal(x.Path, c.path) || x.Kind != c.kind {
				t.Errorf("got %v, %v; want %v, %v\n%s", x.Path, x.Kind, c.path, c.kind, got.Text())
			}
		})
	}
}

// That few slow calls were made by the same thread says nothing where fast ones are made by two alike.
func TestThreadsThatAreAlikeAreNotNamed(t *testing.T) {
	p := newProgram(t, true)
	for k, name := range []string{"worker-1", "worker-2"} {
		r := madereel.NewRun(baseTick)
		p.requests(r, 1200, 300*k, func(r *madereel.Run) {
			p.ordinary(r)
			r.Call(fnRotate, func() { r.Work(9 * ms) })
		})
		p.thread(name, r)
	}
	got := explain(t, p.open(), Options{Slowest: 3})
	if c := first(t, got); len(c.DistinguishedBy) > 0 {
		t.Errorf("got:\n%s", got.Text())
	}
}

// Of a heavy tail the largest is far from all others by nature; a step in it isn't.
func TestHeavyTails(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	pareto := func() float64 { return 65e3 / math.Sqrt(1-rng.Float64()) }
	for _, c := range []struct {
		name        string
		draw        func(i int) float64
		least, most int // claims in a hundred reels
	}{
		{"Pareto", func(int) float64 { return pareto() }, 0, 8},
		{"Pareto on top of other work", func(int) float64 { return 50e3*(1+0.2*rng.ExpFloat64()) + pareto() }, 0, 8},
		{"Pareto, and a cause", func(i int) float64 {
			if i%200 == 0 {
				return 30e6 * (1 + rng.Float64())
			}
			return pareto()
		}, 95, 100},
		{"exponential, and a cause", func(i int) float64 {
			if i%200 == 0 {
				return 3e6 * (1 + rng.Float64())
			}
			return 50e3 + 50e3*rng.ExpFloat64()
		}, 100, 100},
	} {
		const calls = 2000
		claims := 0
		for range 100 {
			values := make([]float64, calls)
			for i := range values {
				values[i] = c.draw(i)
			}
			s := newScatter(values, calls)
			largest := slices.Clone(s.sorted)
			slices.Reverse(largest)
			slope, heavy := s.heavy()
			if largest[0] > s.most() && (!heavy || s.step(largest[0], slope, largest[:64])) {
				claims++
			}
		}
		if claims < c.least || claims > c.most {
			t.Errorf("%s: %d claims in 100 reels", c.name, claims)
		}
	}
}

func TestAnswersWithoutPeers(t *testing.T) {
	p := newProgram(t, true)
	r := madereel.NewRun(baseTick)
	p.requests(r, 2, 0, nil)
	p.thread("worker-1", r)
	text := explain(t, p.open(), Options{Slowest: 2}).Text()
	if !strings.Contains(text, "there is no other call") || strings.Contains(text, "Nor does it") {
		t.Errorf("got:\n%s", text)
	}
}
