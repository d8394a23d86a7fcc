package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/callreel/callreel/reel"
)

const base = 0x7ffe0000 // top of a stack

// chromeEvent is an event as a reader of the format sees it.
type chromeEvent struct {
	Ph   string         `json:"ph"`
	Name string         `json:"name"`
	Cat  string         `json:"cat"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	TS   *float64       `json:"ts"`
	Dur  float64        `json:"dur"`
	ID   any            `json:"id"`
	S    string         `json:"s"`
	ID2  map[string]any `json:"id2"`
	Args map[string]any `json:"args"`
}

type chromeFile struct {
	Events []chromeEvent  `json:"traceEvents"`
	Unit   string         `json:"displayTimeUnit"`
	Other  map[string]any `json:"otherData"`
	text   []byte
}

// record writes a reel with fill and opens it. Ticks are nanoseconds from 1000.
func record(tb testing.TB, mode reel.ClockMode, names []string, fill func(w *reel.Writer)) *reel.File {
	tb.Helper()
	return recordAs(tb, reel.Header{Clock: reel.Clock{Mode: mode}}, names, fill)
}

// recordAs is record with what else the header says.
func recordAs(tb testing.TB, h reel.Header, names []string, fill func(w *reel.Writer)) *reel.File {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "test.reel")
	h.PID, h.Exe, h.Host, h.Tool = 77, "/usr/bin/prog", "here", "callreel test"
	if h.Clock.TicksPerSecond == 0 {
		h.Clock.TicksPerSecond = 1e9
	}
	h.Clock.BaseTick, h.Clock.BaseUnixNS = 1000, 1_700_000_000_000_000_000
	w, err := reel.Create(name, h, reel.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = w.AddImage(reel.Image{Path: "/usr/lib/libx.so"})
	if err != nil {
		tb.Fatal(err)
	}
	functions := []reel.Function{}
	for _, n := range names {
		functions = append(functions, reel.Function{Name: n, Image: 1})
	}
	if _, err = w.AddFunctions(functions); err != nil {
		tb.Fatal(err)
	}
	fill(w)
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	f, err := reel.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

func appendTo(tb testing.TB, w *reel.Writer, t reel.Thread, events ...reel.Event) *reel.ThreadWriter {
	tb.Helper()
	tw, err := w.Thread(t)
	if err == nil {
		err = tw.Append(events)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return tw
}

// export writes the reel, reads it back and checks what must hold for any trace.
func export(t *testing.T, f *reel.File, opt Options) chromeFile {
	t.Helper()
	var out bytes.Buffer
	if err := Chrome(context.Background(), f, &out, opt); err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(out.Bytes()) {
		t.Error("the output is not UTF-8")
	}
	var file chromeFile
	if err := json.Unmarshal(out.Bytes(), &file); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, out.Bytes())
	}
	checkNesting(t, file)
	return file
}

// checkNesting checks that in each lane times increase and ends match the innermost begin.
func checkNesting(t *testing.T, file chromeFile) {
	t.Helper()
	stacks := map[int][]string{}
	last := map[int]float64{}
	for i, e := range file.Events {
		if e.TS == nil {
			t.Fatalf("event %d has no time: %+v", i, e)
		}
		if strings.Contains("MCXsfbne", e.Ph) || strings.HasSuffix(e.Name, "page fault") || e.Ph == "i" && e.Cat == "marker" { // these have no place in the order
			continue
		}
		if before, ok := last[e.TID]; ok && *e.TS <= before {
			t.Errorf("lane %d: time %v follows %v", e.TID, *e.TS, before)
		}
		last[e.TID] = *e.TS
		s := stacks[e.TID]
		switch e.Ph {
		case "B":
			stacks[e.TID] = append(s, e.Name)
		case "E":
			if len(s) == 0 || s[len(s)-1] != e.Name {
				t.Fatalf("event %d ends %q, open are %q", i, e.Name, s)
			}
			stacks[e.TID] = s[:len(s)-1]
		}
	}
	for tid, s := range stacks {
		if len(s) > 0 {
			t.Errorf("lane %d: %q are never ended", tid, s)
		}
	}
}

// lines writes the events of a file in short: "B lane name time", without counters and the order of lanes.
func lines(file chromeFile) []string {
	var out []string
	for _, e := range file.Events {
		if e.Ph == "C" || strings.HasSuffix(e.Name, "_sort_index") {
			continue
		}
		s := fmt.Sprintf("%s %d %s %v", e.Ph, e.TID, e.Name, *e.TS)
		if e.Args != nil {
			s += " " + strings.ReplaceAll(fmt.Sprint(e.Args), "map", "")
		}
		out = append(out, s)
	}
	return out
}

func check(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("events\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestChromeWritesCallsAsNestedPairs(t *testing.T) {
	f := record(t, reel.ClockFull, []string{"main", "work"}, func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 78, Name: "worker"},
			reel.Entry(1001, base, 1), reel.Entry(1002, base-32, 2), reel.Exit(1_234_568, base-32, 2), reel.Exit(2_000_000, base, 1))
	})
	file := export(t, f, Options{Name: strings.ToUpper})
	check(t, lines(file), []string{
		"M 0 process_name 0 [name:prog]",
		"M 78 thread_name 0 [name:worker]",
		"B 78 MAIN 0.001", "B 78 WORK 0.002", "E 78 WORK 1233.568", "E 78 MAIN 1999",
	})
	if b := file.Events[4]; b.Ph != "B" || b.Cat != "libx.so" || b.PID != 77 {
		t.Errorf("begin event %+v", b)
	}
	if file.Unit != "ns" || file.Other["start_unix_ns"] != "1700000000000000000" || file.Other["host"] != "here" || file.Other["damage"] != nil {
		t.Errorf("about the trace: unit %q, %v", file.Unit, file.Other)
	}
}

func TestChromeEndsUnwoundAndOpenCalls(t *testing.T) {
	f := record(t, reel.ClockFull, []string{"a", "b", "c"}, func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 1, Name: "t"},
			reel.Entry(1010, base, 1), reel.Entry(1020, base-32, 2), reel.Entry(1030, base-64, 3), // thrown through
			reel.Entry(1040, base-32, 2))
	})
	check(t, lines(export(t, f, Options{})), []string{
		"M 0 process_name 0 [name:prog]", "M 1 thread_name 0 [name:t]",
		"B 1 a 0.01", "B 1 b 0.02", "B 1 c 0.03", "E 1 c 0.04 [end:implicit]", "E 1 b 0.041 [end:implicit]", "B 1 b 0.042",
		"E 1 b 0.043 [end:unfinished]", "E 1 a 0.044 [end:unfinished]", "i 1 calls open when the thread or the recording ended 0.045 [calls:2]",
	})
}

func TestChromeGivesEachStackAndThreadALane(t *testing.T) {
	const coroutine = base - 64<<20
	f := record(t, reel.ClockFull, []string{"a", "b"}, func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 5, Name: "co"},
			reel.Entry(1010, base, 1), reel.Entry(1020, coroutine, 2), reel.Exit(1030, base, 1), reel.Exit(1040, coroutine, 2))
		appendTo(t, w, reel.Thread{TID: 5, Name: "later", Process: 99}, reel.Entry(2000, base, 1), reel.Exit(2001, base, 1))
	})
	check(t, lines(export(t, f, Options{})), []string{
		"M 0 process_name 0 [name:prog]", "M 0 process_name 0 [name:prog]",
		"M 5 thread_name 0 [name:co]", "B 5 a 0.01",
		"M 4194305 thread_name 0 [name:co (5), stack 2]", "s 5 stack 0.02", "B 4194305 b 0.02", "f 4194305 stack 0.02", "E 5 a 0.03", "E 4194305 b 0.04",
		"M 4194306 thread_name 0 [name:later (5)]", "B 4194306 a 1", "E 4194306 a 1.001",
	})
}

func TestChromeShowsDropsWhereTheyHappened(t *testing.T) {
	f := record(t, reel.ClockFull, []string{"a"}, func(w *reel.Writer) {
		tw := appendTo(t, w, reel.Thread{TID: 1, Name: "t"}, reel.Entry(1010, base, 1), reel.Exit(1020, base, 1))
		if err := errors.Join(tw.Dropped(7, 6, 1025), tw.Append([]reel.Event{reel.Entry(1030, base, 1), reel.Exit(1040, base, 1)}), tw.Dropped(1, 1, 0)); err != nil {
			t.Fatal(err)
		}
	})
	check(t, lines(export(t, f, Options{})), []string{
		"M 0 process_name 0 [name:prog]", "M 1 thread_name 0 [name:t]",
		"B 1 a 0.01", "E 1 a 0.02", "i 1 events dropped: the ring was full 0.025 [entries:7 exits:6]",
		"B 1 a 0.03", "E 1 a 0.04", "i 1 events dropped: the ring was full 0.041 [entries:1 exits:1]",
	})
}

func TestChromeWithoutClockShowsTheOrder(t *testing.T) {
	f := record(t, reel.ClockNone, []string{"a", "b"}, func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 1, Name: "t"}, reel.Entry(0, base, 1), reel.Entry(0, base-32, 2), reel.Exit(0, base-32, 2), reel.Exit(0, base, 1))
	})
	check(t, lines(export(t, f, Options{}))[2:], []string{"B 1 a 1", "B 1 b 2", "E 1 b 3", "E 1 a 4"})
}

func TestChromeWithClockAtExitKeepsNesting(t *testing.T) {
	f := record(t, reel.ClockExit, []string{"a", "b"}, func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 1, Name: "t"}, reel.Entry(0, base, 1), reel.Entry(0, base-32, 2), reel.Exit(1500, base-32, 2), reel.Entry(0, base-32, 2), reel.Exit(1600, base-32, 2), reel.Exit(1700, base, 1))
	})
	check(t, lines(export(t, f, Options{}))[2:], []string{"B 1 a 0", "B 1 b 0.001", "E 1 b 0.5", "B 1 b 0.501", "E 1 b 0.6", "E 1 a 0.7"})
}

func TestChromeSurvivesHostileNames(t *testing.T) {
	names := []string{"quote\" back\\slash", "\x00\x01\n\t\x7f", "bad \xff\xfe utf8 \xc3", "</script>\u2028\u2029", "żółw 龜 🐢", ""}
	f := record(t, reel.ClockFull, names, func(w *reel.Writer) {
		tw := appendTo(t, w, reel.Thread{TID: 1, Name: "name\xf0\"\n"})
		for i := range names {
			at := uint64(2000 + 10*i)
			if err := tw.Append([]reel.Event{reel.Entry(at, base, uint32(i+1)), reel.Exit(at+5, base, uint32(i+1))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := tw.Append([]reel.Event{reel.Entry(9000, base, 4000), reel.Exit(9001, base, 4000)}); err != nil {
			t.Fatal(err)
		}
	})
	var got []string
	for _, e := range export(t, f, Options{}).Events {
		if e.Ph == "B" {
			got = append(got, e.Name)
		}
	}
	want := slices.Clone(names)
	want[1], want[2], want[5] = "\ufffd\x01\n\t\x7f", "bad \ufffd\ufffd utf8 \ufffd", "function #6"
	check(t, got, append(want, "function #4000"))
}

// TestChromeAgreesWithTheReport holds call counts and outermost times of a longer
// run against reel.Summarize.
func TestChromeAgreesWithTheReport(t *testing.T) {
	events := manyCalls(12_000)
	f := record(t, reel.ClockFull, manyNames(), func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 1, Name: "t"}, events...)
		appendTo(t, w, reel.Thread{TID: 2, Name: "u"}, events[:3_000]...)
	})
	calls, total := map[string]uint64{}, map[string]float64{}
	open := map[string][]float64{}
	for _, e := range export(t, f, Options{}).Events {
		key := fmt.Sprint(e.TID, " ", e.Name)
		switch e.Ph {
		case "B":
			calls[e.Name]++
			open[key] = append(open[key], *e.TS)
		case "E":
			starts := open[key]
			if len(starts) == 1 {
				total[e.Name] += *e.TS - starts[0]
			}
			open[key] = starts[:len(starts)-1]
		}
	}
	s := reel.Summarize(f, reel.SummaryOptions{})
	if len(s.Functions) != len(calls) || len(calls) < 20 {
		t.Errorf("%d functions in the report, %d in the trace", len(s.Functions), len(calls))
	}
	for _, fs := range s.Functions {
		if calls[fs.Name] != fs.Calls {
			t.Errorf("%s: %d calls in the trace, %d in the report", fs.Name, calls[fs.Name], fs.Calls)
		}
		// Unfinished calls may end some nanoseconds later in the trace.
		if diff := math.Abs(total[fs.Name]*1000 - float64(fs.Total)); diff > 100 {
			t.Errorf("%s: %v µs in the trace, %d ns in the report", fs.Name, total[fs.Name], fs.Total)
		}
	}
}

type brokenPipe struct{ room int }

func (p *brokenPipe) Write(b []byte) (int, error) {
	if p.room -= len(b); p.room < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

func TestChromeStopsOnErrorAndCancel(t *testing.T) {
	f := record(t, reel.ClockFull, manyNames(), func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 1, Name: "t"}, manyCalls(150_000)...)
	})
	if err := Chrome(context.Background(), f, &brokenPipe{room: 1 << 20}, Options{}); !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(err.Error(), f.Name()) {
		t.Errorf("writing into a broken pipe: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if err := Chrome(ctx, f, io.Discard, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
}

func manyNames() []string {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("function_number_%d", i))
	}
	return names
}

// manyCalls are n events of calls that nest up to 30 deep.
func manyCalls(n int) []reel.Event {
	var events, open []reel.Event
	now, state := uint64(5000), uint32(1)
	for len(events) < n {
		state = state*1664525 + 1013904223
		now += 20 + uint64(state>>24)
		if len(open) < 30 && (len(open) == 0 || state>>16&3 < 2) {
			e := reel.Entry(now, uint32(base-len(open)*48), 1+state>>10%40)
			events, open = append(events, e), append(open, e)
			continue
		}
		e := open[len(open)-1]
		open = open[:len(open)-1]
		events = append(events, reel.Exit(now, e.SP, e.ID()))
	}
	return events
}

func BenchmarkChrome(b *testing.B) {
	const n = 1 << 20
	f := record(b, reel.ClockFull, manyNames(), func(w *reel.Writer) {
		appendTo(b, w, reel.Thread{TID: 1, Name: "t"}, manyCalls(n)...)
	})
	var out brokenPipe
	out.room = math.MaxInt
	b.ReportAllocs()
	for b.Loop() {
		if err := Chrome(context.Background(), f, &out, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(math.MaxInt-out.room)/float64(b.N)/n, "B/event")
}
