package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// viewSwitches is in how many events of a reel that views are measured on there is a switch of a thread: 10 million in all.
const viewSwitches = 10

// viewEvents is how large the reel is that views are measured on: eight busy threads, 40 deep.
const viewEvents = 100_000_000

// measureView measures the timeline of a large reel: opening, indexing, and views at all zooms, of all rows, in a process of
// their own.
func measureView(ctx context.Context, c config) []row {
	sizes := []uint64{viewEvents}
	if c.billion {
		sizes = append(sizes, 1_000_000_000)
	}
	var rows []row
	for _, events := range sizes {
		rows = append(rows, viewRows(ctx, c, events)...)
	}
	return rows
}

func viewRows(ctx context.Context, c config, events uint64) []row {
	what := fmt.Sprintf("timeline of %d M events", events/1_000_000)
	v, err := runViews(ctx, c, events)
	if err != nil {
		return []row{missing(what, "", err)}
	}
	rows := []row{
		{what: what + ": indexing", value: fmt.Sprintf("%.0f M events/s", v.Rate/1e6), reach: "≥ 50 M events/s", note: "in memory, of a reel without an index"},
		{what: what + ": index", value: fmt.Sprintf("%.1f %% of the events", 100*v.Share), reach: "≤ 33 %"},
		{what: what + ": open", value: fmt.Sprintf("%.3f s", v.Open), reach: "≤ 0.15 s"},
	}
	for _, z := range v.Zooms {
		r := row{
			what:  what + ": view of " + z.Part,
			value: fmt.Sprintf("%.1f ms, at most %.1f", z.Cold[0], z.Cold[1]), reach: "≤ 30 ms",
			note: fmt.Sprintf("exact, cold; of processors' time %.0f ms; again %.1f ms, at most %.1f", z.CPU, z.Warm[0], z.Warm[1]),
		}
		rows = append(rows, r)
	}
	states := fmt.Sprintf("%s, %d M switches", what, events/viewSwitches/1_000_000)
	rows = append(rows, row{what: states + ": summing up", value: fmt.Sprintf("%.2f s", v.States), reach: "≤ 1 s", note: fmt.Sprintf("in the background; of processors' time %.2f s; it takes %.0f MB", v.StatesCPU, v.StatesMemory/1e6)})
	for _, z := range v.StateZooms {
		rows = append(rows, row{
			what:  states + ": states in a view of " + z.Part,
			value: fmt.Sprintf("%.1f ms, at most %.1f", z.Warm[0], z.Warm[1]), reach: "≤ 10 ms",
			note: fmt.Sprintf("of processors' time %.1f ms; at most %d stretches of a thread", z.CPU, z.Spans),
		})
	}
	return append(rows, row{what: what + ": memory beyond the file", value: fmt.Sprintf("%.0f MB", v.Memory/1e6), reach: "≤ 1000 MB"})
}

// views is what the process that measures them says; times of views are medians and maxima in milliseconds.
type views struct {
	Rate   float64 // events/s
	Share  float64 // of the index
	Open   float64 // seconds
	Memory float64 // bytes
	Zooms  []zoomed
	// States is how long it takes to sum up the states of threads, in seconds.
	States       float64
	StatesCPU    float64 // of processors' time
	StatesMemory float64 // bytes
	StateZooms   []zoomed
}

type zoomed struct {
	Part string
	Cold [2]float64 // the exact answer with nothing in the cache
	CPU  float64    // processors' time of that
	Warm [2]float64 // the same once more
	// Spans is the most stretches of states that a thread has.
	Spans int
}

// runViews makes the reel and has another bench measure it.
func runViews(ctx context.Context, c config, events uint64) (v views, err error) {
	plain, indexed := filepath.Join(c.dir, "plain.reel"), filepath.Join(c.dir, "indexed.reel")
	defer func() { err = errors.Join(err, os.Remove(plain), os.Remove(indexed)) }()
	shape := bigreel.Shape{Events: events, Threads: 8, Depth: 40, Switches: events / viewSwitches}
	if err := bigreel.Write(plain, shape); err != nil {
		return v, err
	}
	if err := writeIndexed(ctx, indexed, events, events/viewSwitches, 0); err != nil {
		return v, err
	}
	self, err := os.Executable()
	if err != nil {
		return v, err
	}
	cmd := exec.CommandContext(ctx, self, "-views", plain, "-views-indexed", indexed)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return v, fmt.Errorf("measuring views: %w", err)
	}
	return v, json.Unmarshal(out, &v)
}

// viewPlaces is how many places are looked at at each zoom.
const viewPlaces = 15

