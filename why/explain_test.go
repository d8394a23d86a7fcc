package why

import (
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/reel"
)

// first is the first cause of the slowest call.
func first(t *testing.T, r *Report) *Cause {
	t.Helper()
	if len(r.Calls) == 0 || len(r.Calls[0].Causes) == 0 {
		t.Fatalf("no cause is given:\n%s", r.Text())
	}
	return &r.Calls[0].Causes[0]
}

func TestPlantedCausesAreNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		slow  func(p *program, r *madereel.Run)
		path  []string
		kind  Kind
		state string
	}{
		{"more calls", func(p *program, r *madereel.Run) {
			p.ordinary(r)
			r.Call(fnLookup, func() {
				for range 2000 {
					r.Call(fnCompare, func() { r.Work(p.about(5 * µs)) })
				}
			})
		}, []string{"lookup", "compare"}, MoreCalls, "cpu"},
		{"a slower call", func(p *program, r *madereel.Run) {
			p.ordinary(r)
			r.Now -= 40 * µs // of render, which works longer
			r.Events = r.Events[:len(r.Events)-1]
			r.Work(9 * ms)
			r.Events = append(r.Events, reel.Exit(r.Now, r.Events[len(r.Events)-1].SP, fnRender))
		}, []string{"render"}, SlowerCalls, "cpu"},
		{"a path of its own", func(p *program, r *madereel.Run) {
			p.ordinary(r)
			r.Call(fnRotate, func() { r.Call(fnRead, func() { r.Work(9 * ms) }) })
		}, []string{"rotate", "read"}, NewPath, "cpu"},
		{"its own time", func(p *program, r *madereel.Run) {
			p.ordinary(r)
			r.Work(9 * ms)
		}, []string{}, Self, "cpu"},
		{"preempted", func(p *program, r *madereel.Run) {
			p.ordinary(r)
			r.Preempted(20 * ms)
		}, []string{}, Self, "ready"},
		{"a wait", func(p *program, r *madereel.Run) {
			r.Call(fnParse, func() { r.Wait(9*ms, reel.WakerKernel) })
			p.ordinary(r)
		}, []string{"parse"}, SlowerCalls, "blocked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProgram(t, true)
			r := madereel.NewRun(baseTick)
			p.requests(r, 1200, 400, func(r *madereel.Run) { c.slow(p, r) })
			p.thread("worker-1", r)
			got := explain(t, p.open(), Options{Slowest: 3})
			for i := range got.Calls {
				if len(got.Calls[i].Causes) == 0 {
					t.Fatalf("no cause is given:\n%s", got.Text())
				}
				x := &got.Calls[i].Causes[0]
				if !slices.Equal(x.Path, c.path) || x.Kind != c.kind || x.State != c.state || x.Share < 0.8 {
					t.Errorf("got %v, %v, %v; want %v, %v, %v\n%s", x.Path, x.Kind, x.State, c.path, c.kind, c.state, got.Text())
				}
			}
		})
	}
}

func TestOrdinaryScatterIsNoCause(t *testing.T) {
	p := newProgram(t, true)
	r := madereel.NewRun(baseTick)
	p.requests(r, 3000, 0, nil)
	p.thread("worker-1", r)
	for _, a := range explain(t, p.open(), Options{Slowest: 5}).Calls {
		if len(a.Causes) > 0 || !strings.Contains(a.Text, "Nothing stands out") {
			t.Errorf("of scatter is said:\n%s", a.Text)
		}
	}
}

func TestHolderOfALockIsNamed(t *testing.T) {
	p := newProgram(t, true)
	worker, holder := madereel.NewRun(baseTick), madereel.NewRun(baseTick)
	lock := reel.Wait{Syscall: 202, Args: [3]uint64{0x5000}}
	p.requests(worker, 1200, 400, func(r *madereel.Run) {
		p.ordinary(r)
		r.Call(fnLock, func() {
			holder.Idle(r.Now - 1*ms)
			holder.Call(fnRefresh, func() {
				for range 30 {
					holder.Call(fnParse, func() { holder.Work(ms) })
				}
			})
			r.WaitFor(holder.Now-r.Now, 102, lock)
		})
	})
	p.thread("worker-1", worker)
	p.thread("refresher", holder)
	got := explain(t, p.open(), Options{Slowest: 3})
	c := first(t, got)
	if c.State != "blocked" || c.WaitsFor == nil || c.WaitsFor.TID != 102 || c.WaitsFor.Function != "refresh" || !slices.Contains(c.WaitsFor.Path, "parse") {
		t.Errorf("waits for %+v:\n%s", c.WaitsFor, got.Text())
	}
	if !strings.Contains(got.Text(), "0x5000") {
		t.Errorf("the lock isn't named:\n%s", got.Text())
	}
}

