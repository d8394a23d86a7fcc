package export

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/reel"
)

// The markers of the tests' reels, by their IDs.
const (
	markQuery = iota + 1
	markDone
	markLock
	markBegin // of a title known at run time
	markEnd
	markAsyncBegin
	markAsyncStep
	markAsyncEnd
	markOut
	markIn
	markQueue
	markLoad
	markOtherQueue
	markSay // an instant of a title known at run time
	markCount
	markAsyncNamed
	markAsyncNamedEnd
	markEndNamed
)

func testMarkers() []reel.Marker {
	number := func(name string) []reel.Argument { return []reel.Argument{{Name: name, Kind: reel.ArgumentInt}} }
	title := reel.Argument{Name: "title", Kind: reel.ArgumentString}
	id := reel.Argument{Name: "id", Kind: reel.ArgumentUint}
	return []reel.Marker{
		{Provider: "db", Name: "query__start", Title: "query", Pair: "query", Kind: reel.MarkBegin, Arguments: []reel.Argument{{Name: "text", Kind: reel.ArgumentString}, {Name: "n", Kind: reel.ArgumentInt}}, TitleArg: -1, IDArg: -1, ValueArg: -1},
		{Provider: "db", Name: "query__done", Title: "query", Pair: "query", Kind: reel.MarkEnd, Arguments: []reel.Argument{{Name: "rows", Kind: reel.ArgumentUint}, {Name: "n", Kind: reel.ArgumentInt}}, TitleArg: -1, IDArg: -1, ValueArg: -1},
		{Provider: "db", Name: "lock", Title: "lock", Kind: reel.MarkInstant, TitleArg: -1, IDArg: -1, ValueArg: -1},
		{Provider: "callreel", Name: "begin_s", Kind: reel.MarkBegin, Arguments: []reel.Argument{title}, TitleArg: 0, IDArg: -1, ValueArg: -1},
		{Provider: "callreel", Name: "end", Kind: reel.MarkEnd, TitleArg: -1, IDArg: -1, ValueArg: -1},
		{Provider: "callreel", Name: "async_begin__io", Title: "io", Pair: "io", Category: "disk", Kind: reel.MarkAsyncBegin, Arguments: []reel.Argument{id}, TitleArg: -1, IDArg: 0, ValueArg: -1},
		{Provider: "callreel", Name: "async_step__io", Title: "io step", Pair: "io", Category: "disk", Kind: reel.MarkAsyncStep, Arguments: []reel.Argument{id}, TitleArg: -1, IDArg: 0, ValueArg: -1},
		{Provider: "callreel", Name: "async_end__io", Title: "io", Pair: "io", Category: "disk", Kind: reel.MarkAsyncEnd, Arguments: []reel.Argument{id}, TitleArg: -1, IDArg: 0, ValueArg: -1},
		{Provider: "callreel", Name: "flow_out__job", Title: "job", Pair: "job", Kind: reel.MarkFlowOut, Arguments: []reel.Argument{id}, TitleArg: -1, IDArg: 0, ValueArg: -1},
		{Provider: "callreel", Name: "flow_in__job", Title: "job", Pair: "job", Kind: reel.MarkFlowIn, Arguments: []reel.Argument{id}, TitleArg: -1, IDArg: 0, ValueArg: -1},
		{Provider: "callreel", Name: "counter__queue", Title: "queue", Kind: reel.MarkCounter, Arguments: number("value"), TitleArg: -1, IDArg: -1, ValueArg: 0},
		{Provider: "callreel", Name: "counter_f__load", Title: "load", Kind: reel.MarkCounter, Arguments: []reel.Argument{{Name: "value", Kind: reel.ArgumentFloat}}, TitleArg: -1, IDArg: -1, ValueArg: 0},
		{Provider: "db", Name: "queue", Title: "queue", Kind: reel.MarkCounter, Arguments: []reel.Argument{{Name: "value", Kind: reel.ArgumentUint}}, TitleArg: -1, IDArg: -1, ValueArg: 0},
		{Provider: "callreel", Name: "instant_s", Kind: reel.MarkInstant, Arguments: []reel.Argument{title}, TitleArg: 0, IDArg: -1, ValueArg: -1},
		{Provider: "callreel", Name: "counter_s", Kind: reel.MarkCounter, Arguments: append(number("value"), title), TitleArg: 1, IDArg: -1, ValueArg: 0},
		{Provider: "callreel", Name: "async_begin_s", Kind: reel.MarkAsyncBegin, Arguments: []reel.Argument{id, title}, TitleArg: 1, IDArg: 0, ValueArg: -1},
		{Provider: "callreel", Name: "async_end_s", Kind: reel.MarkAsyncEnd, Arguments: []reel.Argument{id, title}, TitleArg: 1, IDArg: 0, ValueArg: -1},
		{Provider: "callreel", Name: "end_s", Kind: reel.MarkEnd, Arguments: []reel.Argument{title}, TitleArg: 0, IDArg: -1, ValueArg: -1},
	}
}

