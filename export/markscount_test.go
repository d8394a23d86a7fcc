package export

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/reel"
)

// marking is how a reel of random marks is made.
type marking struct {
	threads, marks int
	goroutines     bool
	processes      bool // each second thread is of another
	calls          bool
}

// markedAtRandom is a reel with marks of all kinds that have nothing to do with its calls. Threads begin and end things as they like.
func markedAtRandom(t testing.TB, how marking) *reel.File {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 11))
	return recordAs(t, reel.Header{Goroutines: how.goroutines}, manyNames(), func(w *reel.Writer) {
		addMarks(t, w)
		var writers []*reel.ThreadWriter
		for i := range how.threads {
			thread := reel.Thread{TID: 100 + i, Process: 77, Name: "t" + strconv.Itoa(i)}
			if how.processes && i%2 > 0 {
				thread.Process = 99
			}
			tw, err := w.Thread(thread)
			if err != nil {
				t.Fatal(err)
			}
			if how.calls {
				events := manyCalls(how.marks / how.threads)
				if how.goroutines {
					events[0] = reel.Switch(events[0].Time, uint64(i+1))
				}
				if err := tw.Append(events); err != nil {
					t.Fatal(err)
				}
			}
			writers = append(writers, tw)
		}
		now := uint64(2000)
		marks := make([][]reel.Mark, how.threads)
		open := make([][]int, how.threads)
		for range how.marks {
			now += uint64(rng.IntN(60))
			i := rng.IntN(how.threads)
			var m reel.Mark
			switch k := rng.IntN(20); {
			case k < 5 && len(open[i]) < 20:
				open[i] = append(open[i], markQuery)
				if m = mark(now, markQuery, "select", rng.IntN(5)); k < 2 {
					open[i][len(open[i])-1] = markBegin
					m = mark(now, markBegin, "span "+strconv.Itoa(rng.IntN(4)))
				}
			case k < 10:
				last := markQuery + (markBegin-markQuery)*rng.IntN(2) // perhaps it ends something else
				if n := len(open[i]); n > 0 {
					if rng.IntN(8) > 0 {
						last = open[i][n-1]
					}
					open[i] = open[i][:n-1]
				}
				if m = mark(now, markEnd); last == markQuery {
					m = mark(now, markDone, 1, 2)
				}
			case k < 12:
				m = mark(now, []uint32{markAsyncBegin, markAsyncStep, markAsyncEnd}[rng.IntN(3)], rng.IntN(20))
			case k < 14:
				m = mark(now, []uint32{markAsyncNamed, markAsyncNamedEnd}[rng.IntN(2)], rng.IntN(20), "task "+strconv.Itoa(rng.IntN(3)))
			case k < 16:
				m = mark(now, []uint32{markOut, markIn}[rng.IntN(2)], rng.IntN(20))
			case k < 18:
				m = mark(now, []uint32{markQueue, markOtherQueue}[rng.IntN(2)], rng.IntN(1000))
			default:
				m = mark(now, markLock)
			}
			if how.goroutines {
				m.Goroutine = uint64(i + 1)
				i = rng.IntN(how.threads)
			}
			marks[i] = append(marks[i], m)
		}
		for i := range marks {
			marksOf(t, writers[i], marks[i]...)
		}
	})
}

// markTally is what is counted of marks by name, and the time of spans of which both ends are there, in nanoseconds.
type markTally struct {
	slices, samples map[string]int
	time            map[string]int64
	flows           int
}

// markCounts is what the reel has. Marks that belong to nothing are instants.
func markCounts(f *reel.File) markTally {
	m := markTally{slices: map[string]int{}, samples: map[string]int{}, time: map[string]int64{}}
	p := reel.NewSpanPairer(f)
	p.OnSpan = func(s *reel.Span) {
		m.slices[s.Title]++
		if !s.Unstarted && !s.Unfinished {
			m.time[s.Title] += f.Clock().UnixNS(s.End) - f.Clock().UnixNS(s.Begin)
		}
	}
	p.OnFlow = func(*reel.Flow) { m.flows++ }
	f.AllMarks(func(thread uint32, x *reel.Mark) bool {
		marker, _ := f.Marker(x.Marker)
		title := marker.TitleOf(x)
		if title == "" {
			title = marker.Provider + ":" + marker.Name
		}
		switch used := p.Push(thread, x); {
		case marker.Kind == reel.MarkCounter && title == "queue":
			m.samples[title+" ("+marker.Provider+")"]++
		case marker.Kind == reel.MarkCounter:
			m.samples[title]++
		case !used, marker.Kind == reel.MarkFlowOut, marker.Kind == reel.MarkFlowIn, marker.Kind == reel.MarkAsyncStep:
			m.slices[title]++
		}
		return true
	})
	p.Finish()
	return m
}

