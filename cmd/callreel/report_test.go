package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

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
}

func TestReportJSONHasThePromisedKeys(t *testing.T) {
	path := makeReel(t, "main", "outer", "inner")
	a := callreel("", "report", path, "--json")
	r := decode[promisedReport](t, a.stdout)
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
	must(t, json.Unmarshal([]byte(a.stdout), &raw))
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
	r := decode[promisedReport](t, a.stdout)
	if a.code != exitDone || r.Functions == nil || r.Threads == nil || len(r.Functions)+len(r.Threads) != 0 {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
	a = callreel("", "report", emptyReel(t))
	if a.code != exitDone || !strings.Contains(a.stdout, "No call was recorded") {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
}

func TestReportTellsCallsThatWereLeftFromThoseThatReturn(t *testing.T) {
	path := makeReelOf(t, []string{"catches", "throws"}, []reel.Event{
		reel.Entry(2000, 0x10000, 1), reel.Entry(2100, 0xff00, 2), reel.Exit(2200, 0xff00, 2),
		reel.Entry(2300, 0xff00, 2), reel.Exit(2400, 0x10000, 1), // thrown through
		reel.Entry(2500, 0x10000, 1),
	})
	r := decode[promisedReport](t, callreel("", "report", path, "--json", "--sort", "calls").stdout)
	for i, want := range []viewer.Function{{Name: "catches", Calls: 2, Unfinished: 1}, {Name: "throws", Calls: 2, Implicit: 1}} {
		if f := r.Functions[i]; f.Name != want.Name || f.Calls != want.Calls || f.Unfinished != want.Unfinished || f.Implicit != want.Implicit {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	text := callreel("", "report", path).stdout
	if !strings.Contains(text, "prog!throws  (1 left without returning)\n") || !strings.Contains(text, "prog!catches  (1 unfinished)\n") {
		t.Errorf("the text doesn't say which calls were left:\n%s", text)
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
		r := decode[promisedReport](t, callreel("", append([]string{"report", path, "--json"}, c.args...)...).stdout)
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
	if r := decode[promisedReport](t, a.stdout); len(r.Functions) != len(hostileNames) {
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
	if r := decode[promisedReport](t, a.stdout); a.code != exitDone || len(r.Damaged) == 0 || r.Closed || r.Threads[0].Name != "main" {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
	a = callreel("", "report", cut)
	if a.code != exitDone || !strings.Contains(a.stdout, "damaged: ") || !strings.Contains(a.stdout, "not ended by its recorder") {
		t.Errorf("code %d: %s", a.code, a.stdout)
	}
}
