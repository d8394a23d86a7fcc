package markindex

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// randomReel has marks of all kinds of three threads, in no sensible order.
func randomReel(t *testing.T, seed uint64, n int) *reel.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "random.reel")
	w := madereel.Create(t, path, reel.Header{PID: 7, Clock: madereel.Nanoseconds(1000)}, reel.Image{Path: "/bin/prog"})
	madereel.AddMarkers(t, w)
	rng := rand.New(rand.NewPCG(seed, 19))
	end := uint64(0)
	for i := range 3 {
		tw := madereel.Thread(t, w, reel.Thread{TID: 8 + i, Process: 7, Name: "t"})
		var m madereel.Marks
		at := uint64(2000)
		for range n {
			at += uint64(rng.ExpFloat64() * math.Exp(rng.Float64()*8))
			marker := uint32(1 + rng.IntN(len(madereel.Markers())))
			k := madereel.Markers()[marker-1]
			var values []reel.Value
			for _, a := range k.Arguments {
				switch {
				case a.Kind == reel.ArgumentString:
					values = append(values, madereel.Text(fmt.Sprintf("title %d", rng.IntN(20))))
				case a.Kind == reel.ArgumentFloat:
					values = append(values, madereel.Number(math.Float64bits(rng.NormFloat64())))
				default:
					values = append(values, madereel.Number(rng.Uint64N(12)))
				}
			}
			m.At(at, marker, values...)
		}
		m.Write(t, tw)
		end = max(end, at)
	}
	realtest.Must(t, w.ClockPair(end, int64(end)))
	realtest.Must(t, w.Close())
	f, err := reel.Open(path)
	realtest.Must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestWholeRangeHasTheNumbersOfTheReport(t *testing.T) {
	exact := 0
	for seed := range uint64(8) {
		n := []int{150, 3000}[seed%2]
		f := randomReel(t, seed, n)
		x, err := Build(context.Background(), f, nil)
		realtest.Must(t, err)
		if x.Left != 0 || x.Lost != 0 || x.Marks != uint64(3*n) {
			t.Fatalf("%d marks, %d left, %d lost", x.Marks, x.Left, x.Lost)
		}
		got, err := x.Sum(context.Background(), 0, math.MaxUint64)
		realtest.Must(t, err)
		want := f.SummarizeMarks(reel.MarkSummaryOptions{})
		type key struct {
			name  string
			async bool
		}
		spans := map[key]SpanSum{}
		for _, s := range got.Spans {
			title, _ := x.Title(s.Title)
			spans[key{title.Name, s.Async}] = s
		}
		shown := uint64(0) // what is deeper than the rows isn't in the table
		for _, l := range x.order {
			if len(l.rows) == MaxRows {
				for _, n := range l.rows[MaxRows-1].count {
					shown += uint64(n)
				}
			}
		}
		for _, track := range x.tracks {
			shown += track.More
		}
		missing := uint64(0)
		for _, s := range want.Spans {
			g := spans[key{s.Name, s.Async}]
			missing += s.Count - g.Count
			if shown == 0 && (g.Count != s.Count || g.Complete != s.Complete || g.Max != s.Max || g.P50 != s.P50 || g.P99 != s.P99) {
				t.Errorf("seed %d, %s: %+v, the report has %+v", seed, s.Name, g, s)
			}
		}
		if shown == 0 {
			exact++
		}
		if missing != shown {
			t.Errorf("seed %d: %d spans are missing from the table, %d are in last rows", seed, missing, shown)
		}
		for i, c := range want.Counters {
			found := false
			for _, g := range got.Counters {
				title, _ := x.Title(x.tracks[g.Track].Title)
				found = found || title.Name == c.Name && g.Values == c.Count && g.Min == c.Min && g.Max == c.Max && g.Last == c.Last
			}
			if !found {
				t.Errorf("counter %d: %+v; there are %+v", i, c, got.Counters)
			}
		}
		instants, flows := uint64(0), uint64(0)
		for _, g := range got.Instants {
			instants += g.Count
		}
		for _, c := range want.Instants {
			instants -= c.Count
		}
		for _, c := range want.Flows {
			flows += c.In
		}
		if instants != 0 || uint64(x.FlowCount()) != flows {
			t.Errorf("instants differ by %d; %d flows, not %d", int64(instants), x.FlowCount(), flows)
		}
	}
	if exact < 2 {
		t.Errorf("only %d reels had room for all spans", exact)
	}
}

func TestRowsDontOverlap(t *testing.T) {
	x, err := Build(context.Background(), randomReel(t, 9, 20_000), nil)
	realtest.Must(t, err)
	check := func(what string, r *row) {
		for i := range r.start {
			if r.end[i] < r.start[i] || i > 0 && r.start[i] < r.end[i-1] {
				t.Fatalf("%s: span %d is from %d to %d, behind one to %d", what, i, r.start[i], r.end[i], r.end[i-1])
			}
		}
	}
	for n, l := range x.order {
		for i := range l.rows {
			check(fmt.Sprintf("lane %d, row %d", n, i), &l.rows[i])
		}
	}
	for n, track := range x.tracks {
		for i := range track.rows {
			check(fmt.Sprintf("track %d, row %d", n, i), &track.rows[i])
		}
	}
}

func TestGivingUpEndsReading(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Build(ctx, randomReel(t, 1, 10), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
