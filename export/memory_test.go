package export

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/callreel/callreel/reel"
)

// heapPeak takes an export and notes how much was live on the heap meanwhile.
type heapPeak struct {
	written, next int64
	peak          uint64
}

func (h *heapPeak) Write(b []byte) (int, error) {
	if h.written += int64(len(b)); h.written >= h.next {
		h.next = h.written + 4<<20
		h.look()
	}
	return len(b), nil
}

func (h *heapPeak) look() {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	h.peak = max(h.peak, m.HeapAlloc)
}

// Ten times as many calls take no more memory, be they of threads or of goroutines.
func TestExportsMemoryDoesNotGrowWithTheTrace(t *testing.T) {
	peak := func(format string, goroutines bool, n int) uint64 {
		events := manyCalls(4000)
		end := events[len(events)-1].Time
		for k := len(events) - 1; k >= 0; k-- { // so that each round ends with nothing open
			if sp := events[k].SP; !events[k].IsExit() && !slices.ContainsFunc(events[k:], func(e reel.Event) bool { return e.IsExit() && e.SP == sp }) {
				end++
				events = append(events, reel.Exit(end, sp, events[k].ID()))
			}
		}
		f := recordAs(t, reel.Header{Goroutines: goroutines}, manyNames(), func(w *reel.Writer) {
			tw := appendTo(t, w, reel.Thread{TID: 1, Name: "t"})
			for round := range n {
				if goroutines {
					events[0] = reel.Switch(events[0].Time, uint64(round%9))
				}
				if err := tw.Append(events); err != nil {
					t.Fatal(err)
				}
				for k := range events {
					events[k].Time += end
				}
			}
		})
		h := &heapPeak{}
		if err := exporters[format](context.Background(), f, h, Options{TempDir: t.TempDir()}); err != nil {
			t.Fatal(err)
		}
		h.look()
		return h.peak
	}
	for format := range exporters {
		few, many := scheduledPeak(t, format, 20), scheduledPeak(t, format, 200)
		if few+2<<20 < many {
			t.Errorf("%s, with states: %d bytes for 40,000 words, %d for 400,000", format, few, many)
		}
		for _, goroutines := range []bool{false, true} {
			few, many := peak(format, goroutines, 20), peak(format, goroutines, 200)
			// Of a lane up to 64 KiB wait for the temporary file.
			if few+2<<20 < many {
				t.Errorf("%s, goroutines %v: %d bytes for 80,000 events, %d for 800,000", format, goroutines, few, many)
			}
		}
	}
}

// scheduledPeak is what an export of threads that are scheduled takes: 2,000 words and calls each round.
func scheduledPeak(t *testing.T, format string, rounds int) uint64 {
	t.Helper()
	const threads = 4
	words := schedule(rand.New(rand.NewPCG(1, 2)), threads, 2, 2500, func(i int) int32 { return int32(100 + i) })
	step := uint64(0)
	for _, list := range words {
		step = max(step, list[len(list)-1].Time+16)
	}
	f := recordAs(t, reel.Header{}, manyNames(), func(w *reel.Writer) {
		var writers []*reel.ThreadWriter
		for i := range threads {
			writers = append(writers, appendTo(t, w, reel.Thread{TID: 100 + i, Name: "t"}))
		}
		for round := range uint64(rounds) {
			for i, tw := range writers {
				list := slices.Clone(words[i])
				var events []reel.Event
				for k := range list {
					list[k].Time += round * step
					at := list[k].Time
					events = append(events, reel.Entry(at, base, uint32(1+k%7)), reel.Exit(at+8, base, uint32(1+k%7)))
				}
				if err := errors.Join(tw.Append(events), tw.Sched(list)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	h := &heapPeak{}
	if err := exporters[format](context.Background(), f, h, Options{TempDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	h.look()
	return h.peak
}
