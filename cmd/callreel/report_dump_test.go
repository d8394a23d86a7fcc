package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// makeDump writes a dump of 2 ms, whose clock began a minute before: `work` took 43 µs on thread 77, while `loop`, which thread 78
// had entered long before, had not returned.
func makeDump(t *testing.T, d reel.Dump) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slow-0001.reel")
	const second = 1_000_000_000
	at := uint64(60 * second)
	header := reel.Header{PID: 4242, Command: []string{"/bin/prog"}, Exe: "/bin/prog", Tool: "callreel test", Clock: madereel.Nanoseconds(1000)}
	w := madereel.Create(t, path, header, reel.Image{Path: "/bin/prog", ID: "c0ffee", Arch: "amd64"}, "main", "work", "loop")
	madereel.Thread(t, w, reel.Thread{TID: 77, Process: 4242, Name: "main"},
		reel.Entry(at+100_000, 0x20000, 1), reel.Entry(at+1_000_000, 0x1ff00, 2), reel.Exit(at+1_043_000, 0x1ff00, 2))
	madereel.Thread(t, w, reel.Thread{TID: 78, Process: 4242, Name: "bio\x1b[2J"}, reel.Entry(at-30*second, 0x80000, 3), reel.Entry(at+500_000, 0x7ff00, 1))
	d.From, d.To = at, at+2_000_000
	for i := range d.Triggers {
		if d.Triggers[i].Start != 0 {
			d.Triggers[i].Start += at
		}
		if d.Triggers[i].End != 0 {
			d.Triggers[i].End += at
		}
	}
	for i := range d.Missing {
		d.Missing[i].From += at
		d.Missing[i].To += at
	}
	realtest.Must(t, w.Dump(d))
	realtest.Must(t, w.Close())
	return path
}

var slowWork = reel.Trigger{Condition: "work > 20us", Function: 2, Thread: 1, Start: 1_000_000, End: 1_043_000, SP: 0x1ff00}

func TestReportOfADumpSaysWhatItWasMadeFor(t *testing.T) {
	path := makeDump(t, reel.Dump{Triggers: []reel.Trigger{slowWork}})
	var r struct {
		Trigger struct {
			Name       string
			TID        int
			DurationNS uint64 `json:"duration_ns"`
			StartNS    uint64 `json:"start_ns"`
			Condition  string
			Open       bool
		}
		Triggers []viewer.Trigger
		Missing  []viewer.Missing
		WindowNS uint64 `json:"window_ns"`
	}
	a := callreel("", "report", path, "--json")
	realtest.Must(t, json.Unmarshal([]byte(a.stdout), &r))
	if r.Trigger.Name != "work" || r.Trigger.TID != 77 || r.Trigger.DurationNS != 43_000 || r.Trigger.Condition != "work > 20us" || r.Trigger.Open {
		t.Errorf("the trigger is %+v", r.Trigger)
	}
	if want := uint64(30_001_000_000); r.Trigger.StartNS != want { // from the first entry on
		t.Errorf("it began at %d, want %d", r.Trigger.StartNS, want)
	}
	if r.WindowNS != 2_000_000 || r.Triggers != nil || r.Missing != nil || strings.Contains(a.stdout, `"missing"`) {
		t.Errorf("%s", a.stdout)
	}
	text := callreel("", "report", path).stdout
	if want := "A dump of the last 2.00 ms, made for work > 20us: work took 43.00 us, thread 77 main, at 2023-11-14 22:14:20.000999 UTC\n\n"; !strings.HasPrefix(text, want) {
		t.Errorf("the head is\n%.300s\nwant\n%s", text, want)
	}
	if !strings.Contains(text, " calls in 2.00 ms;") {
		t.Errorf("the calls' time isn't the window's:\n%s", text)
	}
	if strings.Contains(text, "missing") {
		t.Errorf("something is missing from a whole dump:\n%s", text)
	}
}

func TestReportOfADumpWithAllThereIsToSay(t *testing.T) {
	d := reel.Dump{
		Triggers: []reel.Trigger{slowWork, {Condition: "loop > 1s", Function: 3, Thread: 2, Start: 200_000}, {Kind: reel.TriggerEnd, Detail: "signal \x1b[31mSIGSEGV"}},
		Missing:  []reel.Missing{{From: 0, To: 100_000}, {Thread: 2, From: 0, To: 400_000}},
	}
	path := makeDump(t, d)
	a := callreel("", "report", path, "--json")
	var r struct {
		Trigger  viewer.Trigger
		Triggers []viewer.Trigger
		Missing  []viewer.Missing
	}
	realtest.Must(t, json.Unmarshal([]byte(a.stdout), &r))
	if len(r.Triggers) != 3 || r.Triggers[0] != r.Trigger || !r.Triggers[1].Open || r.Triggers[1].DurationNS != 1_800_000 || r.Triggers[2].Kind != "end" {
		t.Errorf("triggers are %+v", r.Triggers)
	}
	const first = 30_000_000_000
	if len(r.Missing) != 2 || r.Missing[0] != (viewer.Missing{FromNS: first, ToNS: first + 100_000}) || r.Missing[1] != (viewer.Missing{TID: 78, FromNS: first, ToNS: first + 400_000}) {
		t.Errorf("missing is %+v", r.Missing)
	}
	text := callreel("", "report", path).stdout
	checkTerminalSafe(t, text)
	for _, want := range []string{
		"  also loop > 1s: loop had not returned after 1.80 ms, thread 78 bio\\x1b[2J, at 2023-11-14",
		"  also the end of the process (signal \\x1b[31mSIGSEGV)\n",
		"  missing: 100.00 us of all threads, from 0 ns of the window on\n",
		"  missing: 400.00 us of thread 78 bio",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q isn't in\n%.800s", want, text)
		}
	}
}

func TestReportOfADumpIsBounded(t *testing.T) {
	d := reel.Dump{Triggers: []reel.Trigger{slowWork}}
	for range 1000 {
		d.Triggers = append(d.Triggers, slowWork)
		d.Missing = append(d.Missing, reel.Missing{To: 5})
	}
	text := callreel("", "report", makeDump(t, d)).stdout
	if lines := strings.Count(text, "\n"); lines > 60 || !strings.Contains(text, "  and 991 other triggers\n") || !strings.Contains(text, "  missing: 990 pieces more") {
		t.Errorf("%d lines:\n%.3000s", lines, text)
	}
	var r struct{ Triggers, Missing []any }
	realtest.Must(t, json.Unmarshal([]byte(callreel("", "report", makeDump(t, d), "--json").stdout), &r))
	if len(r.Triggers) != 1001 || len(r.Missing) != 1000 {
		t.Errorf("%d triggers, %d missing", len(r.Triggers), len(r.Missing))
	}
}
