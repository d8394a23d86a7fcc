//go:build unix

package reel

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"syscall"
	"testing"
	"time"
)

// sink takes what a Writer writes and keeps nothing, to measure without the
// disk.
type sink struct{ bytes int }

func (s *sink) Write(b []byte) (int, error) { s.bytes += len(b); return len(b), nil }
func (s *sink) Truncate(int64) error        { return nil }
func (s *sink) Close() error                { return nil }

// cpuTime is the time that this process has spent on processors. On a machine
// that others use too it tells more than the clock on the wall.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportEvents(b *testing.B, events, bytes int, start time.Duration) {
	n := float64(b.N) * float64(events) / 1e6
	b.ReportMetric(n/b.Elapsed().Seconds(), "Mevents/s")
	b.ReportMetric(n/(cpuTime()-start).Seconds(), "Mevents/cpu-s")
	if bytes > 0 {
		b.ReportMetric(float64(bytes)/float64(b.N)/float64(events), "B/event")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAppend is the drain's share: encoding and checksums, in slices as a
// ring hands them out, without the write.
func BenchmarkAppend(b *testing.B) {
	events := benchEvents(b, 8<<20)
	var out sink
	w, err := NewWriter("bench", &out, Header{})
	if err != nil {
		b.Fatal(err)
	}
	t, err := w.Thread(Thread{TID: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		for rest := events; len(rest) > 0; {
			n := min(8192, len(rest))
			if err := t.Append(rest[:n]); err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
	}
	reportEvents(b, len(events), out.bytes, start)
}

// BenchmarkAppendToFile is the same with a file.
func BenchmarkAppendToFile(b *testing.B) {
	events := benchEvents(b, 8<<20)
	name := filepath.Join(b.TempDir(), "bench.reel")
	var bytes int64
	start := cpuTime()
	for b.Loop() {
		bytes = writeReel(b, name, [][]Event{events})
	}
	reportEvents(b, len(events), int(bytes)*b.N, start)
}

// BenchmarkSummarize reads a reel of one and of two threads.
func BenchmarkSummarize(b *testing.B) {
	events := benchEvents(b, 8<<20)
	for _, bench := range []struct {
		name    string
		threads [][]Event
		workers int
	}{
		{"one thread on one core", [][]Event{events}, 1},
		{"one thread", [][]Event{events}, 0},
		{"two threads", [][]Event{events[:len(events)/2], events[len(events)/2:]}, 0},
	} {
		b.Run(bench.name, func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "bench.reel")
			writeReel(b, name, bench.threads)
			f, err := Open(name)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			start := cpuTime()
			for b.Loop() {
				if s := Summarize(f, SummaryOptions{Workers: bench.workers}); s.Events != uint64(len(events)) {
					b.Fatalf("%d of %d events read", s.Events, len(events))
				}
			}
			reportEvents(b, len(events), 0, start)
		})
	}
}

// writeReel writes a reel of one thread for each slice and returns its size.
func writeReel(tb testing.TB, name string, threads [][]Event) int64 {
	tb.Helper()
	return writeReelWith(tb, name, threads, nil)
}

// writeReelWith is writeReel with words of the scheduler on each thread.
func writeReelWith(tb testing.TB, name string, threads [][]Event, words []SchedEvent) int64 {
	tb.Helper()
	w, err := Create(name, Header{StartUnixNS: time.Now().UnixNano(), Clock: Clock{TicksPerSecond: 2_450_000_000}, PID: 1}, Options{Force: true})
	if err != nil {
		tb.Fatal(err)
	}
	functions := make([]Function, 4000)
	for i := range functions {
		functions[i] = Function{Name: "function_" + string(rune('a'+i%26)), Addr: uint64(i) * 64, Size: 64, Image: 1}
	}
	if _, err := w.AddImage(Image{Path: "/usr/bin/program", ID: "00ff"}); err != nil {
		tb.Fatal(err)
	}
	if _, err := w.AddFunctions(functions); err != nil {
		tb.Fatal(err)
	}
	for i, events := range threads {
		t, err := w.Thread(Thread{TID: 100 + i, Name: "worker"})
		if err != nil {
			tb.Fatal(err)
		}
		if err := t.Append(events); err != nil {
			tb.Fatal(err)
		}
		if err := t.Sched(words); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return w.Stats().Bytes
}

func BenchmarkEncode(b *testing.B) {
	events := benchEvents(b, 4<<20)
	var e encoder
	size := 0
	start := cpuTime()
	for b.Loop() {
		size = 0
		encodeAll(&e, events, ClockFull, func(p []byte, _ int) { size += len(p) })
	}
	reportEvents(b, len(events), size*b.N, start)
}

func BenchmarkDecode(b *testing.B) {
	events := benchEvents(b, 4<<20)
	type chunk struct {
		payload []byte
		count   int
	}
	var chunks []chunk
	encodeAll(new(encoder), events, ClockFull, func(p []byte, n int) {
		chunks = append(chunks, chunk{slices.Clone(p), n})
	})
	var d decoder
	var out []Event
	start := cpuTime()
	for b.Loop() {
		for _, c := range chunks {
			var err error
			if out, err = d.decode(out[:0], c.payload, c.count, ClockFull); err != nil {
				b.Fatal(err)
			}
		}
	}
	reportEvents(b, len(events), 0, start)
}

// BenchmarkLive sums events up as BenchmarkAppend encodes them.
func BenchmarkLive(b *testing.B) {
	events := benchEvents(b, 8<<20)
	t := NewLiveTally(false)
	t.Known(4000, 0)
	thread := t.Thread(1)
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		for rest := events; len(rest) > 0; {
			n := min(8192, len(rest))
			thread.Push(rest[:n])
			rest = rest[n:]
		}
		t.Reuse(t.Take(events[len(events)-1].Time))
	}
	reportEvents(b, len(events), 0, start)
}

// BenchmarkLiveGoroutines is the same of two threads of a Go program, whose goroutines change every 40 events or so.
func BenchmarkLiveGoroutines(b *testing.B) {
	const run, goroutines = 40, 16
	var threads [2][]Event
	ends := uint64(0)
	for i := range goroutines {
		// Each goroutine runs for a while on one thread and then on the other.
		for k, events := 0, newProgram(uint64(i), 500).run(1<<17); len(events) > 0; k++ {
			n := min(run, len(events))
			at := uint64((k*goroutines + i) * 100 * run)
			to := &threads[(k+i)%2]
			*to = append(*to, Switch(at, uint64(i+1)))
			for j, e := range events[:n] {
				e.Time = at + uint64(j+1)*90
				*to = append(*to, e)
			}
			events, ends = events[n:], max(ends, at)
		}
	}
	for i := range threads {
		slices.SortStableFunc(threads[i], func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
	}
	t := NewLiveTally(true)
	t.Known(4000, 0)
	lives := []*LiveThread{t.Thread(1), t.Thread(2)}
	all := len(threads[0]) + len(threads[1])
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		rest := threads
		for at := uint64(0); len(rest[0])+len(rest[1]) > 0; at += 500_000 {
			for i := range rest {
				n := sort.Search(len(rest[i]), func(k int) bool { return rest[i][k].Time > at })
				lives[i].Push(rest[i][:n])
				rest[i] = rest[i][n:]
			}
			t.Round(at)
		}
		t.Reuse(t.Take(ends))
	}
	reportEvents(b, all, 0, start)
}

// BenchmarkPair pairs a stream of one stack, with both callbacks.
func BenchmarkPair(b *testing.B) {
	events := benchEvents(b, 1<<20)
	calls := uint64(0)
	start := cpuTime()
	for b.Loop() {
		p := Pairer{OnCall: func(c *Call) { calls += c.Inside }, OnEntry: func(c *Call) { calls++ }}
		p.Push(events)
		p.Finish(1 << 60)
	}
	reportEvents(b, len(events), 0, start)
}

// BenchmarkSummarizeStates reads a reel of one thread without states of it, and with a switch every so many events.
func BenchmarkSummarizeStates(b *testing.B) {
	events := benchEvents(b, 8<<20)
	for _, every := range []int{0, 2000, 200, 20} {
		b.Run(fmt.Sprintf("a switch every %d events", every), func(b *testing.B) {
			events := slices.Clone(events)
			var words []SchedEvent
			if every > 0 {
				words = append(words, SchedEvent{Time: events[0].Time, Kind: SchedIn})
				for at, late := every, uint64(0); at < len(events); at += every {
					for i := at; i < min(at+every, len(events)); i++ { // it has waited between two events
						events[i].Time += late + 10_000
					}
					left := events[at-1].Time
					words = append(words, SchedEvent{Time: left + 50, Kind: SchedBlocked}, SchedEvent{Time: left + 9_000, Kind: SchedWoken, Waker: 4711}, SchedEvent{Time: left + 9_950, Kind: SchedIn, CPU: int32(at % 2)})
					late += 10_000
				}
			}
			name := filepath.Join(b.TempDir(), "bench.reel")
			writeReelWith(b, name, [][]Event{events}, words)
			f, err := Open(name)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			start := cpuTime()
			for b.Loop() {
				if s := Summarize(f, SummaryOptions{Workers: 1}); s.Events != uint64(len(events)) || s.HasStates != (every > 0) {
					b.Fatalf("%d of %d events read", s.Events, len(events))
				}
			}
			reportEvents(b, len(events), 0, start)
		})
	}
}