func markText(s string) reel.Value { return reel.Value{Bytes: []byte(s)} }

// mark is a passing of a marker; values are numbers or texts.
func mark(at uint64, marker uint32, list ...any) reel.Mark {
	m := reel.Mark{Time: at, Marker: marker}
	for _, v := range list {
		switch v := v.(type) {
		case int:
			m.Values = append(m.Values, reel.Value{Bits: uint64(v)})
		case float64:
			m.Values = append(m.Values, reel.Value{Bits: math.Float64bits(v)})
		case string:
			m.Values = append(m.Values, markText(v))
		}
	}
	return m
}

// addMarks gives a reel that is being written the tests' markers.
func addMarks(tb testing.TB, w *reel.Writer) {
	tb.Helper()
	if _, err := w.AddMarkers(testMarkers()); err != nil {
		tb.Fatal(err)
	}
}

func marksOf(tb testing.TB, tw *reel.ThreadWriter, marks ...reel.Mark) {
	tb.Helper()
	for list := range slices.Chunk(marks, 1000) {
		if err := tw.Marks(list); err != nil {
			tb.Fatal(err)
		}
	}
}

// marked is a small reel in which there is something of each kind. Its clock has ticks of 16 ns at most, so that times come back.
func marked(t testing.TB) *reel.File {
	return record(t, reel.ClockFull, []string{"work"}, func(w *reel.Writer) {
		addMarks(t, w)
		tw := appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "worker"}, reel.Entry(2000, base, 1), reel.Exit(3600, base, 1))
		marksOf(t, tw,
			mark(1400, markDone, 3, 1),                   // began before
			mark(1480, markDone, 4, 2),                   // and this around it
			mark(1600, markQuery, "select 1", 7),         // begins before the call and ends in it
			mark(1800, markLock), mark(2200, markOut, 5), // leaves from the span
			mark(2400, markBegin, "inner"), // whose end is missing
			mark(2800, markDone, 1, 7),     // ends both
			mark(2880, markDone, 1, 8),     // ends what?
			mark(3000, markAsyncBegin, 1), mark(3040, markAsyncBegin, 2), mark(3200, markAsyncStep, 1), mark(3240, markAsyncEnd, 2),
			mark(3400, markQueue, -3), mark(3440, markOtherQueue, 9), mark(3480, markLoad, 0.5))
		other, err := w.Thread(reel.Thread{TID: 79, Process: 77, Name: "other"})
		if err != nil {
			t.Fatal(err)
		}
		marksOf(t, other, mark(2600, markIn, 5), mark(2640, markIn, 5), mark(2680, markIn, 6), // of nothing
			mark(4000, markAsyncEnd, 1), mark(4080, markAsyncEnd, 3), mark(4120, markBegin, "last"))
		for _, p := range []reel.Pause{{From: 5000, To: 5400, By: "command"}, {From: 5800, By: "page", Process: 77}} {
			if err := w.Pause(p); err != nil {
				t.Fatal(err)
			}
		}
		marksOf(t, other, mark(6000, markLock))
	})
}

// markLines writes the events of a file in short, counters of markers too, without what describes lanes.
func markLines(file chromeFile) []string {
	var out []string
	for _, s := range lines(file) {
		if !strings.HasPrefix(s, "M") {
			out = append(out, s)
		}
	}
	for _, e := range file.Events {
		if e.Ph == "C" && e.Cat != "" {
			out = append(out, fmt.Sprintf("C %s %s %v %v", e.Cat, e.Name, *e.TS, e.Args["value"]))
		}
	}
	return out
}