func (m *markTally) compare(t *testing.T, what string, got markTally) {
	t.Helper()
	if !maps.Equal(got.slices, m.slices) || !maps.Equal(got.samples, m.samples) || got.flows != m.flows {
		t.Errorf("%s: %v, %v, %d flows, want %v, %v, %d", what, got.slices, got.samples, got.flows, m.slices, m.samples, m.flows)
	}
}

const (
	markCountSlices = `select s.name, count(*), sum(case when extract_arg(arg_set_id, 'debug.end') is null and extract_arg(arg_set_id, 'args.end') is null
		and extract_arg(arg_set_id, 'debug.unstarted') is null and extract_arg(arg_set_id, 'args.unstarted') is null then s.dur else 0 end)
		from slice s where s.category in ('db', 'disk', 'marker') group by 1`
	markCountSamples = `select replace(k.name, ' value', ''), count(*) from counter c join track k on c.track_id = k.id where k.name like 'queue%' or k.name like 'c%:%' group by 1`
	markCountFlows   = `select count(*) from flow f join slice s on s.id = f.slice_in where s.category = 'marker'`
	// What lies in a slice lies in it.
	markNesting = `select count(*) from slice s join slice p on s.parent_id = p.id where s.ts < p.ts or s.ts + s.dur > p.ts + p.dur`
)

func markTallyOf(rows [][][]any) markTally {
	m := markTally{slices: map[string]int{}, samples: map[string]int{}, time: map[string]int64{}, flows: int(rows[2][0][0].(float64))}
	for _, r := range rows[0] {
		m.slices[r[0].(string)] = int(r[1].(float64))
		if ns := int64(r[2].(float64)); ns > 0 {
			m.time[r[0].(string)] = ns
		}
	}
	for _, r := range rows[1] {
		m.samples[r[0].(string)] = int(r[1].(float64))
	}
	return m
}

