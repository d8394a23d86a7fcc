package why

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/reel"
)

// Most calls have nothing to read, so that all of them scatter by more than those that do.
func TestACallIsHeldAgainstThoseThatGoItsWay(t *testing.T) {
	p := newProgram(t, true)
	r := madereel.NewRun(baseTick)
	for i := range 1600 {
		r.Call(fnHandle, func() {
			r.Call(fnParse, func() { r.Work(p.about(10 * µs)) })
			switch {
			case i%400 == 201:
				r.Call(fnRead, func() { r.Wait(p.about(12*ms), reel.WakerKernel) })
			case p.rng.Float64() < 0.4:
				r.Call(fnRead, func() { r.Wait(p.about(200*µs), reel.WakerKernel) })
			}
		})
		r.Wait(p.about(100*µs), reel.WakerKernel)
	}
	p.thread("worker-1", r)
	got := explain(t, p.open(), Options{Slowest: 3})
	if c := first(t, got); !slices.Equal(c.Path, []string{"read"}) || c.State != "blocked" {
		t.Errorf("got:\n%s", got.Text())
	}
}

// What a call has more of is listed where nothing is claimed for it.
func TestWhatScattersIsListedWithoutAClaim(t *testing.T) {
	p := newProgram(t, true)
	r := madereel.NewRun(baseTick)
	for range 1500 {
		r.Call(fnHandle, func() {
			r.Call(fnParse, func() { r.Work(p.about(20 * µs)) })
			for n := -60 * math.Log(1-p.rng.Float64()); n > 0; n-- {
				r.Call(fnLookup, func() { r.Work(p.about(8 * µs)) })
			}
		})
		r.Wait(p.about(100*µs), reel.WakerKernel)
	}
	p.thread("worker-1", r)
	got := explain(t, p.open(), Options{Slowest: 2})
	for i := range got.Calls {
		a := &got.Calls[i]
		if len(a.Causes) > 0 || len(a.Natural) == 0 || !slices.Equal(a.Natural[0].Path, []string{"lookup"}) || a.Natural[0].Text == "" || !strings.Contains(got.Text(), "of it in lookup") {
			t.Errorf("got %+v:\n%s", a.Natural, got.Text())
		}
	}
}

// Whoever is waited for is told where that takes long by nature, too.
func TestWhoIsWaitedForIsToldWithoutAClaim(t *testing.T) {
	p := newProgram(t, true)
	a, b := madereel.NewRun(baseTick), madereel.NewRun(baseTick)
	for range 1500 {
		a.Call(fnHandle, func() {
			a.Call(fnParse, func() { a.Work(p.about(20 * µs)) })
			a.Call(fnAsk, func() {
				b.Idle(a.Now)
				b.Call(fnAnswer, func() { b.Work(uint64(float64(200*µs) * math.Exp(1.5*p.rng.NormFloat64()))) })
				a.WaitFor(b.Now-a.Now, 102, reel.Wait{})
			})
		})
		a.Wait(p.about(100*µs), reel.WakerKernel)
	}
	p.thread("worker-1", a)
	p.thread("worker-2", b)
	got := explain(t, p.open(), Options{Slowest: 2})
	for i := range got.Calls {
		if a := &got.Calls[i]; len(a.Causes) > 0 {
			t.Fatalf("got %+v", a.Causes)
		}
	}
	if text := got.Text(); !strings.Contains(text, "  until thread 102 worker-2 let it go on, which was in answer meanwhile") {
		t.Errorf("got:\n%s", text)
	}
}

// Whoever waits for the lock of the address space, in whatever call, keeps nobody waiting: it is who works on it.
func TestWaitsForTheAddressSpaceAreForOneLock(t *testing.T) {
	const mmap, munmap = 9, 11
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
					b.WaitFor(c.Now-b.Now, 103, reel.Wait{Syscall: munmap, Args: [3]uint64{0x7000}})
				})
				b.Work(10 * µs)
			})
			r.WaitFor(b.Now-r.Now, 102, reel.Wait{Syscall: mmap})
		})
	})
	p.thread("worker-1", a)
	p.thread("refresher", b)
	p.thread("authority", c)
	got := explain(t, p.open(), Options{Slowest: 2})
	if x := first(t, got); x.WaitsFor == nil || x.WaitsFor.TID != 103 || x.WaitsFor.Function != "answer" {
		t.Errorf("waits for %+v:\n%s", x.WaitsFor, got.Text())
	}
}
