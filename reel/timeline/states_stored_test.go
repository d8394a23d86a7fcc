package timeline

import (
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// What the scheduler did last may be later than the last event, and is written late.
func TestAnIndexFitsAReelWhoseStatesEndLater(t *testing.T) {
	name := filepath.Join(t.TempDir(), "late.reel")
	w, err := reel.Create(name, reel.Header{Clock: reel.Clock{TicksPerSecond: 1e9, BaseTick: 1000, BaseUnixNS: 1}}, reel.Options{})
	realtest.Must(t, err)
	tw, err := w.Thread(reel.Thread{TID: 1})
	realtest.Must(t, err)
	realtest.Must(t, tw.Append([]reel.Event{reel.Entry(2000, 0x8000, 1), reel.Exit(3000, 0x8000, 1)}))
	realtest.Must(t, tw.Sched([]reel.SchedEvent{{Time: 1500, Kind: reel.SchedIn}, {Time: 9000, Kind: reel.SchedBlocked}}))
	realtest.Must(t, Append(t.Context(), w, name, Options{}))
	realtest.Must(t, w.Close())
	f, err := reel.Open(name)
	realtest.Must(t, err)
	defer f.Close()
	tl := newTimeline(Options{})
	if s, err := tl.stored(f); err != nil || s == nil {
		t.Errorf("the index isn't used: %v", err)
	}
}
