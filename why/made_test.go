package why

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/reel"
)

// Functions of the made-up program.
const (
	fnHandle = iota + 1
	fnParse
	fnLookup
	fnCompare
	fnRender
	fnLock
	fnRefresh
	fnRead
	fnRotate
	fnAsk
	fnAnswer
)

var functionNames = []string{"handle", "parse", "lookup", "compare", "render", "pthread_mutex_lock", "refresh", "read", "rotate", "ask", "answer"}

const (
	µs = 1000
	ms = 1000 * µs
)

// program is a made-up reel of threads.
type program struct {
	t       testing.TB
	w       *reel.Writer
	path    string
	rng     *rand.Rand
	states  bool
	threads int
}

const baseTick = 1_000_000_000

func newProgram(t testing.TB, states bool) *program {
	path := filepath.Join(t.TempDir(), "made.reel")
	w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(baseTick), PID: 100, Arch: "amd64"}, reel.Image{Path: "/bin/made"}, functionNames...)
	if states {
		if err := w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true, Faults: true}); err != nil {
			t.Fatal(err)
		}
	}
	return &program{t: t, w: w, path: path, rng: rand.New(rand.NewPCG(1, 2)), states: states}
}

func (p *program) thread(name string, r *madereel.Run) *reel.ThreadWriter {
	p.threads++
	return r.Write(p.t, p.w, reel.Thread{TID: 100 + p.threads, Process: 100, Name: name}, p.states)
}

func (p *program) open() *reel.File {
	p.t.Helper()
	if err := p.w.Close(); err != nil {
		p.t.Fatal(err)
	}
	f, err := reel.Open(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { f.Close() })
	return f
}

// about is a time that scatters by nature.
func (p *program) about(ns float64) uint64 { return uint64(ns * (0.8 + 0.4*p.rng.Float64())) }

// ordinary is what an ordinary request does below handle.
func (p *program) ordinary(r *madereel.Run) {
	r.Call(fnParse, func() { r.Work(p.about(20 * µs)) })
	for range 3 {
		r.Call(fnLookup, func() {
			r.Work(p.about(2 * µs))
			for range 4 {
				r.Call(fnCompare, func() { r.Work(p.about(5 * µs)) })
			}
		})
	}
	r.Call(fnRender, func() { r.Work(p.about(50 * µs)) })
}

// requests makes n calls of handle, of which every slowEvery-th does something else.
func (p *program) requests(r *madereel.Run, n, slowEvery int, slow func(r *madereel.Run)) {
	for i := range n {
		r.Call(fnHandle, func() {
			if slowEvery > 0 && i%slowEvery == slowEvery/2 {
				slow(r)
				return
			}
			p.ordinary(r)
		})
		r.Wait(p.about(100*µs), reel.WakerKernel)
	}
}

func isHandle(name string) bool { return name == "handle" }

func explain(t testing.TB, f *reel.File, o Options) *Report {
	t.Helper()
	if o.Match == nil && o.Call == nil {
		o.Match = isHandle
	}
	r, err := Explain(context.Background(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, r)
	return r
}

func checkSums(t testing.TB, r *Report) {
	t.Helper()
	for i := range r.Calls {
		a := &r.Calls[i]
		if a.ExcessNS != int64(a.DurationNS)-int64(a.PeerP50NS) || a.ByKind.Sum() != a.ExcessNS || a.ByState.Sum() != a.ExcessNS {
			t.Errorf("%s: of %d ns more than usual %+v are %d and %+v are %d", a.ID, a.ExcessNS, a.ByKind, a.ByKind.Sum(), a.ByState, a.ByState.Sum())
		}
	}
}
