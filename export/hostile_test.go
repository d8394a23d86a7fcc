package export

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/reel"
)

// hostileNames are names as a program may have them, to do harm in a file format or its reader.
func hostileNames() []string {
	return []string{
		"quote\" back\\slash", "line\nfeed\r\n", "\x01\t\x7f\x1b[2J", "nul\x00l", "bad \xff\xfe utf8 \xc3", "</script><b>\u2028\u2029", "semi;colon 12 34",
		"żółw 龜 🐢", "%s%n$(x)", "{\"a\":[", " ", "\u202egnp.exe\u009b31m", strings.Repeat("long", 5000), strings.Repeat("long", 5000) + "er", "",
	}
}

// hostile is a reel in which much is unusual: names; calls left, never ended and never begun; functions and a thread that are not described; two
// stacks; a thread ID used again; drops; and the path, command and host.
func hostile(t *testing.T) *reel.File {
	t.Helper()
	names := hostileNames()
	const coroutine = base - 64<<20
	h := reel.Header{Command: []string{"/bin/pro\ng\xff", "--x=\"\x00\"", strings.Repeat("y", 20_000)}}
	return recordAs(t, h, names, func(w *reel.Writer) {
		tw := appendTo(t, w, reel.Thread{TID: 5, Name: "name\xf0\"\n\x00"})
		now := uint64(2000)
		add := func(events ...reel.Event) {
			for i := range events {
				now += 10
				events[i].Time = now
			}
			if err := tw.Append(events); err != nil {
				t.Fatal(err)
			}
		}
		for i := range names {
			id := uint32(i + 1)
			add(reel.Entry(0, base, id), reel.Entry(0, base-64, 1), reel.Exit(0, base-64, 1), reel.Exit(0, base, id))
		}
		add(reel.Exit(0, base, 3), reel.Entry(0, base, 4000), reel.Exit(0, base, 4000))                               // never begun; not described
		add(reel.Entry(0, base, 1), reel.Entry(0, base-64, 2), reel.Entry(0, base-128, 4), reel.Entry(0, base-32, 5)) // two are left
		add(reel.Entry(0, coroutine, 6), reel.Entry(0, coroutine-64, 7), reel.Exit(0, coroutine-64, 7))
		if err := tw.Dropped(7, 6, now); err != nil {
			t.Fatal(err)
		}
		add(reel.Exit(0, base-32, 5)) // 1 and 6 are never ended
		appendTo(t, w, reel.Thread{TID: 5, Name: "name\xf0\"\n\x00", Process: 99}, reel.Entry(5000, base, 1), reel.Exit(5000, base, 1))
		appendTo(t, w, reel.Thread{}, reel.Entry(5000, base, 1), reel.Exit(5001, base, 1))
		appendTo(t, w, reel.Thread{TID: 1 << 31, Name: strings.Repeat("n", 20_000)}, reel.Entry(5000, base, 1), reel.Exit(5001, base, 1))
	})
}