// Readers find as many slices, instants, samples and flows as the reel has, and as long ones.
func TestReadersFindAllMarks(t *testing.T) {
	cases := []marking{
		{threads: 3, marks: 12_000, calls: true},
		{threads: 4, marks: 4_000, processes: true},
		{threads: 4, marks: 4_000, goroutines: true, calls: true},
		{threads: 3, marks: 3_000, goroutines: true},
	}
	var files, texts []string
	var want []markTally
	for _, how := range cases {
		f := markedAtRandom(t, how)
		want = append(want, markCounts(f))
		files = append(files, exportTo(t, f, "pftrace", Options{}))
		texts = append(texts, exportTo(t, f, "json", Options{}))
	}
	rows := traceProcessor(t, slices.Concat(files, texts), markCountSlices, markCountSamples, markCountFlows, markNesting, traceTroubles,
		`select p.pid, count(distinct k.id) > 0 from process p join thread t using (upid) join thread_track k using (utid) join slice s on s.track_id = k.id where s.category = 'db' group by 1 order by 1`,
		`select distinct p.name, k.name from slice s join track k on s.track_id = k.id left join track p on k.parent_id = p.id where s.category = 'db' order by 1`)
	traces := catapult(t, texts...)
	for i, how := range cases {
		for k, what := range []string{"perfetto", "chrome"} {
			r := rows[i+k*len(cases)]
			got := markTallyOf(r)
			want[i].compare(t, fmt.Sprintf("%s, %+v", what, how), got)
			if k == 0 && !maps.Equal(got.time, want[i].time) {
				t.Errorf("%s, %+v: times %v, want %v", what, how, got.time, want[i].time)
			}
			if len(r[4]) > 0 || fmt.Sprint(r[3]) != "[[0]]" {
				t.Errorf("%s, %+v: trace_processor warns %v, and %v slices stand out of the ones around them", what, how, r[4], r[3])
			}
			if how.processes && fmt.Sprint(r[5]) != "[[77 1] [99 1]]" {
				t.Errorf("%s, %+v: spans are of the processes %v", what, how, r[5])
			}
		}
		if parent := fmt.Sprint(rows[i][6]); how.goroutines && how.calls && parent != "[[goroutine 1 markers, query] [goroutine 1 markers] [goroutine 2 markers, query] [goroutine 2 markers] [goroutine 3 markers, query] [goroutine 3 markers] [goroutine 4 markers, query] [goroutine 4 markers]]" {
			t.Errorf("%+v: the tracks of markers are below %s", how, parent)
		}
		got := markTally{slices: map[string]int{}, samples: map[string]int{}, flows: len(traces[i].Flows)}
		for _, th := range traces[i].Threads {
			for _, s := range th.Slices {
				if s.category == "db" || s.category == "marker" || s.category == "disk" {
					got.slices[s.name]++
				}
			}
		}
		for _, s := range traces[i].Async {
			got.slices[s.name]++
		}
		for _, c := range traces[i].Counters {
			if strings.HasPrefix(c.Name, "queue") {
				got.samples[c.Name] += len(c.Samples)
			}
		}
		if how.calls && !how.goroutines {
			got.flows = want[i].flows // there are others, of stacks
		}
		want[i].compare(t, fmt.Sprintf("Chrome's trace viewer, %+v", how), got)
		if len(traces[i].Warnings) > 0 {
			t.Errorf("%+v: Chrome's trace viewer warns %q", how, traces[i].Warnings[:min(5, len(traces[i].Warnings))])
		}
	}
}

// Each file of several is whole, and all together have what one has.
func TestChromeSplitHasAllMarks(t *testing.T) {
	for _, how := range []marking{{threads: 3, marks: 18_000, calls: true}, {threads: 2, marks: 15_000}, {threads: 3, marks: 15_000, goroutines: true, calls: true}} {
		f := markedAtRandom(t, how)
		want := markCounts(f)
		files := splitParts(t, f, 128<<10)
		if len(files) < 8 {
			t.Fatalf("%+v: %d files", how, len(files))
		}
		got := markTally{slices: map[string]int{}, samples: map[string]int{}}
		for n, file := range files {
			checkNesting(t, file)
			open := map[any]int{}
			for _, e := range file.Events {
				if id, ok := e.ID2["local"]; ok && e.Ph != "n" {
					if open[id]++; e.Ph == "e" {
						open[id] -= 2
					}
				}
				switch {
				case e.Cat != "db" && e.Cat != "marker" && e.Cat != "disk":
				case e.Ph == "C":
					got.samples[e.Name]++
				case e.Ph == "f":
					got.flows++
				case strings.Contains("Bbni", e.Ph) && e.Args["continued"] == nil:
					got.slices[e.Name]++
				}
			}
			for id, n2 := range open {
				if n2 != 0 {
					t.Errorf("%+v, file %d: %v is begun %d times more often than ended", how, n+1, id, n2)
				}
			}
		}
		if got.flows == 0 || got.flows > want.flows {
			t.Errorf("%+v: %d flows, of %d", how, got.flows, want.flows)
		}
		got.flows = want.flows // those over a border are left out
		want.compare(t, fmt.Sprintf("%+v", how), got)
	}
}