func TestChromeWritesWhatMarkersSay(t *testing.T) {
	file := export(t, marked(t), Options{})
	check(t, markLines(file), []string{
		"B 78 work 1", "E 78 work 2.6",
		"B 4194305 query 0 [unstarted:true]", "B 4194305 query 0.001 [unstarted:true]", "B 4194305 query 0.002 [unstarted:true]",
		"E 4194305 query 0.4 [n:1 rows:3]", "E 4194305 query 0.48 [n:2 rows:4]",
		"B 4194305 query 0.6 [n:7 text:select 1]", "i 4194305 lock 0.8", "i 4194305 job 1.2 [id:5]", "B 4194305 inner 1.4 [title:inner]",
		"B 4194306 job 1.6 [id:5]", "E 4194306 job 1.601", "s 4194305 job 1.2", "f 4194306 job 1.6",
		"B 4194306 job 1.64 [id:5]", "E 4194306 job 1.641", "s 4194305 job 1.2", "f 4194306 job 1.64",
		"i 4194306 job 1.68 [id:6]",
		"E 4194305 inner 1.8 [end:unfinished]", "E 4194305 query 1.801 [end_n:7 rows:1]", "E 4194305 query 1.88 [n:8 rows:1]",
		"b 0 io 2 [id:1]", "b 0 io 2.04 [id:2]", "n 0 io step 2.2 [id:1]", "e 0 io 2.24", "e 0 io 3", "b 0 io 0 [unstarted:true]", "e 0 io 3.08 [id:3]",
		"B 4194306 last 3.12 [title:last]",
		"b 0 paused 4 [by:command]", "e 0 paused 4.4", "b 0 paused 4.8 [by:page]", "e 0 paused 5 [end:unfinished]",
		"i 4194306 lock 5", "E 4194306 last 5.001 [end:unfinished]",
		"C marker queue (callreel) 2.4 -3", "C db queue (db) 2.44 9", "C marker load 2.48 0.5",
	})
	for _, e := range file.Events {
		if want, ok := map[string]string{"query": "db", "io": "disk", "inner": "marker", "paused": "callreel"}[e.Name]; ok && e.Ph != "E" && e.Cat != want {
			t.Errorf("%+v is not of the category %s", e, want)
		}
	}
}

// markSlices asks for what there is of markers, in nanoseconds since the recording started.
const markSlices = `select s.name || '|' || s.category || '|' || (s.ts - (select min(ts) from slice where name = 'origin' or dur = 1880)) || '|' || s.dur || '|' || s.depth || '|' ||
	coalesce((select group_concat(replace(replace(key, 'debug.', ''), 'args.', '') || '=' || coalesce(string_value, int_value, real_value)) from args where args.arg_set_id = s.arg_set_id and key not like 'legacy%'), '')
	from slice s where s.category != 'libx.so' order by s.ts, s.dur desc, s.name`

const traceTroubles = `select name, value from stats where value > 0 and severity != 'info'`

