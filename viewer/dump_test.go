package viewer

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

type dumpAnswer struct {
	FromNS   uint64 `json:"from_ns"`
	ToNS     uint64 `json:"to_ns"`
	Triggers []struct {
		Trigger
		EndNS uint64  `json:"end_ns"`
		Lane  *uint32 `json:"lane"`
		Row   *int    `json:"row"`
	} `json:"triggers"`
	More    int `json:"more_triggers"`
	Missing []struct {
		Lane *uint32 `json:"lane"`
		Missing
	} `json:"missing"`
}

// dumpOf is a dump of two threads: the call of work that made it is in main's, the one of wait began a minute before the window, and
// has not returned. The window is from tick 61 s on, of 1 s.
func dumpOf(t testing.TB, d reel.Dump) string {
	const second = 1_000_000_000
	d.From, d.To = 61*second, 62*second
	return madeReel(t, []string{"main", "work", "wait"}, func(w *reel.Writer) {
		at := d.From
		var events []reel.Event
		for i := range uint64(100) {
			events = append(events, reel.Entry(at+i*1_000_000, 0x20000, 1), reel.Entry(at+i*1_000_000+100, 0x1ff00, 2), reel.Exit(at+i*1_000_000+200, 0x1ff00, 2), reel.Exit(at+i*1_000_000+900_000, 0x20000, 1))
		}
		events = append(events, reel.Entry(at+200_000_000, 0x20000, 1), reel.Entry(at+300_000_000, 0x1ff00, 2), reel.Exit(at+343_000_000, 0x1ff00, 2))
		thread(t, w, "main", events...)
		madereel.Thread(t, w, reel.Thread{TID: 79, Process: 77, Name: "waiter"}, reel.Entry(second, 0x90000, 3), reel.Entry(at+500_000_000, 0x8ff00, 1), reel.Exit(at+500_000_001, 0x8ff00, 1))
		realtest.Must(t, w.Dump(d))
	})
}

func TestDumpIsDescribed(t *testing.T) {
	const second = 1_000_000_000
	// Its clock was read 70 ns behind the entry.
	work := reel.Trigger{Condition: "work > 20ms", Function: 2, Thread: 1, Start: 61*second + 300_000_070, End: 61*second + 343_000_070, SP: 0x1ff00}
	gone := work
	gone.Start, gone.SP = work.Start, 0x1ff40
	path := dumpOf(t, reel.Dump{
		Triggers: []reel.Trigger{work, {Condition: "wait > 1s", Function: 3, Thread: 2, Start: second, SP: 0x90000}, gone, {Kind: reel.TriggerRequest}, {Condition: "x", Function: 9, Thread: 99, Start: 1}},
		Missing:  []reel.Missing{{From: 61 * second, To: 61*second + 5}, {Thread: 2, From: 61*second + 700_000_000, To: 1 << 63}},
	})
	c := serveReels(t, path)
	d := ask[dumpAnswer](c, "dump")
	if d.FromNS != 60*second || d.ToNS != 61*second || len(d.Triggers) != 5 || d.More != 0 {
		t.Fatalf("%+v", d)
	}
	if w := d.Triggers[0]; w.Lane == nil || *w.Lane != 0 || w.Row == nil || *w.Row != 1 || w.DurationNS != 43_000_000 || w.EndNS-w.StartNS != 43_000_000 || w.Name != "work" || w.Open {
		t.Errorf("the first is %+v", w)
	}
	if w := d.Triggers[1]; w.Lane == nil || *w.Lane != 1 || w.Row == nil || *w.Row != 0 || !w.Open || w.DurationNS != 61*second || w.StartNS != 0 || w.EndNS != d.ToNS {
		t.Errorf("the open one is %+v", w)
	}
	for i, w := range d.Triggers[2:] {
		if w.Row != nil {
			t.Errorf("trigger %d, which is not in the reel, is %+v", i+2, w)
		}
	}
	if w := d.Triggers[3]; w.StartNS != d.ToNS || w.EndNS != d.ToNS {
		t.Errorf("what has no time of its own is %+v", w)
	}
	if m := d.Missing; len(m) != 2 || m[0].Lane != nil || *m[1].Lane != 1 || m[1].ToNS != d.ToNS {
		t.Errorf("missing is %+v", m)
	}
	var o struct {
		FromNS uint64 `json:"from_ns"`
		Busy   []float64
		Gaps   [][2]uint64
	}
	realtest.Must(t, json.Unmarshal(c.bytes("overview?width=100"), &o))
	if o.FromNS != 60*second || len(o.Busy) != 100 || len(o.Gaps) != 2 || o.Gaps[1] != [2]uint64{d.FromNS + 700_000_000, d.ToNS} {
		t.Errorf("the overview is %+v", o)
	}
	// main is busy in the first tenth and from 200 ms on, waiter all the time.
	if o.Busy[5] <= o.Busy[15] || o.Busy[50] <= o.Busy[15] || o.Busy[15] == 0 {
		t.Errorf("the overview's columns are %v", o.Busy)
	}
	var info struct{ Reels []struct{ Dump bool } }
	realtest.Must(t, json.Unmarshal(c.bytes("info"), &info))
	if !info.Reels[0].Dump {
		t.Error("info doesn't say that it is a dump")
	}
}

