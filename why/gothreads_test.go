package why

import (
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/reel"
)

// The runtime works on the thread's own stack for a goroutine that stays, and schedules there after one has left.
func TestGoroutinesThatStayAndThatLeave(t *testing.T) {
	const (
		work = iota + 1
		drain
		parkM
		goPreempt
		schedule
		execute
	)
	names := []string{"main.work", "runtime.gcDrainN", "runtime.park_m", "runtime.gopreempt_m", "runtime.schedule", "runtime.execute"}
	type batch struct {
		goroutine uint64
		thread    uint32
		fns       []uint32 // entered, one a tick
	}
	for _, c := range []struct {
		name    string
		names   int
		batches []batch
		want    move // of the last one
	}{
		{"the runtime works for it", len(names), []batch{{7, 1, []uint32{work}}, {0, 1, []uint32{drain, drain}}, {7, 1, []uint32{work}}}, move{still: true, came: 4}},
		{"it parks", len(names), []batch{{7, 1, []uint32{work}}, {0, 1, []uint32{parkM, schedule, execute}}, {7, 1, []uint32{work}}}, move{left: 2, came: 4, to: reel.StateBlocked}},
		{"it is preempted, and goes on elsewhere", len(names),
			[]batch{{7, 1, []uint32{work}}, {0, 1, []uint32{drain, goPreempt, schedule}}, {8, 1, []uint32{work, work}}, {0, 2, []uint32{schedule, execute}}, {7, 2, []uint32{work}}},
			move{left: 3, came: 8, to: reel.StateReady}},
		{"it goes on elsewhere, nobody knows how", len(names), []batch{{7, 1, []uint32{work}}, {7, 2, []uint32{work}}, {0, 1, []uint32{parkM}}, {7, 2, []uint32{work}}}, move{still: true, came: 4}},
		{"nothing of the runtime is known", 2, []batch{{7, 1, []uint32{work}}, {0, 1, []uint32{drain}}, {7, 1, []uint32{work}}}, move{came: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "go.reel")
			w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(1), Goroutines: true}, reel.Image{Path: "/bin/made"}, names[:c.names]...)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := reel.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			g := newGoroutineThreads(f)
			now, got := uint64(0), move{}
			for _, b := range c.batches {
				var events []reel.Event
				for _, fn := range b.fns {
					now++
					events = append(events, reel.Entry(now, 0, fn))
				}
				got = g.take(keyOf(b.goroutine, b.thread), b.thread, events, false)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