func TestReadersTakeWhatMarkersSay(t *testing.T) {
	f := marked(t)
	pftrace, text := exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})
	rows := traceProcessor(t, []string{pftrace, text}, markSlices,
		`select k.name, c.value from counter c join track k on c.track_id = k.id where k.name like 'queue%' or k.name like 'load%' order by c.ts`,
		`select o.name, i.name, i.ts - o.ts from flow f join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id order by i.ts`,
		`select t.tid, t.name, k.name, count(s.id) from thread_track k join thread t using (utid) left join slice s on s.track_id = k.id group by k.id having count(s.id) > 0 order by t.tid, k.name`,
		`select distinct k.name, p.pid from process_track k join process p using (upid) join slice s on s.track_id = k.id order by k.name`,
		traceTroubles)
	join := func(rows [][]any) string {
		var all []string
		for _, r := range rows {
			all = append(all, strings.Trim(fmt.Sprint(r), "[]"))
		}
		return strings.Join(all, "\n")
	}
	for q, want := range [...]string{
		`io|disk|0|3080|0|unstarted=1,id=3
query|db|0|1880|0|unstarted=1,rows=1,n=8
query|db|0|480|1|unstarted=1,rows=4,n=2
query|db|0|400|2|unstarted=1,rows=3,n=1
query|db|600|1200|1|text=select 1,n=7,rows=1,end_n=7
lock|db|800|0|2|
job|marker|1200|0|2|id=5
inner|marker|1400|400|2|title=inner,end=unfinished
job|marker|1600|0|0|id=5
job|marker|1640|0|0|id=5
job|marker|1680|0|0|id=6
io|disk|2000|1000|0|id=1
io|disk|2040|200|0|id=2
io step|disk|2200|0|1|id=1
last|marker|3120|1880|0|title=last,end=unfinished
paused|callreel|4000|400|0|by=command
paused|callreel|4800|200|0|by=page,end=unfinished
lock|db|5000|0|1|`,
		"queue (callreel) -3\nqueue (db) 9\nload 0.5",
		"job job 400\njob job 40", // from one to the next
		"78 worker <nil> 1\n78 worker markers 7\n79 other markers 5",
		"io 77\npaused 77", "",
	} {
		if got := join(rows[0][q]); got != want {
			t.Errorf("perfetto, query %d: trace_processor has\n%s\nwant\n%s", q, got, want)
		}
	}
	for q, want := range map[int]string{
		1: "queue (callreel) value -3\nqueue (db) value 9\nload value 0.5", 2: "job job 400\njob job 440",
		3: "78 worker <nil> 1\n4.194305e+06 worker (78): markers <nil> 7\n4.194306e+06 other (79): markers <nil> 5", 4: "io 77\npaused 77", 5: "",
	} {
		if got := join(rows[1][q]); got != want {
			t.Errorf("chrome, query %d: trace_processor has\n%s\nwant\n%s", q, got, want)
		}
	}
	if a, b := len(rows[0][0]), len(rows[1][0]); a != b {
		t.Errorf("trace_processor has %d slices of perfetto's file, %d of chrome's", a, b)
	}
	trace := catapult(t, text)[0]
	async := map[string]int{}
	for _, s := range trace.Async {
		async[fmt.Sprintf("%s %.0f", s.name, s.duration*1000)]++
	}
	if want := map[string]int{"io 3080": 1, "io 1000": 1, "io 200": 1, "io step 0": 1, "paused 400": 1, "paused 200": 1}; !maps.Equal(async, want) {
		t.Errorf("Chrome's trace viewer has the asynchronous spans %v, want %v", async, want)
	}
	if len(trace.Warnings) > 0 || len(trace.Flows) != 2 || trace.Flows[0] != [2]string{"query", "job"} && trace.Flows[0] != [2]string{"job", "job"} {
		t.Errorf("Chrome's trace viewer warns %q, and has the flows %v", trace.Warnings, trace.Flows)
	}
}

// Transactions begin in one query and end in another: they have a track beside that of the queries, and both are as long as they were.
func TestCrossingSpansAreOnTracksOfTheirOwn(t *testing.T) {
	f := record(t, reel.ClockFull, []string{"work"}, func(w *reel.Writer) {
		addMarks(t, w)
		tw := appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "worker"}, reel.Entry(2000, base, 1), reel.Exit(3600, base, 1))
		marksOf(t, tw, mark(1440, markEndNamed, "tx"), // began before
			mark(1600, markQuery, "begin", 1), mark(1680, markBegin, "tx"), mark(1760, markDone, 1, 1),
			mark(1840, markQuery, "update", 2), mark(1920, markBegin, "plan"), mark(2000, markDone, 1, 2), // a plan that is left open
			mark(2080, markQuery, "end", 3), mark(2160, markEndNamed, "tx"), mark(2240, markBegin, "tx"), mark(2320, markEndNamed, "tx"), mark(2400, markDone, 1, 3),
			mark(2480, markQuery, "begin", 4), mark(2560, markBegin, "tx"), mark(2640, markDone, 1, 4))
	})
	check(t, markLines(export(t, f, Options{})), []string{
		"B 78 work 1", "E 78 work 2.6",
		"B 4194305 tx 0 [unstarted:true]", "E 4194305 tx 0.44 [title:tx]",
		"B 4194306 query 0.6 [n:1 text:begin]", "B 4194305 tx 0.68 [title:tx]", "E 4194306 query 0.76 [end_n:1 rows:1]",
		"B 4194306 query 0.84 [n:2 text:update]", "B 4194306 plan 0.92 [title:plan]", "E 4194306 plan 1 [end:unfinished]", "E 4194306 query 1.001 [end_n:2 rows:1]",
		"B 4194306 query 1.08 [n:3 text:end]", "E 4194305 tx 1.16", "B 4194305 tx 1.24 [title:tx]", "E 4194305 tx 1.32", "E 4194306 query 1.4 [end_n:3 rows:1]",
		"B 4194306 query 1.48 [n:4 text:begin]", "B 4194305 tx 1.56 [title:tx]", "E 4194306 query 1.64 [end_n:4 rows:1]", "E 4194305 tx 2.6 [end:unfinished]",
	})
	rows := traceProcessor(t, []string{exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})},
		`select k.name, s.name, s.dur, s.depth from slice s join track k on s.track_id = k.id where s.category in ('db', 'marker') order by s.ts, s.dur desc`,
		`select t.name, s.name, s.dur, s.depth from slice s join thread_track k on s.track_id = k.id join thread t using (utid) where s.category in ('db', 'marker') order by s.ts, s.dur desc`, traceTroubles)
	const want = `[[%s, tx tx 440 0] [%s query 160 0] [%s, tx tx 480 0] [%s query 160 0] [%s plan 80 1] [%s query 320 0] [%s, tx tx 80 0] [%s query 160 0] [%s, tx tx 1040 0]]`
	for k, name := range []string{"markers", "worker (78): markers"} {
		want := strings.ReplaceAll(want, "%s", name)
		if k == 1 { // no two events of a lane are at the same time
			want = strings.Replace(want, "query 160 0] ["+name+" plan", "query 161 0] ["+name+" plan", 1)
		}
		if got := fmt.Sprint(rows[k][k]); got != want || len(rows[k][2]) > 0 {
			t.Errorf("trace_processor has %s, want %s; it warns %v", got, want, rows[k][2])
		}
	}
}