func TestReelThatIsNoDumpHasNone(t *testing.T) {
	c := serveReels(t, madeReel(t, []string{"f"}, func(w *reel.Writer) { thread(t, w, "main", reel.Entry(2000, 64, 1)) }))
	if b := string(c.bytes("dump")); b != "null" {
		t.Errorf("%s", b)
	}
}

func TestHostileDumpIsBounded(t *testing.T) {
	var d reel.Dump
	for i := range uint64(100_000) {
		d.Missing = append(d.Missing, reel.Missing{From: ^uint64(0) - i, To: i << 40}, reel.Missing{Thread: uint32(i), From: i, To: ^uint64(0)})
		d.Triggers = append(d.Triggers, reel.Trigger{Kind: 200, Function: uint32(i), Thread: uint32(i % 3), Start: i << 30, Condition: "<b>\x1b[31m"})
	}
	c := serveReels(t, dumpOf(t, d))
	a := ask[dumpAnswer](c, "dump")
	if len(a.Triggers) != maxTriggers || a.More != 100_000-maxTriggers || len(a.Missing) > maxListed {
		t.Errorf("%d triggers and %d more, %d missing", len(a.Triggers), a.More, len(a.Missing))
	}
	c.bytes("overview?width=1000")
	c.bytes("lanes")
}

func TestDumpWithoutAClockHasNoTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "order.reel")
	w := madereel.Create(t, path, reel.Header{PID: 77, Clock: reel.Clock{Mode: reel.ClockNone}}, reel.Image{Path: "/bin/prog"}, "f")
	thread(t, w, "main", reel.Entry(0, 0x1000, 1), reel.Exit(0, 0x1000, 1))
	realtest.Must(t, w.Dump(reel.Dump{From: 1e12, To: 2e12, Triggers: []reel.Trigger{{Kind: reel.TriggerRequest, Thread: 1, Start: 1e12, End: 1e12 + 5}}, Missing: []reel.Missing{{From: 1e12, To: 1e12 + 7}}}))
	realtest.Must(t, w.Close())
	d := ask[dumpAnswer](serveReels(t, path), "dump")
	if d.FromNS != 0 || d.ToNS > 100 || len(d.Triggers) != 1 || d.Triggers[0].StartNS != 0 || d.Triggers[0].EndNS != 0 || len(d.Missing) != 1 || d.Missing[0].ToNS != 0 {
		t.Errorf("%+v", d)
	}
}

func TestTriggerOfAGoroutineIsFoundInItsLane(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.reel")
	w := madereel.Create(t, path, reel.Header{PID: 77, Goroutines: true, Clock: madereel.Nanoseconds(1000)}, reel.Image{Path: "/bin/prog"}, "main.outer", "main.slow")
	madereel.Thread(t, w, reel.Thread{TID: 78, Process: 77, Name: "m0"}, reel.Switch(2000, 7), reel.Entry(2001, 0x9000, 1), reel.Entry(2002, 0x8f00, 2), reel.Switch(2100, 8), reel.Entry(2101, 0x5000, 1), reel.Exit(2300, 0x5000, 1))
	madereel.Thread(t, w, reel.Thread{TID: 79, Process: 77, Name: "m1"}, reel.Switch(2500, 7), reel.Exit(2600, 0x8f00, 2), reel.Exit(2601, 0x9000, 1))
	realtest.Must(t, w.Dump(reel.Dump{From: 1500, To: 3000, Triggers: []reel.Trigger{{Condition: "main.slow > 500ns", Function: 2, Thread: 2, Start: 2002, End: 2600, SP: 0x8f00}}, Missing: []reel.Missing{{Thread: 2, From: 1500, To: 1600}}}))
	realtest.Must(t, w.Close())
	c := serveReels(t, path)
	var lanes []struct {
		ID        uint32
		Goroutine uint64
		TID       int
	}
	realtest.Must(t, json.Unmarshal(c.bytes("lanes"), &lanes))
	d := ask[dumpAnswer](c, "dump")
	w0 := d.Triggers[0]
	if w0.Lane == nil || w0.Row == nil || lanes[*w0.Lane].Goroutine != 7 || *w0.Row != 1 || w0.DurationNS != 598 || w0.TID != 79 {
		t.Errorf("%+v among %+v", w0, lanes)
	}
	if m := d.Missing[0]; m.Lane == nil || lanes[*m.Lane].TID != 79 || lanes[*m.Lane].Goroutine != 0 {
		t.Errorf("%+v among %+v", m, lanes)
	}
}