// A waits for B, which waits for C.
func TestChainOfWaitsIsFollowed(t *testing.T) {
	p := newProgram(t, true)
	a, b, c := madereel.NewRun(baseTick), madereel.NewRun(baseTick), madereel.NewRun(baseTick)
	p.requests(a, 900, 300, func(r *madereel.Run) {
		p.ordinary(r)
		r.Call(fnLock, func() {
			b.Idle(r.Now - ms)
			b.Call(fnRefresh, func() {
				b.Work(10 * µs)
				b.Call(fnAsk, func() {
					c.Idle(b.Now)
					c.Call(fnAnswer, func() { c.Work(20 * ms) })
					b.Wait(c.Now-b.Now, 103)
				})
				b.Work(10 * µs)
			})
			r.Wait(b.Now-r.Now, 102)
		})
	})
	p.thread("worker-1", a)
	p.thread("refresher", b)
	p.thread("authority", c)
	got := explain(t, p.open(), Options{Slowest: 2})
	x := first(t, got)
	if len(x.Chain) != 2 || x.Chain[0].TID != 102 || !slices.Contains(x.Chain[0].Path, "refresh") || x.Chain[1].TID != 103 || x.Chain[1].Function != "answer" || x.Chain[1].State != "cpu" {
		t.Errorf("the chain is %+v:\n%s", x.Chain, got.Text())
	}
}

func TestWithoutStatesTimesAreWallTime(t *testing.T) {
	p := newProgram(t, false)
	r := madereel.NewRun(baseTick)
	p.requests(r, 1200, 400, func(r *madereel.Run) {
		p.ordinary(r)
		r.Call(fnRotate, func() { r.Work(9 * ms) })
	})
	p.thread("worker-1", r)
	got := explain(t, p.open(), Options{})
	if c := first(t, got); c.State != "unknown" || !slices.Equal(c.Path, []string{"rotate"}) || len(got.Notes) == 0 || !strings.Contains(got.Notes[0], "wall time") {
		t.Errorf("got:\n%s", got.Text())
	}
}

func TestFewPeersAreTold(t *testing.T) {
	for n := 1; n < 6; n++ {
		p := newProgram(t, true)
		r := madereel.NewRun(baseTick)
		p.requests(r, n, 2*n, func(*madereel.Run) {})
		p.thread("worker-1", r)
		a := explain(t, p.open(), Options{}).Calls[0]
		if n <= fewPeers && !strings.Contains(a.Text, "only") && !strings.Contains(a.Text, "no other call") {
			t.Errorf("of %d calls: %s", n, a.Text)
		}
	}
}

func TestACallIsFoundByItsID(t *testing.T) {
	p := newProgram(t, true)
	r := madereel.NewRun(baseTick)
	p.requests(r, 300, 100, func(r *madereel.Run) { r.Call(fnRotate, func() { r.Work(9 * ms) }) })
	p.thread("worker-1", r)
	f := p.open()
	a := explain(t, f, Options{Slowest: 2}).Calls[1]
	id, err := ParseCallID(a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := explain(t, f, Options{Call: &id}).Calls[0]; got.StartNS != a.StartNS || got.DurationNS != a.DurationNS || len(got.Causes) != len(a.Causes) {
		t.Errorf("got %+v, want %+v", got, a)
	}
}

func TestCallIDs(t *testing.T) {
	for _, text := range []string{"", "1:2", "1:2:3:4", "0:2:3", "1:2:0", "x:2:3", "1:-2:3", "1:2:4294967296", "1:2:1073741825"} {
		if id, err := ParseCallID(text); err == nil {
			t.Errorf("%q is %v", text, id)
		}
	}
	id := CallID{Thread: 7, Start: 1 << 63, Function: 9}
	if got, err := ParseCallID(id.String()); err != nil || got != id {
		t.Errorf("%v is %v, %v", id, got, err)
	}
}