// An arrow leads from the innermost span, or, where none is open, from the innermost call, to the same elsewhere.
func TestFlowsAreBoundToSpansElseCalls(t *testing.T) {
	f := record(t, reel.ClockFull, []string{"serve", "send", "work", "take"}, func(w *reel.Writer) {
		addMarks(t, w)
		a := appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "a"}, reel.Entry(1600, base, 1), reel.Entry(1760, base-64, 2), reel.Exit(2400, base-64, 2), reel.Exit(3600, base, 1))
		marksOf(t, a, mark(1680, markOut, 1), mark(1920, markOut, 2), mark(2560, markQuery, "x", 1), mark(2640, markOut, 3), mark(2720, markDone, 1, 1), mark(3680, markOut, 4))
		b := appendTo(t, w, reel.Thread{TID: 79, Process: 77, Name: "b"}, reel.Entry(1600, base, 3), reel.Entry(2000, base-64, 4), reel.Exit(2080, base-64, 4), reel.Exit(3600, base, 3))
		marksOf(t, b, mark(1840, markIn, 1), mark(2048, markIn, 2), mark(3200, markIn, 3), mark(3760, markIn, 4))
	})
	pftrace, text := exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})
	var texts []string
	for i, file := range splitParts(t, f, 1<<20) {
		if file.Events == nil || i > 0 {
			t.Fatalf("%d files", i+1)
		}
		for _, e := range file.Events {
			if e.Ph == "s" || e.Ph == "f" {
				texts = append(texts, fmt.Sprint(e.Ph, " ", e.TID, " ", *e.TS))
			}
		}
	}
	check(t, texts, []string{"s 78 0.68", "f 79 0.84", "s 78 0.92", "f 79 1.048", "s 4194305 1.64", "f 79 2.2", "s 4194305 2.68", "f 4194306 2.76"})
	rows := traceProcessor(t, []string{pftrace, text},
		`select o.name, coalesce(po.name, '-'), i.name, coalesce(pi.name, '-') from flow f join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id
			left join slice po on o.parent_id = po.id left join slice pi on i.parent_id = pi.id order by i.ts`, traceTroubles)
	for k, r := range rows { // the ends are instants in what they are bound to
		if got, want := fmt.Sprint(r[0]), "[[job serve job work] [job send job take] [job query job work] [job - job -]]"; got != want || len(r[1]) > 0 {
			t.Errorf("file %d: trace_processor has the flows %s, want %s; it warns %v", k, got, want, r[1])
		}
	}
	trace := catapult(t, text)[0]
	var ends []string
	for _, th := range trace.Threads {
		for _, s := range th.Slices {
			if s.name == "job" {
				ends = append(ends, fmt.Sprint(th.TID, " ", s.depth))
			}
		}
	}
	if want := []string{"78 1", "78 2", "79 1", "79 2", "79 1", "4194305 1", "4194305 0", "4194306 0"}; !slices.Equal(ends, want) || len(trace.Flows) != 4 || len(trace.Warnings) > 0 {
		t.Errorf("Chrome's trace viewer has the ends %q, want %q; the flows %v; it warns %q", ends, want, trace.Flows, trace.Warnings)
	}
}
