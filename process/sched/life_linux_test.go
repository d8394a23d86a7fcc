package sched_test

import (
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/process/sched"
)

func TestThreadsThatLiveShortAreToldWhole(t *testing.T) {
	const threads = 2000
	each(t, func(t *testing.T, o sched.Options) {
		p := target(t, "lives", "2000", "8")
		w := watch(t, on(o, p), often)
		p.Go()
		p.WaitLine("done")
		got := w.end()
		got.wantOrder(t)
		got.wantWhole(t)
		whole := 0
		for tid, events := range got.events {
			if tid == p.Pid() || len(events) < 3 {
				continue
			}
			// Thread IDs may be given again: each life ends before the next begins.
			for len(events) > 0 {
				end := slices.IndexFunc(events, func(e sched.Event) bool { return e.Kind == sched.Ended })
				if end < 0 {
					t.Errorf("thread %d: no end", tid)
					break
				}
				if events[0].Kind == sched.Woken && slices.ContainsFunc(events[:end], func(e sched.Event) bool { return e.Kind == sched.In }) {
					whole++
				}
				events = events[end+1:]
			}
		}
		if whole < threads-int(got.stats.Odd) {
			t.Errorf("%d of %d threads are told from begin to end", whole, threads)
		}
	})
}

func TestThousandsThatWaitAllTheTimeAreBlocked(t *testing.T) {
	const threads = 3000
	each(t, func(t *testing.T, o sched.Options) {
		p := target(t, "crowd", "3000")
		began := time.Now()
		w := watch(t, on(o, p), often)
		t.Logf("%d threads: watched after %v", threads, time.Since(began))
		if w.Source() == sched.SourceSchedstat {
			t.Skipf("%v", w.Reasons()) // too few file descriptors
		}
		// All become known in the end, however slow the machine is.
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(often) {
			if w.Stats().Events >= threads {
				break
			}
		}
		got := w.end()
		blocked := 0
		for _, events := range got.events {
			if len(events) == 1 && events[0].Kind == sched.Blocked {
				blocked++
			}
		}
		if blocked < threads {
			t.Errorf("%d of %d threads that wait are known to", blocked, threads)
		}
	})
}

func TestANewProgramEndsTheThreadsOfTheOldOne(t *testing.T) {
	each(t, func(t *testing.T, o sched.Options) {
		p := target(t, "execs")
		w := watch(t, on(o, p), often)
		p.Go()
		p.WaitLine("done")
		got := w.end()
		got.wantOrder(t)
		ended := 0
		for tid, events := range got.events {
			if tid != p.Pid() && events[len(events)-1].Kind == sched.Ended {
				ended++
			} else if tid != p.Pid() {
				t.Errorf("thread %d of the old program hasn't ended: its last event is %v", tid, events[len(events)-1])
			}
		}
		if ended < 6 {
			t.Errorf("%d threads have ended", ended)
		}
		if events := got.events[p.Pid()]; len(events) == 0 || events[len(events)-1].Kind == sched.Ended {
			t.Error("the new program isn't told")
		}
	})
}

func TestNamesThatChangeAllTheTimeDoNoHarm(t *testing.T) {
	each(t, func(t *testing.T, o sched.Options) {
		p := target(t, "renames", "300")
		o.BufferBytes = 64 << 10
		w := watch(t, on(o, p), often)
		p.Go()
		p.WaitLine("done")
		got := w.end()
		got.wantOrder(t)
		t.Logf("%+v", got.stats)
	})
}

func TestChildrenAreToldIfAskedFor(t *testing.T) {
	each(t, func(t *testing.T, o sched.Options) {
		for _, children := range []bool{false, true} {
			p := target(t, "forks", "20")
			o := on(o, p)
			o.Children = children
			w := watch(t, o, often)
			p.Go()
			p.WaitLine("done")
			got := w.end()
			got.wantOrder(t)
			for _, c := range numbers(t, p, "child") {
				pid := int(c[0])
				threads := 0
				for tid, of := range got.pids {
					if of == pid && got.events[tid][len(got.events[tid])-1].Kind == sched.Ended {
						threads++
					}
				}
				if want := map[bool]int{false: 0, true: 2}[children]; threads != want {
					t.Errorf("children %v: %d threads of child %d are told, not %d", children, threads, pid, want)
				}
			}
			if w.Source() == sched.SourcePerf && len(got.events[p.Pid()]) == 0 {
				t.Error("the process itself isn't told")
			}
		}
	})
}

func TestPageFaultsAreToldWithTheirAddresses(t *testing.T) {
	for _, s := range sources {
		t.Run(s.name, func(t *testing.T) {
			o := s.opt
			o.NoPerf = false // page faults are perf's events with either source
			needSource(t, o, s.name)
			p := target(t, "faults", "1000")
			o = on(o, p)
			o.Faults = sched.AllFaults
			w := watch(t, o, often)
			if !w.Faults() {
				t.Fatalf("no page faults: %v", w.Reasons())
			}
			p.Go()
			p.WaitLine("done")
			got := w.end()
			got.wantOrder(t)
			row := numbers(t, p, "faulted")[0]
			tid, first, last := int(row[0]), row[1], row[2]
			pages := map[uint64]int{}
			for _, e := range got.events[tid] {
				if e.Kind == sched.MinorFault && e.Address >= first && e.Address <= last {
					pages[e.Address]++
				}
			}
			if len(pages) < 1000 {
				t.Errorf("faults of %d of 1000 pages are told; %+v", len(pages), got.stats)
			}
			for at, n := range pages {
				if n != 1 {
					t.Errorf("the fault at %#x is told %d times", at, n)
				}
			}
		})
	}
}

func TestWhatFindsNoRoomIsCountedAndTold(t *testing.T) {
	each(t, func(t *testing.T, o sched.Options) {
		p := target(t, "pingpong", "60000")
		o.BufferBytes = 64 << 10
		w := watch(t, on(o, p), time.Hour) // nobody drains
		p.Go()
		p.WaitLine("done")
		got := w.end()
		got.wantOrder(t)
		if got.stats.Lost == 0 {
			t.Fatalf("nothing was lost: %+v", got.stats)
		}
		// Also the first thread, which has waited all the time, as nobody can know now.
		if n := got.count(p.Pid(), sched.Lost); n == 0 {
			t.Error("the first thread doesn't know that something may be missing")
		}
		if n := got.stats.Events; n > 40_000 {
			t.Errorf("%d events came out of 64 KiB", n)
		}
	})
}

func TestWhoWokeWhomIsTold(t *testing.T) {
	o := sources[0].opt
	needSource(t, o, sched.SourceBPF)
	p := target(t, "wakes", "500")
	w := watch(t, on(o, p), often)
	p.Go()
	p.WaitLine("done")
	got := w.end()
	got.wantOrder(t)
	waker, sleeper := int(numbers(t, p, "waker")[0][0]), int(numbers(t, p, "sleeper")[0][0])
	byWaker, byKernel := 0, 0
	for _, e := range got.events[sleeper] {
		if e.Kind == sched.Woken && e.Waker == int32(waker) {
			byWaker++
		}
	}
	// The waker sleeps by a timer, whose interrupt ends that.
	timers := 0
	for _, e := range got.events[waker] {
		if e.Kind != sched.Woken {
			continue
		}
		timers++
		if e.Waker == sched.WakerKernel {
			byKernel++
		}
	}
	if byWaker < 400 {
		t.Errorf("thread %d was woken %d times by thread %d", sleeper, byWaker, waker)
	}
	if byKernel < timers*8/10 {
		t.Errorf("%d of %d wake-ups by a timer are the kernel's", byKernel, timers)
	}
}
