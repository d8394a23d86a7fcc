package sched_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/internal/ticks"
	"github.com/callreel/callreel/process/sched"
)

// heard is all that a watcher has given.
type heard struct {
	events  map[int][]sched.Event // by thread
	pids    map[int]int
	sums    map[int]sched.Sums // of threads, when it was closed
	summed  map[int]uint64     // ticks then
	stats   sched.Stats
	reasons []error
}

// sources are those that tell of switches.
var sources = []struct {
	name string
	opt  sched.Options
}{
	{sched.SourceBPF, sched.Options{NoPerf: true}},
	{sched.SourcePerf, sched.Options{NoBPF: true}},
}

// each runs a test with each source that this machine permits.
func each(t *testing.T, fn func(t *testing.T, o sched.Options)) {
	for _, s := range sources {
		t.Run(s.name, func(t *testing.T) {
			realtest.NeedThat(t, "scheduling by "+s.name, can(s.opt, s.name))
			fn(t, s.opt)
		})
	}
}

// can says why a source isn't available here.
func can(o sched.Options, source string) error {
	w, err := sched.Open(context.Background(), o)
	if err != nil {
		return err
	}
	defer w.Close(func(int, int, sched.Event) {})
	if w.Source() != source {
		return errors.Join(w.Reasons()...)
	}
	return nil
}

// watcher drains in the background, as a recorder does.
type watcher struct {
	*sched.Watcher
	t    *testing.T
	got  heard
	stop chan struct{}
	done chan struct{}
}

func watch(t *testing.T, o sched.Options, every time.Duration) *watcher {
	t.Helper()
	w, err := sched.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	x := &watcher{Watcher: w, t: t, stop: make(chan struct{}), done: make(chan struct{})}
	x.got = heard{events: map[int][]sched.Event{}, pids: map[int]int{}, sums: map[int]sched.Sums{}, summed: map[int]uint64{}, reasons: w.Reasons()}
	go func() {
		defer close(x.done)
		for {
			select {
			case <-x.stop:
				return
			case <-time.After(every):
				if err := w.Drain(x.got.take); err != nil {
					t.Errorf("drain: %v", err)
					return
				}
			}
		}
	}()
	t.Cleanup(func() { x.end() })
	return x
}

func (h *heard) take(tid, pid int, e sched.Event) {
	h.events[tid] = append(h.events[tid], e)
	h.pids[tid] = pid
}

// end closes the watcher and returns what was heard.
func (w *watcher) end() *heard {
	w.t.Helper()
	select {
	case <-w.stop:
		return &w.got
	default:
	}
	close(w.stop)
	<-w.done
	for tid := range w.Threads() {
		at := ticks.Now()
		if s, ok := w.Sums(tid); ok {
			w.got.sums[tid], w.got.summed[tid] = s, at
		}
	}
	if err := w.Close(w.got.take); err != nil {
		w.t.Errorf("close: %v", err)
	}
	w.got.stats = w.Stats()
	return &w.got
}

// spans adds up what a thread did up to a moment, in ticks. Pending is how long it has been ready by then: the kernel counts
// that only when it is over, or the thread goes to another processor.
type spans struct{ running, ready, blocked, unknown, pending uint64 }

func (h *heard) spans(tid int, to uint64) spans {
	var s spans
	state, last := &s.unknown, uint64(0)
	for _, e := range h.events[tid] {
		if e.Time > to {
			break
		}
		if e.Kind == sched.Lost {
			state = &s.unknown // since the one before
		}
		if last > 0 {
			*state += e.Time - last
		}
		last = e.Time
		switch e.Kind {
		case sched.In:
			state = &s.running
		case sched.Preempted, sched.Woken:
			state = &s.ready
		case sched.Blocked, sched.Uninterruptible:
			state = &s.blocked
		case sched.Lost:
			state = &s.unknown
		case sched.Ended:
			state = new(uint64)
		}
	}
	if state == &s.ready {
		s.pending = to - last
	} else if last > 0 {
		*state += to - last
	}
	return s
}

// wantOrder fails unless each thread's events fit one another and are in order of time.
func (h *heard) wantOrder(t *testing.T) {
	t.Helper()
	for tid, events := range h.events {
		var last sched.Kind
		for i, e := range events {
			if i > 0 && e.Time < events[i-1].Time {
				t.Errorf("thread %d: event %d (%v) is %d ticks before the one before it", tid, i, e.Kind, events[i-1].Time-e.Time)
			}
			fits := true
			switch e.Kind {
			case sched.In:
				fits = last != sched.In
			case sched.Preempted, sched.Blocked, sched.Uninterruptible:
				fits = last == sched.In || i == 0 || last == sched.Lost
			case sched.Woken:
				fits = last == sched.Blocked || last == sched.Uninterruptible || i == 0 || last == sched.Lost || last == sched.Ended
			case sched.MinorFault, sched.MajorFault:
				continue
			}
			if !fits {
				t.Errorf("thread %d: event %d is %v after %v", tid, i, e.Kind, last)
			}
			last = e.Kind
		}
	}
}

func (h *heard) count(tid int, kinds ...sched.Kind) int {
	n := 0
	for _, e := range h.events[tid] {
		if slices.Contains(kinds, e.Kind) {
			n++
		}
	}
	return n
}

// numbers reads the numbers of the lines that begin with a word.
func numbers(t *testing.T, p *realtest.Proc, word string) [][]uint64 {
	t.Helper()
	var out [][]uint64
	for _, line := range p.Stdout() {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != word {
			continue
		}
		row := make([]uint64, len(fields)-1)
		for i, f := range fields[1:] {
			n, err := strconv.ParseUint(f, 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			row[i] = n
		}
		out = append(out, row)
	}
	return out
}

// target starts sched.c in a mode.
func target(t *testing.T, args ...string) *realtest.Proc {
	t.Helper()
	return realtest.Start(t, realtest.Build(t, "sched"), args...)
}

// on adds a process to options.
func on(o sched.Options, p *realtest.Proc) sched.Options {
	o.PIDs = []int{p.Pid()}
	return o
}

// wantWhole fails if anything was lost, or if events don't fit each other but for a few: kernels that hide some processes
// from tracing say nothing of switches from these.
func (h *heard) wantWhole(t *testing.T) {
	t.Helper()
	if h.stats.Lost != 0 || h.stats.Odd > 5+h.stats.Events/500 {
		t.Errorf("%+v", h.stats)
	}
}