// printViews is that other bench.
func printViews(ctx context.Context, plain, indexed string) error {
	var v views
	if err := v.index(ctx, plain); err != nil {
		return err
	}
	runtime.GC()
	size := func(name string) float64 {
		info, err := os.Stat(name)
		if err != nil {
			return 0
		}
		return float64(info.Size())
	}
	v.Share = size(indexed)/size(plain) - 1
	start := time.Now()
	f, err := reel.Open(indexed)
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := timeline.Open(ctx, f, timeline.Options{})
	if err != nil {
		return err
	}
	v.Open = time.Since(start).Seconds()
	if !t.Indexed() {
		return errors.New("the reel's index was not used")
	}
	for _, shift := range []uint{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 18} {
		z, err := measureZoom(ctx, f, t.Duration()>>shift)
		if err != nil {
			return err
		}
		z.Part = fmt.Sprintf("1/%d", 1<<shift)
		v.Zooms = append(v.Zooms, z)
	}
	v.Memory = memoryOf(os.Getpid())
	if err := v.states(ctx, f); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

// states measures how states of threads are summed up, and views of them.
func (v *views) states(ctx context.Context, f *reel.File) error {
	t, err := timeline.Open(ctx, f, timeline.Options{})
	if err != nil {
		return err
	}
	used := func() float64 {
		runtime.GC()
		runtime.GC() // what pools had is let go of by the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before, start, spent := used(), time.Now(), cpuTime()
	if err := t.SumStates(ctx, 0); err != nil {
		return err
	}
	v.States, v.StatesCPU = time.Since(start).Seconds(), (cpuTime() - spent).Seconds()
	v.StatesMemory = max(0, used()-before)
	for _, shift := range []uint{0, 2, 4, 6, 8, 10, 14, 18} {
		z := zoomed{Part: fmt.Sprintf("1/%d", 1<<shift)}
		span := t.Duration() >> shift
		rng := rand.New(rand.NewPCG(span, 2))
		var warm, cpu []float64
		for range viewPlaces {
			q := timeline.Query{From: rng.Uint64N(t.Duration() - span + 1), Width: 1800, States: true}
			q.To = q.From + span
			for _, l := range t.Lanes() {
				q.Lanes = append(q.Lanes, timeline.LaneRows{Lane: l.ID})
			}
			used, start := cpuTime(), time.Now()
			answer, err := t.View(ctx, q)
			if err != nil {
				return err
			}
			warm = append(warm, float64(time.Since(start).Microseconds())/1000)
			cpu = append(cpu, float64((cpuTime()-used).Microseconds())/1000)
			for _, l := range answer.States {
				z.Spans = max(z.Spans, len(l.Spans))
			}
		}
		z.Warm, z.CPU = [2]float64{median(warm), slices.Max(warm)}, median(cpu)
		v.StateZooms = append(v.StateZooms, z)
	}
	runtime.KeepAlive(t)
	return nil
}

// index measures how fast a reel is indexed that has no index.
func (v *views) index(ctx context.Context, name string) error {
	f, err := reel.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	f.Verify() // reads it, so that the disk isn't measured
	start := time.Now()
	if _, err := timeline.Open(ctx, f, timeline.Options{}); err != nil {
		return err
	}
	v.Rate = float64(f.Events()) / time.Since(start).Seconds()
	return nil
}

// measureZoom looks at places all over the recording, each with a timeline that has nothing in its cache.
func measureZoom(ctx context.Context, f *reel.File, span uint64) (z zoomed, err error) {
	rng := rand.New(rand.NewPCG(span, 1))
	var cold, cpu, warm []float64
	for range viewPlaces {
		t, err := timeline.Open(ctx, f, timeline.Options{})
		if err != nil {
			return z, err
		}
		q := timeline.Query{From: rng.Uint64N(t.Duration() - span + 1), Width: 1800}
		q.To = q.From + span
		for _, l := range t.Lanes() {
			q.Lanes = append(q.Lanes, timeline.LaneRows{Lane: l.ID, Count: l.Rows})
		}
		used := cpuTime()
		for _, times := range []*[]float64{&cold, &warm} {
			start := time.Now()
			if _, err := t.View(ctx, q); err != nil {
				return z, err
			}
			*times = append(*times, float64(time.Since(start).Microseconds())/1000)
			if times == &cold {
				cpu = append(cpu, float64((cpuTime()-used).Microseconds())/1000)
			}
		}
	}
	z.Cold, z.CPU, z.Warm = [2]float64{median(cold), slices.Max(cold)}, median(cpu), [2]float64{median(warm), slices.Max(warm)}
	return z, nil
}