func TestHostileReelsGiveFilesThatReadersTakeWhole(t *testing.T) {
	withClock := hostile(t)
	reels := []*reel.File{withClock, withoutClock(t, withClock)}
	out := map[string][]string{}
	for _, f := range reels {
		for ext := range exporters {
			out[ext] = append(out[ext], exportTo(t, f, ext, Options{}))
		}
		out["few names"] = append(out["few names"], exportFewNames(t, f))
		out["folded calls"] = append(out["folded calls"], exportTo(t, f, "folded", Options{Weight: WeightCalls}))
	}
	traces := catapult(t, out["json"]...)
	rows := traceProcessor(t, slices.Concat(out["pftrace"], out["few names"], out["json"]), perfettoCalls, `select name, value from stats where value > 0 and severity != 'info'`,
		`select name, count(*) from slice where category = 'callreel' group by name order by name`,
		`select extract_arg(arg_set_id, 'debug.end') as ended from slice where ended is not null order by 1`)
	profiles := speedscopeImport(t, slices.Concat(out["speedscope"], out["json"], out["pb.gz"], out["folded"])...)
	for k, f := range reels {
		mode := f.Header().Clock.Mode
		want, folded := map[string]int64{}, map[string]int64{}
		for _, fn := range reel.Summarize(f, reel.SummaryOptions{}).Functions {
			name, _ := (&walk{f: f}).functionName(fn.ID)
			want[validText(name)] += int64(fn.Calls)
			folded[foldable(name)] += int64(fn.Calls)
		}
		if len(want) != len(hostileNames())+1 {
			t.Fatalf("clock %v: %d functions: %q", mode, len(want), slices.Collect(maps.Keys(want)))
		}
		if len(traces[k].Warnings) > 0 || len(rows[k][1]) > 0 {
			t.Errorf("clock %v: Chrome's trace viewer warns: %q, trace_processor: %v", mode, traces[k].Warnings, rows[k][1])
		}
		if got, want := fmt.Sprint(rows[k+len(reels)]), fmt.Sprint(rows[k]); got != want {
			t.Errorf("clock %v: with few names at a time trace_processor finds\n%s\nwant\n%s", mode, got, want)
		}
		for reader, s := range map[string]*seen{
			"catapult": seenByCatapult(traces[k]), "trace_processor": seenByTraceProcessor(rows[k][0]), "speedscope": seenBySpeedscope(profiles[k]),
			"pprof": seenByPProf(t, out["pb.gz"][k]), "trace_processor, chrome": seenByTraceProcessor(rows[k+2*len(reels)][0]), "speedscope, chrome": seenBySpeedscope(profiles[k+len(reels)]),
		} {
			if !maps.Equal(s.calls, want) {
				t.Errorf("clock %v, %s: %s", mode, reader, differences(s.calls, want))
			}
		}
		if s := seenInFolded(t, out["folded calls"][k], false); !maps.Equal(s.calls, folded) {
			t.Errorf("clock %v, folded: %s", mode, differences(s.calls, folded))
		}
		if got, want := fmt.Sprint(rows[k][2]), "[[calls open when the thread or the recording ended 2] [events dropped: the ring was full 1] [to stack 2 1]]"; got != want {
			t.Errorf("clock %v: trace_processor finds instants %s, want %s", mode, got, want)
		}
		if got, want := fmt.Sprint(rows[k][3]), "[[implicit] [implicit] [unfinished] [unfinished]]"; got != want {
			t.Errorf("clock %v: trace_processor finds ends %s, want %s", mode, got, want)
		}
		titles := ""
		for _, p := range profiles[k].Profiles {
			titles += p.Name + "; "
		}
		for _, want := range []string{", 13 events dropped", ", 1 call open at the end, 2 calls ended without returning; "} {
			if !strings.Contains(titles, want) {
				t.Errorf("clock %v: speedscope's profiles are %q; none has %q", mode, titles, want)
			}
		}
		p := parsePProf(t, out["pb.gz"][k])
		if !slices.ContainsFunc(p.Comments, func(c string) bool { return strings.HasPrefix(c, "7 calls dropped") }) {
			t.Errorf("clock %v: pprof's comments are %q", mode, p.Comments)
		}
	}
}

// exportFewNames writes a Perfetto trace in which the state of a sequence is cleared after each two names.
func exportFewNames(t *testing.T, f *reel.File) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "few.pftrace"))
	if err == nil {
		defer out.Close()
		p := newPerfetto(t.Context(), f, out, Options{})
		p.names = 2
		err = p.export()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Name()
}