// Titles are what the program says at run time: anything, and any number of them.
func TestReadersTakeHostileTitles(t *testing.T) {
	titles := hostileNames()
	titles = append(titles, strings.Repeat("x", 1024), strings.Repeat("\xff\x00", 512))
	f := record(t, reel.ClockFull, []string{"work"}, func(w *reel.Writer) {
		addMarks(t, w)
		tw := appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "nam\xe9\x00\n"})
		now := uint64(2000)
		for i, s := range titles {
			marksOf(t, tw, mark(now, markBegin, s), mark(now+100, markSay, s), mark(now+200, markAsyncNamed, i, s), mark(now+300, markCount, i, s),
				mark(now+400, markAsyncNamedEnd, i, s), mark(now+500, markEnd))
			now += 1000
		}
		if err := w.Pause(reel.Pause{From: 3000, To: 4000, By: "\xff\"\x00"}); err != nil {
			t.Fatal(err)
		}
	})
	want := markCounts(f)
	named := map[string]int{}
	for name, n := range want.slices {
		named[validText(cut(name, maxName))] += n
	}
	delete(named, "") // its marker's name is instead
	named["callreel:begin_s"], named["callreel:instant_s"], named["callreel:async_begin_s"] = 1, 1, 1
	pftrace, text := exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})
	rows := traceProcessor(t, []string{pftrace, text, exportFewNames(t, f)}, markCountSlices, `select count(distinct track_id), count(*) from counter c join track k on c.track_id = k.id where k.name not in ('calls per second', 'open calls', 'calls per second value', 'open calls value')`, markCountFlows, traceTroubles)
	for k, r := range rows {
		got := markTallyOf([][][]any{r[0], nil, r[2]})
		if !maps.Equal(got.slices, named) {
			t.Errorf("file %d: trace_processor has %.2000s, want %.2000s", k, fmt.Sprint(got.slices), fmt.Sprint(named))
		}
		if n := float64(len(titles)); len(r[3]) > 0 || r[1][0][1] != n || r[1][0][0].(float64) < n-2 {
			t.Errorf("file %d: trace_processor warns %v, and has counters %v", k, r[3], r[1])
		}
	}
	if w := catapult(t, text)[0].Warnings; len(w) > 0 {
		t.Errorf("Chrome's trace viewer warns %q", w)
	}
}

func TestReadersTakeManyTitles(t *testing.T) {
	const n = 25_000 // of each kind
	f := record(t, reel.ClockFull, []string{"work"}, func(w *reel.Writer) {
		addMarks(t, w)
		tw := appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "t"}, reel.Entry(1500, base, 1), reel.Exit(1600, base, 1))
		now := uint64(2000)
		for i := range n {
			marksOf(t, tw, mark(now, markBegin, fmt.Sprint("span ", i)), mark(now+20, markSay, fmt.Sprint("instant ", i)), mark(now+40, markAsyncNamed, i, fmt.Sprint("task ", i)),
				mark(now+60, markCount, i, fmt.Sprint("counter ", i)), mark(now+80, markAsyncNamedEnd, i, fmt.Sprint("task ", i)), mark(now+100, markEnd))
			now += 200
		}
	})
	rows := traceProcessor(t, []string{exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})},
		`select count(distinct name), count(*) from slice where category = 'marker'`, `select count(distinct k.name), count(*) from counter c join track k on c.track_id = k.id where k.name like 'counter %'`, traceTroubles)
	for k, r := range rows {
		if got := fmt.Sprint(r); got != fmt.Sprintf("[[[%d %d]] [[%d %d]] []]", 3*n, 3*n, n, n) {
			t.Errorf("file %d: trace_processor has %s", k, got)
		}
	}
}

// Lanes of goroutines that have nothing open are forgotten when there are many.
func TestManyGoroutinesMark(t *testing.T) {
	const n = maxMarkLanes + 5000
	f := recordAs(t, reel.Header{Goroutines: true}, []string{"work"}, func(w *reel.Writer) {
		addMarks(t, w)
		tw := appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "t"})
		list := []reel.Mark{mark(2000, markBegin, "last")}
		list[0].Goroutine = 1
		for i := range n {
			b, e := mark(uint64(3000+100*i), markBegin, "x"), mark(uint64(3050+100*i), markEnd)
			b.Goroutine, e.Goroutine = uint64(i+2), uint64(i+2)
			list = append(list, b, e)
		}
		end := mark(uint64(4000+100*n), markEnd)
		end.Goroutine = 1
		marksOf(t, tw, append(list, end)...)
	})
	begun, whole := 0, ""
	for _, e := range export(t, f, Options{}).Events {
		if e.Ph == "B" {
			begun++
		}
		if e.Ph == "E" && e.Name == "last" {
			whole = fmt.Sprint(*e.TS, e.Args)
		}
	}
	if begun != n+1 || !strings.HasSuffix(whole, "map[]") || whole == "" {
		t.Errorf("%d spans of %d; the first ends at %s", begun, n+1, whole)
	}
	if err := Perfetto(context.Background(), f, io.Discard, Options{}); err != nil {
		t.Error(err)
	}
}

