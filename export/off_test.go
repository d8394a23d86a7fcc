package export

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// budgeted is a reel of 2 µs in which "parse" was off for a part of the time, and "hash" and "copy" together from before its beginning on; so were
// more functions for a while, each for itself, if many.
func budgeted(t *testing.T, many int) *reel.File {
	names := []string{"main", "parse", "hash", "copy\xff"}
	for i := range many {
		names = append(names, fmt.Sprint("f", i))
	}
	return record(t, reel.ClockFull, names, func(w *reel.Writer) {
		tw, err := w.Thread(reel.Thread{TID: 78, Process: 77, Name: "thread"})
		if err == nil {
			err = tw.Append([]reel.Event{reel.Entry(1000, base, 1), reel.Entry(1100, base-64, 2), reel.Exit(1200, base-64, 2), reel.Exit(3000, base, 1)})
		}
		offs := []reel.Off{{Function: 2, From: 1500, To: 2500, Estimated: 12}, {Function: 3, From: 10, To: 2000}, {Function: 4, From: 10, To: 2000}}
		for i := range many {
			offs = append(offs, reel.Off{Function: uint32(5 + i), From: 2600 + uint64(i)%300, To: 2600 + uint64(i)})
		}
		for _, e := range []error{err, w.Off(offs), w.Budget(reel.Budget{Wanted: 0.02, Measured: 0.017, Uncertainty: 0.003, CallsShare: 0.06, TimeShare: 0.89})} {
			if e != nil {
				t.Fatal(e)
			}
		}
	})
}

const budgetedText = "budget 2 %, measured 1.7 %: 6 % of calls and 89 % of the time of functions are recorded; 3 functions were off for some time"

func TestExportsSayWhatWasOff(t *testing.T) {
	f := budgeted(t, 0)
	got := []string{}
	for _, e := range export(t, f, Options{}).Events {
		if e.Ph == "i" && e.Cat == "callreel" {
			got = append(got, fmt.Sprintf("%s at %v (%s): %v", e.Name, *e.TS, e.S, e.Args))
		}
	}
	want := []string{
		"not everything was recorded at 0 (g): map[text:" + budgetedText + "]",
		"not recorded: hash and 1 more at 0.001 (g): map[duration_ns:1000 functions:hash, copy\ufffd functions_off:2]",
		"not recorded: parse at 0.5 (g): map[duration_ns:1000 estimated_calls:12 functions:parse functions_off:1]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("instants are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if comments := parsePProf(t, exportTo(t, f, "pb.gz", Options{})).Comments; !slices.Contains(comments, budgetedText) {
		t.Errorf("pprof's comments are %q", comments)
	}
	var scope struct {
		Name string `json:"name"`
	}
	text, err := os.ReadFile(exportTo(t, f, "speedscope", Options{}))
	realtest.Must(t, err)
	realtest.Must(t, json.Unmarshal(text, &scope))
	if !strings.HasSuffix(scope.Name, ", "+budgetedText) {
		t.Errorf("speedscope's file is named %q", scope.Name)
	}
	whole := record(t, reel.ClockFull, []string{"main"}, func(*reel.Writer) {})
	if text := Unrecorded(whole); text != "" {
		t.Errorf("of a reel with everything: %s", text)
	}
}

func TestReadersTakeFunctionsThatWereOff(t *testing.T) {
	f := budgeted(t, 0)
	for k, got := range traceProcessor(t, []string{exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})},
		`select name, ts - (select min(ts) from slice where name = 'main'), dur from slice where category = 'callreel' order by ts, name`,
		`select extract_arg(arg_set_id, 'debug.functions'), extract_arg(arg_set_id, 'args.functions') from slice where name = 'not recorded: parse'`,
		`select name, value from stats where value > 0 and severity != 'info'`) {
		// In JSON nothing is at the time of what is before it.
		if got, want := fmt.Sprint(got[0]), fmt.Sprintf("[[not everything was recorded 0 0] [not recorded: hash and 1 more %d 0] [not recorded: parse 500 0]]", k); got != want {
			t.Errorf("%d: trace_processor has\n%s\nwant\n%s", k, got, want)
		}
		if !strings.Contains(fmt.Sprint(got[1]), "parse") {
			t.Errorf("%d: arguments: %v", k, got[1])
		}
		if len(got[2]) > 0 {
			t.Errorf("%d: trace_processor warns: %v", k, got[2])
		}
	}
}

// However often functions went off, a bounded number of events says so, and how many there are more.
func TestTimesOffAreBounded(t *testing.T) {
	f := budgeted(t, 3000)
	n, last := 0, ""
	for _, e := range export(t, f, Options{}).Events {
		if e.Ph == "i" && e.Cat == "callreel" {
			n, last = n+1, e.Name
		}
	}
	if n != maxOffs+2 || !strings.HasPrefix(last, "functions went off ") {
		t.Errorf("%d instants, the last is %q", n, last)
	}
}
