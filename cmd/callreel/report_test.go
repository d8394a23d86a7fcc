package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// promisedReport has the keys of report --json: those that CLI.md promises, and those that stand beside them.
type promisedReport struct {
	Functions      []viewer.Function `json:"functions"`
	Threads        []threadJSON      `json:"threads"`
	Dropped        *uint64           `json:"dropped"`
	Damaged        []string          `json:"damaged"`
	Calls          uint64            `json:"calls"`
	Events         uint64            `json:"events"`
	LostExits      uint64            `json:"lost_exits"`
	UnmatchedExits uint64            `json:"unmatched_exits"`
	DurationNS     uint64            `json:"duration_ns"`
	Closed         bool              `json:"closed"`
	TicksPerSecond uint64            `json:"ticks_per_second"`
	Scheduling     *schedulingJSON   `json:"scheduling"`
}

func TestReportJSONHasThePromisedKeys(t *testing.T) {
	path := makeReel(t, "main", "outer", "inner")
	a := callreel("", "report", path, "--json")
	r := realtest.DecodeExactly[promisedReport](t, a.stdout)
	if a.code != exitDone || a.stderr != "" || len(r.Functions) != 2 || len(r.Threads) != 1 || r.Dropped == nil || r.Damaged != nil || !r.Closed {
		t.Fatalf("code %d, stderr %q: %+v", a.code, a.stderr, r)
	}
	outer := viewer.Function{Name: "outer", Module: "prog", Calls: 1, TotalNS: 2000, SelfNS: 1000, P50NS: r.Functions[0].P50NS, P99NS: r.Functions[0].P99NS, MaxNS: 2000}
	if r.Functions[0] != outer {
		t.Errorf("outer is %+v, want %+v", r.Functions[0], outer)
	}
	if r.Threads[0] != (threadJSON{TID: 77, PID: 4242, Name: "main", Calls: 2}) {
		t.Errorf("the thread is %+v", r.Threads[0])
	}
	var raw struct {
		Functions []map[string]any `json:"functions"`
		Threads   []map[string]any `json:"threads"`
	}
	realtest.Must(t, json.Unmarshal([]byte(a.stdout), &raw))
	for _, key := range []string{"name", "module", "calls", "total_ns", "self_ns", "p50_ns", "p99_ns", "max_ns"} {
		if _, there := raw.Functions[0][key]; !there {
			t.Errorf("functions have no key %q", key)
		}
	}
	for _, key := range []string{"tid", "name", "calls"} {
		if _, there := raw.Threads[0][key]; !there {
			t.Errorf("threads have no key %q", key)
		}
	}
}