// Ten times as many marks take no more memory.
func TestMarksMemoryDoesNotGrowWithTheTrace(t *testing.T) {
	peak := func(format string, n int) uint64 {
		f := record(t, reel.ClockFull, []string{"work"}, func(w *reel.Writer) {
			addMarks(t, w)
			tw := appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "t"})
			now := uint64(2000)
			for i := range n {
				marksOf(t, tw, mark(now, markBegin, "s"), mark(now+20, markLock), mark(now+40, markAsyncNamed, i, "task"), mark(now+60, markQueue, i),
					mark(now+80, markAsyncNamedEnd, i, "task"), mark(now+90, markOut, i%100), mark(now+95, markIn, i%100), mark(now+100, markEnd))
				now += 200
			}
		})
		h := &heapPeak{}
		if err := exporters[format](context.Background(), f, h, Options{}); err != nil {
			t.Fatal(err)
		}
		h.look()
		return h.peak
	}
	for _, format := range []string{"json", "pftrace"} {
		few, many := peak(format, 5_000), peak(format, 50_000)
		if few+2<<20 < many {
			t.Errorf("%s: %d bytes for 40,000 marks, %d for 400,000", format, few, many)
		}
	}
}

// Without a clock only the order means something.
func TestMarksWithoutClock(t *testing.T) {
	f := record(t, reel.ClockNone, []string{"work"}, func(w *reel.Writer) {
		addMarks(t, w)
		tw := appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "t"})
		marksOf(t, tw, mark(0, markDone, 1, 1), mark(0, markBegin, "s"), mark(0, markLock), mark(0, markEnd))
	})
	check(t, markLines(export(t, f, Options{})), []string{
		"B 4194305 query 1 [unstarted:true]", "E 4194305 query 2 [n:1 rows:1]", "B 4194305 s 3 [title:s]", "i 4194305 lock 4", "E 4194305 s 5",
	})
	var text strings.Builder
	if err := Chrome(context.Background(), f, &text, Options{}); err != nil || !json.Valid([]byte(text.String())) {
		t.Error(err, text.String())
	}
}

// Counters have integers as integers; what is no number is said as an instant.
func TestReadersTakeAnyCountersValue(t *testing.T) {
	list := []reel.Mark{mark(2000, markQueue, math.MinInt64), mark(2100, markOtherQueue, -1), mark(2200, markLoad, 1e300), mark(2300, markLoad, math.NaN()),
		mark(2400, markLoad, -0.25), mark(2500, markOtherQueue, math.MaxInt64), {Time: 2600, Marker: markQueue, Values: []reel.Value{{State: reel.ValueUnreadable}}}}
	f := record(t, reel.ClockFull, nil, func(w *reel.Writer) {
		addMarks(t, w)
		marksOf(t, appendTo(t, w, reel.Thread{TID: 78, Process: 77, Name: "t"}), list...)
	})
	for k, r := range traceProcessor(t, []string{exportTo(t, f, "pftrace", Options{}), exportTo(t, f, "json", Options{})},
		`select c.value from counter c join track k on c.track_id = k.id where k.name like 'queue%' or k.name like 'load%' order by c.ts`,
		`select name, coalesce(extract_arg(arg_set_id, 'debug.value'), extract_arg(arg_set_id, 'args.value')) from slice order by ts`, traceTroubles) {
		if got, want := fmt.Sprint(r), "[[[-9.223372036854776e+18] [1.8446744073709552e+19] [1e+300] [-0.25] [9.223372036854776e+18]] [[load NaN] [queue ?]] []]"; got != want {
			t.Errorf("file %d: trace_processor has %s, want %s", k, got, want)
		}
	}
}
