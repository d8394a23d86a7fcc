package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// budgetedReel is of 10 ms: "request" calls "parse" each 100 µs, "parse" was off from 4 ms to 8 ms, "hash" and "copy\x1b[31m" always. parsed says that parse's
// calls are recorded.
func budgetedReel(t *testing.T, parsed bool, offs []reel.Off, budget *reel.Budget) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "budgeted.reel")
	w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(1_000_000)}, reel.Image{Path: "/bin/server"}, "request", "parse", "hash", "copy\x1b[31m")
	tw, err := w.Thread(reel.Thread{TID: 7, Process: 7, Name: "t"})
	realtest.Must(t, err)
	const sp = 1 << 20
	for at := uint64(1_000_000); at < 11_000_000; at += 100_000 {
		events := []reel.Event{reel.Entry(at, sp, 1)}
		if parsed && (at < 5_000_000 || at >= 9_000_000) {
			events = append(events, reel.Entry(at+10_000, sp-64, 2), reel.Exit(at+40_000, sp-64, 2))
		}
		realtest.Must(t, tw.Append(append(events, reel.Exit(at+90_000, sp, 1))))
	}
	realtest.Must(t, w.ClockPair(11_000_000, 1))
	realtest.Must(t, w.Off(offs))
	if budget != nil {
		realtest.Must(t, w.Budget(*budget))
	}
	realtest.Must(t, w.Close())
	return path
}

// someOff are the times of budgetedReel.
var someOff = []reel.Off{{Function: 2, From: 5_000_000, To: 9_000_000, Estimated: 40}, {Function: 3, From: 1_000_000, To: 11_000_000, Estimated: 12_345}, {Function: 4, From: 1_000_000}}

