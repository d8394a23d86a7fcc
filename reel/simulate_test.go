package reel

import (
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"
)

// program is a made-up program: functions with fixed call sites, some of them
// conditional, some in loops, callees chosen by a Zipf law. Its runs look like
// real ones to the predictor: mostly regular, never quite.
type program struct {
	rng   *rand.Rand
	funcs []simFunc
	out   []Event
	limit int
	now   uint64
}

type simFunc struct {
	frame uint32
	sites []simSite
}

type simSite struct {
	callee  int
	percent int // how often the call is made
	loop    int // most iterations
	cost    uint64
}

func newProgram(seed uint64, functions int) *program {
	rng := rand.New(rand.NewPCG(seed, 1))
	zipf := rand.NewZipf(rng, 1.2, 4, uint64(functions-1))
	p := &program{rng: rng, now: 1 << 50}
	for i := range functions {
		f := simFunc{frame: uint32(16 * (1 + rng.IntN(12)))}
		if i%4 != 0 {
			for range rng.IntN(4) {
				s := simSite{callee: functions - 1 - int(zipf.Uint64()), percent: 100, loop: 1, cost: uint64(24 + rng.IntN(120))}
				switch rng.IntN(6) {
				case 0:
					s.percent = 10 + rng.IntN(80)
				case 1:
					s.loop = 1 + rng.IntN(8)
				}
				f.sites = append(f.sites, s)
			}
		}
		p.funcs = append(p.funcs, f)
	}
	return p
}

func (p *program) run(n int) []Event {
	p.limit = n
	p.out = make([]Event, 0, n+128)
	for len(p.out) < n {
		p.call(p.rng.IntN(len(p.funcs)), 0x7ffc1230, 0)
	}
	return p.out[:n]
}

func (p *program) tick(cost uint64) uint64 {
	// The counter advances in steps of some 24.5 ticks on one common CPU.
	p.now += cost + uint64(p.rng.IntN(3))*24
	if p.rng.IntN(5000) == 0 {
		p.now += uint64(p.rng.IntN(1 << 20))
	}
	return p.now
}

func (p *program) call(f int, sp uint32, depth int) {
	id := uint32(f + 1)
	p.out = append(p.out, Entry(p.tick(25), sp, id))
	if depth < 40 && len(p.out) < p.limit {
		for _, s := range p.funcs[f].sites {
			if s.percent < 100 && p.rng.IntN(100) >= s.percent {
				continue
			}
			for range 1 + p.rng.IntN(s.loop) {
				if len(p.out) >= p.limit {
					break
				}
				p.tick(s.cost)
				p.call(s.callee, sp-p.funcs[f].frame-8, depth+1)
			}
		}
	}
	p.out = append(p.out, Exit(p.tick(30), sp, id))
}

// randomEvents have no structure whatever.
func randomEvents(rng *rand.Rand, n int) []Event {
	out := make([]Event, n)
	for i := range out {
		out[i] = Event{Time: rng.Uint64() >> rng.IntN(64), SP: rng.Uint32() >> rng.IntN(32), Word: rng.Uint32() >> rng.IntN(32)}
		if rng.IntN(3) == 0 {
			out[i].SP = 0x1000 + uint32(rng.IntN(4))*16
			out[i].Word = uint32(rng.IntN(6))
		}
	}
	return out
}

// benchEvents are the events to measure with: the made-up program's, or a dump
// of real ones (16 bytes each, as in memory) named by CALLREEL_EVENTS.
func benchEvents(tb testing.TB, n int) []Event {
	name := os.Getenv("CALLREEL_EVENTS")
	if name == "" {
		return newProgram(1, 500).run(n)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	events := unsafe.Slice((*Event)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/EventSize)
	return events[:min(n, len(events))]
}