// withoutClock is a copy of a reel that has no times.
func withoutClock(t *testing.T, f *reel.File) *reel.File {
	t.Helper()
	return record(t, reel.ClockNone, hostileNames(), func(w *reel.Writer) {
		for _, thread := range f.Threads() {
			tw := appendTo(t, w, thread)
			f.ReadThread(thread.Key, func(events []reel.Event, _ bool) bool {
				events = slices.Clone(events)
				for i := range events {
					events[i].Time = 0
				}
				if err := tw.Append(events); err != nil {
					t.Fatal(err)
				}
				return true
			})
		}
		tw := appendTo(t, w, reel.Thread{TID: 6, Name: "drops"})
		if err := tw.Dropped(7, 6, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// A mapping has its build ID, address range and functions at their run-time addresses.
func TestPProfHasImagesAndAddresses(t *testing.T) {
	f := recordAs(t, reel.Header{}, nil, func(w *reel.Writer) {
		for _, m := range []reel.Image{{Path: "/usr/lib/liby.so", ID: "beef", Base: 0x7000, End: 0x9000, Slide: 0x7000}, {Path: "/usr/bin/prog", ID: "c0ffee", Base: 0x400000, End: 0x500000}} {
			if _, err := w.AddImage(m); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.AddFunctions([]reel.Function{{Name: "_ZN1a1bEv", Image: 2, Addr: 0x120, Size: 32}, {Name: "main", Image: 3, Addr: 0x400800, Size: 32}}); err != nil {
			t.Fatal(err)
		}
		appendTo(t, w, reel.Thread{TID: 5, Name: "one", Process: 77}, reel.Entry(2000, base, 2), reel.Entry(2010, base-64, 1), reel.Exit(2040, base-64, 1), reel.Exit(2100, base, 2))
		appendTo(t, w, reel.Thread{TID: 6, Name: "two", Process: 77}, reel.Entry(2000, base, 2), reel.Exit(2100, base, 2))
	})
	p := parsePProf(t, exportTo(t, f, "pb.gz", Options{Name: func(n string) string { return strings.Replace(n, "_ZN1a1bEv", "a::b()", 1) }}))
	if m := p.Mapping[0]; m.File != "/usr/bin/prog" || m.BuildID != "c0ffee" || m.Start != 0x400000 || m.Limit != 0x500000 || !m.HasFunctions {
		t.Errorf("the first mapping is %+v", m)
	}
	var got []string
	for _, s := range p.Sample {
		line := ""
		for _, l := range s.Location {
			line += fmt.Sprintf("%s %s %#x %s, ", l.Line[0].Function.Name, l.Line[0].Function.SystemName, l.Address, l.Mapping.BuildID)
		}
		got = append(got, line+fmt.Sprint(s.Value, s.Label, s.NumLabel))
	}
	want := []string{
		"main main 0x400800 c0ffee, [1 70] map[thread:[one]] map[pid:[77]]",
		"a::b() _ZN1a1bEv 0x7120 beef, main main 0x400800 c0ffee, [1 30] map[thread:[one]] map[pid:[77]]",
		"main main 0x400800 c0ffee, [1 100] map[thread:[two]] map[pid:[77]]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("samples\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	types := fmt.Sprintf("%s/%s %s/%s %s", p.SampleType[0].Type, p.SampleType[0].Unit, p.SampleType[1].Type, p.SampleType[1].Unit, p.DefaultSampleType)
	if types != "calls/count wall/nanoseconds wall" || p.DurationNanos != 1100 || p.TimeNanos != 1_700_000_000_000_000_000 {
		t.Errorf("%s, %d ns from %d", types, p.DurationNanos, p.TimeNanos)
	}
}

// Trees that are written before their end, and stacks deeper than frames are told, lose no call and no time.
func TestStacksBeyondTheLimitsAreCountedAll(t *testing.T) {
	var events []reel.Event
	now := uint64(2000)
	for range 3 {
		for i := range 3 * maxFrames {
			now += 5
			events = append(events, reel.Entry(now, uint32(base-16*i), uint32(1+i%40)))
		}
		for i := 3*maxFrames - 1; i >= 0; i-- {
			now += 7
			events = append(events, reel.Exit(now, uint32(base-16*i), uint32(1+i%40)))
		}
	}
	f := record(t, reel.ClockFull, manyNames(), func(w *reel.Writer) {
		appendTo(t, w, reel.Thread{TID: 1, Name: "t"}, slices.Concat(events, manyCalls(5000))...)
		appendTo(t, w, reel.Thread{TID: 2, Name: "u"}, manyCalls(5000)...)
	})
	sum := reel.Summarize(f, reel.SummaryOptions{})
	for _, limit := range []int{maxTree, 2000} {
		dir := t.TempDir()
		write := func(name string, opt Options, do func(*callTree, io.Writer) error) string {
			file, err := os.Create(filepath.Join(dir, name))
			if err == nil {
				defer file.Close()
				tree := newCallTree(t.Context(), f, opt)
				tree.limit = limit
				if err = do(tree, file); len(tree.nodes) > limit+3*maxFrames {
					t.Errorf("%d nodes, limit %d", len(tree.nodes), limit)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			return file.Name()
		}
		seenByPProf(t, write("p.pb.gz", Options{}, (*callTree).pprof)).checkReport(t, fmt.Sprint("pprof, limit ", limit), sum)
		seenInFolded(t, write("folded", Options{}, (*callTree).folded), true).checkReport(t, fmt.Sprint("folded, limit ", limit), sum)
		seenInFolded(t, write("calls.folded", Options{Weight: WeightCalls}, (*callTree).folded), false).checkReport(t, fmt.Sprint("folded calls, limit ", limit), sum)
	}
}

// What goes through the temporary file comes out as it went in, in any interleaving of lanes.
func TestSpoolKeepsLanesApartAndInOrder(t *testing.T) {
	s := spool{dir: t.TempDir()}
	const lanes, events = 300, 200_000
	chains, next := make([]spoolLane, lanes), make([]uint64, lanes)
	state := uint32(1)
	for range events {
		state = state*1664525 + 1013904223
		lane := int(state>>16) % lanes
		if state>>30 > 0 {
			lane %= 3 // which fill blocks of their own
		}
		if err := s.add(&chains[lane], next[lane], uint64(lane)<<40); err != nil {
			t.Fatal(err)
		}
		next[lane]++
	}
	if err := s.flushAll(); err != nil || s.buffered != 0 {
		t.Fatalf("%v, %d held", err, s.buffered)
	}
	for lane := range chains {
		n := uint64(0)
		err := s.read(&chains[lane], func(a, b uint64) bool {
			if a != n || b != uint64(lane)<<40 {
				t.Fatalf("lane %d, event %d: %d %d", lane, n, a, b)
			}
			n++
			return true
		})
		if err != nil || n != next[lane] {
			t.Errorf("lane %d: %d events of %d, %v", lane, n, next[lane], err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