func TestReportOfAnEmptyReelIsValid(t *testing.T) {
	a := callreel("", "report", emptyReel(t), "--json")
	r := realtest.DecodeExactly[promisedReport](t, a.stdout)
	if a.code != exitDone || r.Functions == nil || r.Threads == nil || len(r.Functions)+len(r.Threads) != 0 {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
	a = callreel("", "report", emptyReel(t))
	if a.code != exitDone || !strings.Contains(a.stdout, "No call was recorded") {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
}

func TestReportTellsCallsThatWereUnwoundFromThoseThatReturn(t *testing.T) {
	path := makeReelOf(t, []string{"catches", "throws"}, []reel.Event{
		reel.Entry(2000, 0x10000, 1), reel.Entry(2100, 0xff00, 2), reel.Exit(2200, 0xff00, 2),
		reel.Entry(2300, 0xff00, 2), reel.Exit(2400, 0x10000, 1), // thrown through
		reel.Entry(2500, 0x10000, 1),
	})
	r := realtest.DecodeExactly[promisedReport](t, callreel("", "report", path, "--json", "--sort", "calls").stdout)
	for i, want := range []viewer.Function{{Name: "catches", Calls: 2, Unfinished: 1}, {Name: "throws", Calls: 2, Implicit: 1}} {
		if f := r.Functions[i]; f.Name != want.Name || f.Calls != want.Calls || f.Unfinished != want.Unfinished || f.Implicit != want.Implicit {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	text := callreel("", "report", path).stdout
	if !strings.Contains(text, "prog!throws  (1 ended without returning)\n") || !strings.Contains(text, "prog!catches  (1 unfinished)\n") {
		t.Errorf("the text doesn't say which calls ended without returning:\n%s", text)
	}
}

// What was open at the end is told apart, and isn't what functions are ordered by; there are no percentiles of it.
func TestReportTellsUnfinishedTimeApart(t *testing.T) {
	path := makeReelOf(t, []string{"waits", "works"}, []reel.Event{
		reel.Entry(2000, 0x10000, 1), reel.Entry(2100, 0xff00, 2), reel.Exit(2300, 0xff00, 2),
		reel.Entry(9000, 0xff00, 2), reel.Exit(9100, 0xff00, 2),
	})
	for _, sort := range []string{"total", "self", "max"} {
		a := callreel("", "report", path, "--json", "--sort", sort)
		r := realtest.DecodeExactly[promisedReport](t, a.stdout)
		works, waits := r.Functions[0], r.Functions[1]
		if works.Name != "works" || works.P50NS.NS == 0 || works.UnfinishedTotalNS != 0 || works.EndedMaxNS != 0 {
			t.Errorf("--sort %s: first is %+v", sort, works)
		}
		if waits.Unfinished != 1 || waits.P50NS.Known || waits.P99NS.Known || waits.TotalNS < 7100 || waits.UnfinishedTotalNS != waits.TotalNS || waits.UnfinishedSelfNS != waits.SelfNS || waits.MaxNS != waits.TotalNS {
			t.Errorf("--sort %s: %+v", sort, waits)
		}
		if !strings.Contains(a.stdout, `"p50_ns":null,"p99_ns":null`) {
			t.Errorf("--sort %s: percentiles of nothing: %s", sort, a.stdout)
		}
	}
	if text := callreel("", "report", path).stdout; !strings.Contains(text, "prog!waits  (1 unfinished), open for 7.10 us\n") {
		t.Errorf("the text doesn't say how long the call was open:\n%s", text)
	}
}

func TestReportSaysOfReturnsAloneWhatCanBe(t *testing.T) {
	path := makeReelOf(t, []string{"f"}, []reel.Event{reel.Exit(2000, 0x10000, 1), reel.Entry(2100, 0x10000, 1), reel.Exit(2200, 0x10000, 1)})
	text := callreel("", "report", path).stdout
	if !strings.Contains(text, "; 1 return of calls that began before the recording, or came into their function behind its entry\n") {
		t.Errorf("nothing was dropped:\n%s", text)
	}
}

func TestReportIsSortedAndLimited(t *testing.T) {
	path := makeReel(t, "main", "a", "b", "c")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"a", "b", "c"}},
		{[]string{"--sort", "max", "--limit", "1"}, []string{"a"}},
		{[]string{"--limit", "7"}, []string{"a", "b", "c"}},
		{[]string{"-f", "[bc]"}, []string{"b", "c"}},
		{[]string{"-f", "c", "-f", "a"}, []string{"a", "c"}},
	} {
		r := realtest.DecodeExactly[promisedReport](t, callreel("", append([]string{"report", path, "--json"}, c.args...)...).stdout)
		var got []string
		for _, f := range r.Functions {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
		if r.Calls != 3 {
			t.Errorf("%q: %d calls in all, want 3: what is shown does not change what was recorded", c.args, r.Calls)
		}
	}
	if a := callreel("", "report", path, "--limit", "1"); !strings.Contains(a.stdout, "and 2 other functions\n") {
		t.Errorf("the text hides that there are more:\n%s", a.stdout)
	}
}

func TestReportListsTheBusiestThreadsAndSumsUpTheOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "threads.reel")
	header := reel.Header{PID: 4242, Exe: "/bin/prog", Tool: "callreel test", Clock: madereel.Nanoseconds(1000)}
	w := madereel.Create(t, path, header, reel.Image{Path: "/bin/prog", ID: "c0ffee", Arch: "amd64"}, "f")
	for i := range 30 { // the last made most calls
		var events []reel.Event
		for call := range uint64(i + 1) {
			events = append(events, reel.Entry(2000+2*call, 0x10000, 1), reel.Exit(2001+2*call, 0x10000, 1))
		}
		madereel.Thread(t, w, reel.Thread{TID: 100 + i, Process: 4242, Name: "work"}, events...)
	}
	realtest.Must(t, w.Close())
	for _, c := range []struct {
		args []string
		rows int
		sum  string
	}{
		{nil, 20, "          55 calls  of 10 other threads\n"},
		{[]string{"--limit", "2"}, 2, "         406 calls  of 28 other threads\n"},
		{[]string{"--limit", "30"}, 30, ""},
	} {
		text := callreel("", append([]string{"report", path}, c.args...)...).stdout
		_, rows, _ := strings.Cut(text, "\nthreads\n")
		if n := strings.Count(rows, " work\n"); n != c.rows || !strings.HasPrefix(rows, "          30 calls      129 work\n          29 calls      128 work\n") {
			t.Errorf("%q: %d threads, want the busiest %d:\n%s", c.args, n, c.rows, rows)
		}
		if strings.Contains(rows, "other thread") != (c.sum != "") || !strings.Contains(rows, c.sum) {
			t.Errorf("%q: no %q in\n%s", c.args, c.sum, rows)
		}
	}
	if r := realtest.DecodeExactly[promisedReport](t, callreel("", "report", path, "--json", "--limit", "2").stdout); len(r.Threads) != 30 {
		t.Errorf("%d threads in JSON, want all", len(r.Threads))
	}
}

