package timeline

import (
	"cmp"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// model is all calls of a reel as package reel pairs them, by lane and row.
type model struct {
	clock clock
	lanes []*modelLane
}

type modelLane struct {
	thread    uint32
	goroutine uint64
	stacks    [][][]reel.Call // by stack and depth, times from the start
	rows      [][]reel.Call
	calls     uint64
}

func (m *modelLane) add(c reel.Call, first uint64) {
	c.Start -= min(c.Start, first)
	c.End -= min(c.End, first)
	for len(m.stacks) <= c.Stack {
		m.stacks = append(m.stacks, nil)
	}
	rows := &m.stacks[c.Stack]
	for len(*rows) <= c.Depth {
		*rows = append(*rows, nil)
	}
	(*rows)[c.Depth] = append((*rows)[c.Depth], c)
}

// newModel reads a reel of threads.
func newModel(f *reel.File) *model {
	m := &model{clock: newClock(f)}
	for _, th := range f.Threads() {
		l := &modelLane{thread: th.Key}
		var p, learning reel.Pairer
		pair := func(p *reel.Pairer) {
			p.SetTime(f.FirstTick())
			f.ReadThread(th.Key, func(events []reel.Event, lost bool) bool {
				if lost {
					p.Lost()
				}
				p.Push(events)
				return true
			})
		}
		pair(&learning)
		p.SetTops(learning.Tops())
		p.OnCall = func(c *reel.Call) { l.add(*c, m.clock.first) }
		pair(&p)
		p.Finish(f.EndOf(&th))
		l.calls = p.Calls
		l.finish()
		m.lanes = append(m.lanes, l)
	}
	return m
}

func (m *modelLane) finish() {
	for _, rows := range m.stacks {
		m.rows = append(m.rows, rows...)
	}
	for _, row := range m.rows {
		slices.SortStableFunc(row, func(a, b reel.Call) int { return cmp.Compare(a.Start, b.Start) })
	}
}

// bars merges a row as the documentation of View says.
func (m *model) bars(row []reel.Call, grain uint) []bar {
	var out []bar
	open := false
	for _, c := range row {
		b := bar{start: c.Start, end: c.End, busy: c.Duration(), fn: c.Func, calls: 1, flags: c.Flags}
		if c.Duration() >= 1<<grain {
			out, open = append(out, b), false
			continue
		}
		if n := len(out); open && out[n-1].start>>(grain+4) == b.start>>(grain+4) && b.start-out[n-1].end < 1<<grain {
			out[n-1].end = b.end
			out[n-1].busy += b.busy
			out[n-1].calls++
			out[n-1].flags |= b.flags
			continue
		}
		out, open = append(out, b), true
	}
	return out
}

// program makes the events of a made-up thread.
type program struct {
	rng    *rand.Rand
	now    uint64
	out    []reel.Event
	cost   int
	stacks bool
	wild   bool // events that don't fit
}

func (p *program) tick() uint64 {
	p.now += uint64(p.rng.IntN(p.cost))
	if p.rng.IntN(200) == 0 {
		p.now += uint64(p.rng.IntN(p.cost * 300))
	}
	return p.now
}

func (p *program) call(sp uint32, depth, deepest int) {
	fn := uint32(1 + p.rng.IntN(40))
	p.out = append(p.out, reel.Entry(p.tick(), sp, fn))
	if depth < deepest {
		for range p.rng.IntN(4) {
			p.call(sp-uint32(16+16*p.rng.IntN(5)), depth+1, deepest)
		}
	}
	if p.stacks && p.rng.IntN(50) == 0 {
		p.call(sp+0x10000000, 0, 3)
	}
	if p.wild && p.rng.IntN(30) == 0 {
		return // no exit
	}
	p.out = append(p.out, reel.Exit(p.tick(), sp, fn))
}

// run makes at least n events of calls within some outer ones.
func (p *program) run(n, outer, deepest int) []reel.Event {
	sp := uint32(0x7fff0000)
	for i := range outer {
		p.out = append(p.out, reel.Entry(p.tick(), sp, uint32(41+i)))
		sp -= 64
	}
	for len(p.out) < n {
		p.call(sp, outer, outer+deepest)
	}
	for i := outer - 1; i >= outer/2; i-- {
		sp += 64
		p.out = append(p.out, reel.Exit(p.tick(), sp, uint32(41+i)))
	}
	return p.out
}

// testReel is a reel that is being written, piece by piece.
type testReel struct {
	name   string
	w      *reel.Writer
	rng    *rand.Rand
	tws    []*reel.ThreadWriter
	events [][]reel.Event
	at     []int
}

func newTestReel(t testing.TB, seed uint64, rate uint64, mode reel.ClockMode, threads ...[]reel.Event) *testReel {
	t.Helper()
	return newReelOf(t, seed, reel.Header{Clock: reel.Clock{Mode: mode, TicksPerSecond: rate, BaseTick: 1000}}, threads...)
}

func newReelOf(t testing.TB, seed uint64, h reel.Header, threads ...[]reel.Event) *testReel {
	t.Helper()
	r := &testReel{name: filepath.Join(t.TempDir(), "test.reel"), rng: rand.New(rand.NewPCG(seed, 7)), events: threads, at: make([]int, len(threads))}
	var err error
	r.w, err = reel.Create(r.name, h, reel.Options{})
	realtest.Must(t, err)
	functions := make([]reel.Function, 80)
	functions[79].Name = "runtime.goexit1"
	_, err = r.w.AddFunctions(functions)
	realtest.Must(t, err)
	for i := range threads {
		tw, err := r.w.Thread(reel.Thread{TID: 100 + i, Name: "thread"})
		realtest.Must(t, err)
		r.tws = append(r.tws, tw)
	}
	return r
}

// write appends up to n more events of each thread in chunks of random sizes, and
// says whether there are more.
func (r *testReel) write(t testing.TB, n int) (more bool) {
	t.Helper()
	for i, tw := range r.tws {
		end := min(len(r.events[i]), r.at[i]+n)
		for r.at[i] < end {
			k := min(end-r.at[i], 1+r.rng.IntN(300))
			realtest.Must(t, tw.Append(r.events[i][r.at[i]:r.at[i]+k]))
			r.at[i] += k
			if r.rng.IntN(6) == 0 {
				realtest.Must(t, tw.Dropped(3, 2, r.events[i][r.at[i]-1].Time))
			}
			realtest.Must(t, tw.Flush())
		}
		more = more || r.at[i] < len(r.events[i])
	}
	return more
}

// finish writes all events, as the clock has them, and ends the reel.
func (r *testReel) finish(t testing.TB, mode reel.ClockMode) {
	t.Helper()
	if mode == reel.ClockExit {
		for _, events := range r.events {
			for i := range events {
				if !events[i].IsExit() {
					events[i].Time = 0
				}
			}
		}
	}
	for r.write(t, 1000) {
	}
	realtest.Must(t, r.w.Close())
}

// someThreads are events of threads of different kinds.
func someThreads(seed uint64, n int) [][]reel.Event {
	rng := rand.New(rand.NewPCG(seed, 1))
	var list [][]reel.Event
	for i := range 4 {
		p := program{rng: rng, now: 1000 + uint64(rng.IntN(5000)), cost: 2 + rng.IntN(60), stacks: i == 1, wild: i == 2}
		list = append(list, p.run(n/(1+i), rng.IntN(6), 1+rng.IntN(8)))
	}
	return append(list, nil, madereel.Coroutines(rng, n/2, 12, 16<<10, 1500))
}