func TestReportTellsOfFunctionsThatWereOff(t *testing.T) {
	path := budgetedReel(t, true, someOff, &reel.Budget{Wanted: 0.02, Measured: 0.017, Uncertainty: 0.003, CallsShare: 0.06, TimeShare: 0.89, SitesRemoved: 9})
	text := callreel("", "report", path).stdout
	if want := "budget 2 %: measured 1.7 % ± 0.3; 6 % of calls and 89 % of the time of functions are recorded; 3 functions were off for some time\n"; !strings.HasPrefix(text, want) {
		t.Errorf("the report begins with\n%s", text)
	}
	if want := "server!parse  (off for 4.00 ms, 40 %; about 40 calls then)\n"; !strings.Contains(text, want) {
		t.Errorf("the report doesn't say %q:\n%s", want, text)
	}
	if strings.Contains(text, "hash") {
		t.Errorf("a function without calls is listed:\n%s", text)
	}
	text = callreel("", "report", path, "--off").stdout
	for _, want := range []string{
		`10\.00 ms +100 % +1 +0 ns +10\.00 ms +12,345  server!hash\n`,
		`10\.00 ms +100 % +1 +0 ns +10\.00 ms +-  server!copy\\x1b\[31m\n`,
		`4\.00 ms +40 % +1 +4\.00 ms +8\.00 ms +40  server!parse\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("--off doesn't say %q:\n%s", want, text)
		}
	}
	if text := callreel("", "report", path, "--off", "--limit", "1").stdout; !strings.Contains(text, "and 2 other functions\n") {
		t.Errorf("--limit 1:\n%s", text)
	}
	if text := callreel("", "report", path, "--off", "-f", "request").stdout; !strings.Contains(text, "no function was off\n") {
		t.Errorf("-f request:\n%s", text)
	}
}

func TestReportSaysAsJSONWhatWasOff(t *testing.T) {
	type answer struct {
		Functions []struct {
			Name      string   `json:"name"`
			OffNS     uint64   `json:"off_ns"`
			OffShare  *float64 `json:"off_share"`
			Estimated uint64   `json:"estimated_calls"`
		} `json:"functions"`
		Budget *budgetJSON `json:"budget"`
		Off    []offJSON   `json:"off"`
		Count  uint64      `json:"functions_off"`
	}
	read := func(args ...string) (r answer) {
		t.Helper()
		a := callreel("", append([]string{"report", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(a.stdout), &r); err != nil {
			t.Fatalf("%v: %s%s", err, a.stdout, a.stderr)
		}
		return r
	}
	path := budgetedReel(t, true, someOff, &reel.Budget{Wanted: 0.02, Measured: 0.017, Uncertainty: 0.003, CallsShare: 0.06, TimeShare: 0.89, SitesRemoved: 9})
	r := read(path)
	if len(r.Functions) != 2 || r.Functions[0].OffShare != nil || r.Functions[1].OffNS != 4_000_000 || *r.Functions[1].OffShare != 0.4 || r.Functions[1].Estimated != 40 {
		t.Errorf("functions: %+v", r.Functions)
	}
	if b := r.Budget; b == nil || b.Wanted != 0.02 || *b.Measured != 0.017 || *b.Uncertainty != 0.003 || b.FunctionsOff != 3 || b.SitesRemoved != 9 || *b.CallsRecorded != 0.06 || *b.TimeRecorded != 0.89 {
		t.Errorf("budget: %+v", b)
	}
	if r.Count != 3 || r.Off != nil {
		t.Errorf("%d functions off, %+v", r.Count, r.Off)
	}
	want := []offJSON{{"parse", "server", 4_000_000, 8_000_000, 40}, {"hash", "server", 0, 10_000_000, 12_345}, {"copy\x1b[31m", "server", 0, 10_000_000, 0}}
	if r := read(path, "--off"); len(r.Off) != 3 || r.Off[0] != want[0] || r.Off[1] != want[1] || r.Off[2] != want[2] {
		t.Errorf("off: %+v", r.Off)
	}
	r = read(budgetedReel(t, true, someOff, &reel.Budget{Wanted: 0.02}))
	if r.Budget == nil || r.Budget.Measured != nil || r.Budget.Uncertainty != nil || r.Budget.CallsRecorded != nil || r.Budget.TimeRecorded != nil {
		t.Errorf("a budget of which nothing is known: %+v", r.Budget)
	}
	if r := read(budgetedReel(t, true, nil, nil), "--off"); r.Budget != nil || r.Count != 0 || r.Off == nil {
		t.Errorf("with nothing off: %+v", r)
	}
}

func TestReportWithoutABudgetTellsOfOffs(t *testing.T) {
	text := callreel("", "report", budgetedReel(t, true, someOff[:1], nil)).stdout
	if want := "1 function was off for some time: its calls then are missing, and their time counts as their callers'\n"; !strings.HasPrefix(text, want) {
		t.Errorf("the report begins with\n%s", text)
	}
	if text := callreel("", "report", budgetedReel(t, true, nil, nil)).stdout; strings.Contains(text, " off") {
		t.Errorf("nothing was off, and it says\n%s", text)
	}
}

// A function that was off in one of two reels has not come, gone, or become rarer there.
func TestDiffTakesFunctionsThatWereOffForNeitherNewNorGone(t *testing.T) {
	with := budgetedReel(t, true, nil, nil)
	half := budgetedReel(t, true, someOff[:1], nil)
	without := budgetedReel(t, false, []reel.Off{{Function: 2, From: 1_000_000}}, nil)
	type answer struct {
		Functions []struct {
			Name      string `json:"name"`
			SlowerNS  int64  `json:"slower_ns"`
			NewNS     int64  `json:"new_path_ns"`
			MissingNS int64  `json:"missing_path_ns"`
			MoreNS    int64  `json:"more_calls_ns"`
			OffNS     int64  `json:"off_ns"`
			OffA      bool   `json:"off_a"`
			OffB      bool   `json:"off_b"`
		} `json:"functions"`
		A, B struct {
			Off int `json:"functions_off"`
		}
		Split map[string]int64 `json:"split"`
	}
	compare := func(a, b string) (r answer) {
		t.Helper()
		realtest.Must(t, json.Unmarshal([]byte(callreel("", "diff", a, b, "--json").stdout), &r))
		return r
	}
	gone, come, same := compare(with, without), compare(without, with), compare(half, with)
	for name, r := range map[string]answer{"gone": gone, "come": come, "same": same} {
		for _, f := range r.Functions {
			if f.Name == "parse" && (f.NewNS != 0 || f.MissingNS != 0 || f.MoreNS != 0 || f.SlowerNS != 0 || f.OffA == f.OffB || f.OffB != (name == "gone")) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if r.A.Off+r.B.Off != 1 || r.Split["new_path_ns"] != 0 || r.Split["missing_path_ns"] != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if gone.Split["off_ns"] != -1_800_000 || come.Split["off_ns"] != 1_800_000 || same.Split["off_ns"] != 0 {
		t.Errorf("splits: %v, %v, %v", gone.Split, come.Split, same.Split)
	}
	text := callreel("", "diff", with, without).stdout
	for _, want := range []string{"server!parse  (off in B for some time)\n", "-1.80 ms in functions that were off in one of them\n", "; 1 function was off for some time\n", "are not gone"} {
		if !strings.Contains(text, want) {
			t.Errorf("diff doesn't say %q:\n%s", want, text)
		}
	}
	if text := callreel("", "diff", with, with).stdout; strings.Contains(text, "off") {
		t.Errorf("nothing was off:\n%s", text)
	}
}
