package why

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/reel"
)

// Functions of the made-up Go program.
const (
	goHandle = iota + 1
	goAwait
	goPark
	goReady
	goWork
	goTidy
	goSchedule
	goRead
)

var goNames = []string{"main.handle", "main.await", "runtime.gopark", "runtime.ready", "main.work", "main.tidy", "runtime.schedule", "main.read"}

// goThread is what goroutines do on a thread.
type goThread struct {
	events []reel.Event
	sched  []reel.SchedEvent
}

func (g *goThread) on(at, goroutine uint64) { g.events = append(g.events, reel.Switch(at, goroutine)) }
func (g *goThread) enter(at uint64, depth, fn uint32) {
	g.events = append(g.events, reel.Entry(at, 0x70000000-64*depth, fn))
}
func (g *goThread) leave(at uint64, depth, fn uint32) {
	g.events = append(g.events, reel.Exit(at, 0x70000000-64*depth, fn))
}

// call is a call without others in it.
func (g *goThread) call(from, to uint64, depth, fn uint32) {
	g.enter(from, depth, fn)
	g.leave(to, depth, fn)
}

// Goroutine 1 handles requests on thread 101; at the end it waits for 9 ms. Meanwhile goroutine 2 works on 102. Goroutine 3, which tidies
// up there, lets somebody else go on just before 1 does.
func TestWhoLetAGoroutineGoOn(t *testing.T) {
	for _, c := range []struct {
		name string
		// end is how the wait ends at a tick, by what happens on the two threads.
		end  func(a, b *goThread, at uint64)
		wait uint32
		want uint64 // goroutine
		text string
	}{
		{"one whose thread it goes on on", func(_, b *goThread, at uint64) {
			b.on(at-100, 0)
			b.call(at-90, at-80, 0, goReady)
			b.on(at, 1)
		}, goPark, 2, "main.work"},
		{"one that lets two go on, of whom the other comes first", func(a, b *goThread, at uint64) {
			b.on(at-100, 0)
			b.call(at-90, at-80, 0, goReady)
			b.call(at-70, at-60, 0, goReady)
			b.on(at-20, 5)
			b.call(at-10, at-5, 0, goTidy)
			a.on(at, 1)
		}, goPark, 2, "main.work"},
		{"a timer", func(a, _ *goThread, at uint64) {
			a.on(at-100, 0)
			a.call(at-90, at-80, 0, goReady)
			a.on(at, 1)
		}, goPark, 0, "until a timer of Go's runtime went off"},
		{"one that wrote to a pipe", func(a, _ *goThread, at uint64) { a.on(at, 1) }, goRead, 2, "main.work"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "go.reel")
			w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(baseTick), Goroutines: true, PID: 100, Arch: "amd64"}, reel.Image{Path: "/bin/made"}, goNames...)
			if err := w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true}); err != nil {
				t.Fatal(err)
			}
			a, b, tidy := &goThread{}, &goThread{}, &goThread{}
			now := uint64(baseTick)
			a.sched = append(a.sched, reel.SchedEvent{Time: now, Kind: reel.SchedIn})
			b.sched, tidy.sched = a.sched, a.sched
			a.on(now, 1)
			for range 200 {
				a.enter(now, 0, goHandle)
				a.call(now+1000, now+50_000, 1, goAwait)
				a.leave(now+100_000, 0, goHandle)
				now += 200_000
			}
			from, to := now+20_000, now+9_020_000
			a.enter(now, 0, goHandle)
			a.enter(now+10_000, 1, goAwait)
			a.enter(from, 2, c.wait)
			b.on(now, 2)
			b.enter(now+15_000, 0, goWork)
			// Another goroutine lets somebody go on, who comes next on its own thread.
			tidy.on(to-60_000, 3)
			tidy.enter(to-60_000, 0, goTidy)
			tidy.on(to-50, 0)
			tidy.call(to-50, to-40, 0, goReady)
			tidy.on(to-30, 4)
			tidy.call(to-30, to-20, 0, goTidy)
			if c.wait == goRead {
				a.sched = append(a.sched, reel.SchedEvent{Time: from, Kind: reel.SchedBlocked}, reel.SchedEvent{Time: to, Kind: reel.SchedWoken, Waker: 102}, reel.SchedEvent{Time: to, Kind: reel.SchedIn})
			} else {
				a.on(from+1000, 0)
				a.enter(from+1000, 0, goSchedule)
			}
			c.end(a, b, to)
			on := a
			if b.events[len(b.events)-1] == reel.Switch(to, 1) {
				on = b // it went on there
			}
			on.leave(to+10, 2, c.wait)
			on.leave(to+20, 1, goAwait)
			on.leave(to+30, 0, goHandle)
			for k, g := range []*goThread{a, b, tidy} {
				tw := madereel.Thread(t, w, reel.Thread{TID: 101 + k, Process: 100, Name: "made"}, g.events...)
				if err := tw.Sched(g.sched); err != nil {
					t.Fatal(err)
				}
			}
			w.SchedKnown(to + 100_000)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := reel.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got := explain(t, f, Options{Match: func(name string) bool { return name == "main.handle" }})
			x := first(t, got)
			if by := x.WaitsFor; (by == nil) != (c.want == 0) || by != nil && by.Goroutine != c.want || x.State != "blocked" || !strings.Contains(got.Text(), c.text) {
				t.Errorf("got %+v:\n%s", by, got.Text())
			}
		})
	}
}
