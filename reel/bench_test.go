package reel

import (
	"path/filepath"
	"testing"
	"time"
)

// sink takes what a Writer writes and keeps nothing, to measure without the
// disk.
type sink struct{ bytes int }

func (s *sink) Write(b []byte) (int, error) { s.bytes += len(b); return len(b), nil }
func (s *sink) Truncate(int64) error        { return nil }
func (s *sink) Close() error                { return nil }

func reportEvents(b *testing.B, events, bytes int) {
	b.ReportMetric(float64(b.N)*float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
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
	w, err := newWriter("bench", &out, Header{})
	if err != nil {
		b.Fatal(err)
	}
	t, err := w.Thread(Thread{TID: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for rest := events; len(rest) > 0; {
			n := min(8192, len(rest))
			if err := t.Append(rest[:n]); err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
	}
	reportEvents(b, len(events), out.bytes)
}

// BenchmarkAppendToFile is the same with a file.
func BenchmarkAppendToFile(b *testing.B) {
	events := benchEvents(b, 8<<20)
	name := filepath.Join(b.TempDir(), "bench.reel")
	var bytes int64
	for b.Loop() {
		bytes = writeReel(b, name, [][]Event{events})
	}
	reportEvents(b, len(events), int(bytes)*b.N)
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
			for b.Loop() {
				if s := Summarize(f, SummaryOptions{Workers: bench.workers}); s.Events != uint64(len(events)) {
					b.Fatalf("%d of %d events read", s.Events, len(events))
				}
			}
			reportEvents(b, len(events), 0)
		})
	}
}

// writeReel writes a reel of one thread for each slice and returns its size.
func writeReel(tb testing.TB, name string, threads [][]Event) int64 {
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
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return w.Stats().Bytes
}