func TestReportNamesWhatIsNearAGlobThatMatchesNothing(t *testing.T) {
	path := makeReel(t, "main", "hash_collide", "render")
	for _, f := range []string{"hash_colide", "*colli", "HASH"} {
		a := callreel("", "report", path, "-f", f)
		if a.code != exitUsage || !strings.Contains(a.stderr, "hash_collide") || strings.Contains(a.stderr, "render") {
			t.Errorf("%s: code %d, %q", f, a.code, a.stderr)
		}
	}
}

func TestHostileNamesNeverReachATerminal(t *testing.T) {
	path := makeReel(t, hostileNames[0], hostileNames...)
	a := callreel("", "report", path)
	if a.code != exitDone {
		t.Fatalf("code %d: %s", a.code, a.stderr)
	}
	checkTerminalSafe(t, a.stdout)
	if n := strings.Count(a.stdout, "prog!"); n != len(hostileNames) {
		t.Errorf("%d lines of functions, want %d", n, len(hostileNames))
	}
	a = callreel("", "report", path, "--json")
	checkTerminalSafe(t, strings.ReplaceAll(a.stdout, "\u202e", "")) // valid in JSON, and obeyed by no terminal's state
	if r := realtest.DecodeExactly[promisedReport](t, a.stdout); len(r.Functions) != len(hostileNames) {
		t.Errorf("%d functions, want %d", len(r.Functions), len(hostileNames))
	}
	for _, name := range hostileNames {
		if a := callreel("", "report", path, "-f", "x"+name); a.code != exitUsage {
			t.Errorf("-f x%q: code %d", name, a.code)
		} else {
			checkTerminalSafe(t, a.stderr)
		}
	}
}

func TestDamagedReelIsReportedAndSaysWhatWasLost(t *testing.T) {
	cut := cutEvents(t, makeReel(t, "main", "outer", "inner"))
	a := callreel("", "report", cut, "--json")
	if r := realtest.DecodeExactly[promisedReport](t, a.stdout); a.code != exitDone || len(r.Damaged) == 0 || r.Closed || r.Threads[0].Name != "main" {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
	a = callreel("", "report", cut)
	if a.code != exitDone || !strings.Contains(a.stdout, "damaged: ") || !strings.Contains(a.stdout, "not ended by its recorder") {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
}
