package collect

import (
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/ring/ringtest"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// What is drained late is no part of the recording's time: it ends when the gates were closed, and a thread when it was last seen.
func TestRecordingsAndThreadsEndWhenTheyDid(t *testing.T) {
	const began = 1 << 40
	file := filepath.Join(t.TempDir(), "ends.reel")
	w, err := reel.Create(file, reel.Header{Clock: reel.Clock{TicksPerSecond: 1e9, BaseTick: began, BaseUnixNS: 1}}, reel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	threads := make([]*thread, 3)
	for i := range threads {
		tw, err := w.Thread(reel.Thread{TID: i + 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := tw.Append([]reel.Event{reel.Entry(began+100, 0x1000, 1)}); err != nil {
			t.Fatal(err)
		}
		threads[i] = &thread{ThreadSink: tw}
	}
	threads[0].seen = began + 500 // the second never was, the third goes on
	for _, k := range threads[:2] {
		if err := k.end(); err != nil {
			t.Fatal(err)
		}
	}
	memory, _ := ringtest.Memory(t, ring.Setup{Chunks: ring.MinChunks, TicksPerSecond: 3e9})
	d := &Collector{Config: Config{Target: &target.Target{Memory: memory, GatesClosed: reel.ClockPair{Tick: began + 900, UnixNS: 901}}, Sink: toReel{w},
		Progress: func(Progress) {}}, drainer: ring.NewDrainer(memory, nil)}
	if err := d.Finish(false); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.LastTick() != began+900 {
		t.Errorf("the recording ends at %d, want %d", f.LastTick()-began, 900)
	}
	for i, want := range []uint64{500, 100, 900} {
		th := f.Threads()[i]
		if got := f.EndOf(&th) - began; got != want {
			t.Errorf("thread %d ends at %d, want %d", i+1, got, want)
		}
	}
}

// toReel is a reel as a sink.
type toReel struct{ *reel.Writer }

func (toReel) Round(uint64) error { return nil }

func (r toReel) Thread(t reel.Thread) (ThreadSink, error) { return r.Writer.Thread(t) }
