package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// markedReel has 10 queries of 1 ms, that of each third number twice as long, a counter, an instant and a pause.
func markedReel(t *testing.T, slower uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "marked.reel")
	w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(1_000_000)}, reel.Image{Path: "/bin/db"}, "main")
	none := func(m reel.Marker) reel.Marker {
		m.TitleArg, m.IDArg = -1, -1
		if m.Kind != reel.MarkCounter {
			m.ValueArg = -1
		}
		return m
	}
	_, err := w.AddMarkers([]reel.Marker{
		none(reel.Marker{Provider: "db", Name: "query__start", Title: "query", Pair: "query", Kind: reel.MarkBegin, Arguments: []reel.Argument{{Name: "arg1", Kind: reel.ArgumentInt}}}),
		none(reel.Marker{Provider: "db", Name: "query__done", Title: "query", Pair: "query", Kind: reel.MarkEnd}),
		none(reel.Marker{Provider: "callreel", Name: "counter__queue", Title: "queue", Kind: reel.MarkCounter, Arguments: []reel.Argument{{Name: "value", Kind: reel.ArgumentInt}}}),
		none(reel.Marker{Provider: "db", Name: "checkpoint", Title: "check\x1b[31mpoint", Kind: reel.MarkInstant}),
	})
	realtest.Must(t, err)
	tw, err := w.Thread(reel.Thread{TID: 7, Process: 7, Name: "t"})
	realtest.Must(t, err)
	now := uint64(2_000_000)
	for i := range uint64(10) {
		length := slower * 1_000_000
		if i%3 == 0 {
			length *= 2
		}
		realtest.Must(t, tw.Marks([]reel.Mark{
			{Time: now, Marker: 1, Values: []reel.Value{{Bits: i % 3}}},
			{Time: now + 1000, Marker: 3, Values: []reel.Value{{Bits: i}}},
			{Time: now + length, Marker: 2},
			{Time: now + length + 10, Marker: 4},
		}))
		now += length + 100_000
	}
	realtest.Must(t, w.Pause(reel.Pause{From: now, To: now + 5_000_000, By: "command"}))
	realtest.Must(t, w.Close())
	return path
}

func TestReportSumsUpMarks(t *testing.T) {
	path := markedReel(t, 1)
	var r struct {
		Spans    []SpanJSON    `json:"spans"`
		Counters []counterJSON `json:"counters"`
		Instants []instantJSON `json:"instants"`
		Flows    []flowJSON    `json:"flows"`
		Pauses   []pauseJSON   `json:"pauses"`
	}
	realtest.Must(t, json.Unmarshal([]byte(callreel("", "report", path, "--json").stdout), &r))
	if len(r.Spans) != 1 || r.Spans[0].Name != "query" || r.Spans[0].Count != 10 || r.Spans[0].TotalNS != 14_000_000 || r.Spans[0].MaxNS != 2_000_000 {
		t.Errorf("spans: %+v", r.Spans)
	}
	if len(r.Counters) != 1 || r.Counters[0].Count != 10 || r.Counters[0].Min != 0 || r.Counters[0].Mean != 4.5 || r.Counters[0].Max != 9 || r.Counters[0].Last != 9 {
		t.Errorf("counters: %+v", r.Counters)
	}
	if len(r.Instants) != 1 || r.Instants[0].Count != 10 || r.Flows == nil || len(r.Flows) != 0 {
		t.Errorf("instants: %+v, flows: %+v", r.Instants, r.Flows)
	}
	if len(r.Pauses) != 1 || r.Pauses[0].DurationNS != 5_000_000 || r.Pauses[0].By != "command" {
		t.Errorf("pauses: %+v", r.Pauses)
	}
	text := callreel("", "report", path).stdout
	for _, want := range []string{"db:query", "queue", "paused 1 time, for 5.00 ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report doesn't say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("a name reaches the terminal:\n%q", text)
	}
}

func TestSpansAreSummedUpByAnArgument(t *testing.T) {
	path := markedReel(t, 1)
	var r struct {
		Groups []struct {
			Value string `json:"value"`
			Name  string `json:"name"`
			Count uint64 `json:"count"`
			MaxNS uint64 `json:"max_ns"`
		} `json:"groups"`
	}
	realtest.Must(t, json.Unmarshal([]byte(callreel("", "report", path, "--span", "que*", "--by", "arg1", "--json").stdout), &r))
	if len(r.Groups) != 3 || r.Groups[0].Value != "0" || r.Groups[0].Count != 4 || r.Groups[0].MaxNS != 2_000_000 || r.Groups[1].Count != 3 {
		t.Errorf("groups: %+v", r.Groups)
	}
	for _, args := range [][]string{{"--span", "query"}, {"--span", "query", "--by", "nothing"}, {"--span", "qury", "--by", "arg1"}, {"--span", "query", "--by", "arg1", "-f", "main"}} {
		if a := callreel("", append([]string{"report", path}, args...)...); a.code != exitUsage {
			t.Errorf("%q: code %d, %s", args, a.code, a.stderr)
		}
	}
}

func TestDiffComparesSpans(t *testing.T) {
	a, b := markedReel(t, 1), markedReel(t, 3)
	var r struct {
		Spans []spanChangeJSON `json:"spans"`
	}
	realtest.Must(t, json.Unmarshal([]byte(callreel("", "diff", a, b, "--json").stdout), &r))
	if len(r.Spans) != 1 || r.Spans[0].Name != "query" || r.Spans[0].A == nil || r.Spans[0].B == nil || r.Spans[0].SlowerNS < 25_000_000 || r.Spans[0].SlowerNS > 31_000_000 {
		t.Errorf("spans: %+v", r.Spans)
	}
	if text := callreel("", "diff", a, b).stdout; !strings.Contains(text, "db:query") {
		t.Errorf("the diff doesn't tell of the span:\n%s", text)
	}
}

// What has no place for marks says how many it leaves out; what has one says nothing.
func TestExportSaysWhatOfMarksIsLeftOut(t *testing.T) {
	path := markedReel(t, 1)
	for format := range exportFormats {
		a := callreel("", "export", path, "--format", format, "-o", filepath.Join(t.TempDir(), "out"))
		want := "10 spans, 10 counter values, 10 instants, 1 pause"
		if format == "chrome" || format == "perfetto" {
			want = ""
		}
		if a.code != exitDone || want == "" && a.stderr != "" || !strings.Contains(a.stderr, want) {
			t.Errorf("%s: code %d, stderr %q, want %q", format, a.code, a.stderr, want)
		}
	}
}

func TestPausesThatOverlapCountOnce(t *testing.T) {
	list := []pauseJSON{{0, 10, "program", 1}, {5, 10, "command", 1}, {6, 2, "program", 1}, {7, 4, "program", 2}, {20, 5, "page", 1}}
	if got := pausedFor(list); got != 15+4+5 {
		t.Errorf("%d", got)
	}
}
