package export

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/reel"
)

// dumped is a dump: of a call of work that took 300 ns, of one of main that had not returned, and of the end of the process.
func dumped(t *testing.T) *reel.File {
	return record(t, reel.ClockFull, []string{"main", "work"}, func(w *reel.Writer) {
		tw, err := w.Thread(reel.Thread{TID: 78, Process: 77, Name: "thread"})
		if err == nil {
			err = tw.Append([]reel.Event{
				reel.Entry(1500, base, 1), reel.Entry(2100, base-64, 2), reel.Exit(2200, base-64, 2), reel.Entry(2300, base-64, 2), reel.Exit(2600, base-64, 2),
			})
		}
		if err == nil {
			err = w.Dump(reel.Dump{From: 2000, To: 3000, Triggers: []reel.Trigger{
				{Condition: "work > 250ns", Function: 2, Thread: 1, Start: 2310, End: 2610, SP: base - 64}, // its clock was read behind the entry
				{Condition: "main > 1us\xff", Function: 1, Thread: 1, Start: 1500, SP: base},
				{Kind: reel.TriggerEnd, Thread: 1, Detail: "signal \"SIGSEGV\""},
				{Condition: "gone", Function: 2, Thread: 1, Start: 2311, End: 2610, SP: base},
			}, Missing: []reel.Missing{{From: 2000, To: 2050}, {Thread: 1, From: 2050, To: math.MaxUint64}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestDumpsTriggersAreInstants(t *testing.T) {
	f := dumped(t)
	got := []string{}
	for _, e := range export(t, f, Options{}).Events {
		if e.Ph == "i" && e.Cat == "callreel" && !strings.HasPrefix(e.Name, "calls open") {
			got = append(got, fmt.Sprintf("%s at %v in %d (%s): %v", e.Name, *e.TS, e.TID, e.S, e.Args["duration_ns"]))
		}
	}
	want := []string{
		"trigger: work > 250ns at 1.1 in 78 (t): 300",
		"trigger: main > 1us\ufffd at 1.5 in 78 (t): 1500",
		"missing from the dump at 0.5 in 0 (g): 50",
		"missing from the dump at 0.55 in 0 (g): 950",
		"trigger: gone at 1.11 in 0 (g): 299",
		"trigger: end at 1.5 in 0 (g): 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("instants are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	comments := strings.Join(parsePProf(t, exportTo(t, f, "pb.gz", Options{})).Comments, "\n")
	for _, c := range []string{"a dump of the last 1000 ns", "trigger: work > 250ns: work took 300 ns, thread 78 thread", "main had not returned after 1500 ns", "trigger: end, thread 78 thread, signal \"SIGSEGV\"", "missing: 50 ns of thread 0 (0: all)"} {
		if !strings.Contains(comments, c) {
			t.Errorf("pprof's comments have no %q:\n%s", c, comments)
		}
	}
}

func TestReadersTakeDumps(t *testing.T) {
	f := dumped(t)
	pftrace, text := exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})
	rows := traceProcessor(t, []string{pftrace, text},
		`select name, ts - (select min(ts) from slice where name = 'main'), dur from slice where category = 'callreel' and name not like 'calls open%' order by name`,
		`select s.name, t.tid from slice s join thread_track k on s.track_id = k.id join thread t using (utid) where s.name like 'trigger: work%'`,
		`select name, value from stats where value > 0 and severity != 'info'`)
	for k, want := range []string{
		"[[missing from the dump 500 0] [missing from the dump 550 0] [trigger: end 1500 0] [trigger: gone 1110 0] [trigger: main > 1us\ufffd 1500 0] [trigger: work > 250ns 1100 0]]",
		"[[missing from the dump 500 0] [missing from the dump 550 0] [trigger: end 1500 0] [trigger: gone 1110 0] [trigger: main > 1us\ufffd 1500 0] [trigger: work > 250ns 1100 0]]",
	} {
		if got := fmt.Sprint(rows[k][0]); got != want {
			t.Errorf("%d: trace_processor has\n%s\nwant\n%s", k, got, want)
		}
		if got := fmt.Sprint(rows[k][1]); got != "[[trigger: work > 250ns 78]]" {
			t.Errorf("%d: the trigger's thread: %s", k, got)
		}
		if len(rows[k][2]) > 0 {
			t.Errorf("%d: trace_processor warns: %v", k, rows[k][2])
		}
	}
}

func TestDumpsCountersAreOfItsWindow(t *testing.T) {
	f := dumped(t)
	began, peak := 0.0, 0.0
	for _, e := range export(t, f, Options{}).Events {
		if e.Ph == "C" && e.Name == "open calls" {
			if at := *e.TS; began == 0 {
				began = at
			}
			peak = max(peak, e.Args["value"].(float64))
		}
	}
	if began != 0.5 || peak != 2 {
		t.Errorf("open calls are counted from %v on, at most %v", began, peak)
	}
}
