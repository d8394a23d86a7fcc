package export

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// recordThreads records a C program whose threads come into being and end; some calls are open when the recording ends.
func recordThreads(t *testing.T) *reel.File {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	p := realtest.Start(t, realtest.Build(t, "threads"), "fixed", "3", "150")
	r := realtest.StartRecording(t, "-p", strconv.Itoa(p.Pid()), "-m", "threads-*", "--lossless")
	p.Go()
	p.WaitLine("counted ")
	r.Stop()
	return openReel(t, r.File)
}

// recordGoroutines records a Go program.
func recordGoroutines(t *testing.T) *reel.File {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace, realtest.GoTool)
	out := filepath.Join(t.TempDir(), "goroutines")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/targets/goroutines")
	cmd.Dir = realtest.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p := realtest.Start(t, out, "rounds", "1")
	r := realtest.StartRecording(t, "-p", strconv.Itoa(p.Pid()), "-f", "main.*", "-f", "runtime.goexit1", "-f", "runtime.newproc1", "--lossless")
	p.Go()
	p.WaitLine("counted ")
	r.Stop()
	return openReel(t, r.File)
}

// openReel opens a copy of a recording in which the clock goes evenly: the report's durations go by the clock's mean rate, points in time by that at
// the moment, and on a busy machine these can differ by more than a test can allow.
func openReel(t *testing.T, path string) *reel.File {
	t.Helper()
	f, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	even := filepath.Join(t.TempDir(), "even.reel")
	w, err := reel.Create(even, f.Header(), reel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Images() {
		if _, err := w.AddImage(m); err != nil {
			t.Fatal(err)
		}
	}
	var functions []reel.Function
	for _, fn := range f.Functions {
		functions = append(functions, fn)
	}
	if _, err := w.AddFunctions(functions); err != nil {
		t.Fatal(err)
	}
	for _, thread := range f.Threads() {
		tw := appendTo(t, w, thread)
		f.ReadThread(thread.Key, func(events []reel.Event, _ bool) bool {
			err = tw.Append(events)
			return err == nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = reel.Open(even); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Each format's real reader finds the calls, names, times and nesting that the report has.
func TestReadersSeeWhatTheReportSays(t *testing.T) {
	files := []*reel.File{recordThreads(t), recordGoroutines(t)}
	opt := Options{Name: demangle.Name}
	calls := opt
	calls.Weight = WeightCalls
	out := map[string][]string{} // by format
	for _, f := range files {
		for ext := range exporters {
			out[ext] = append(out[ext], exportTo(t, f, ext, opt))
		}
		out["folded calls"] = append(out["folded calls"], exportTo(t, f, "folded", calls))
	}
	traces := catapult(t, out["json"]...)
	rows := traceProcessor(t, slices.Concat(out["pftrace"], out["json"]), perfettoCalls, `select name, value from stats where value > 0 and severity != 'info'`)
	profiles := speedscopeImport(t, slices.Concat(out["speedscope"], out["json"], out["pb.gz"], out["folded"])...)
	for k, f := range files {
		name := []string{"threads", "goroutines"}[k]
		sum := reel.Summarize(f, reel.SummaryOptions{Name: demangle.Name})
		if sum.Calls < 1000 || sum.DroppedEntries > 0 || len(sum.Damage) > 0 {
			t.Fatalf("%s: %d calls, %d dropped, damage %v", name, sum.Calls, sum.DroppedEntries, sum.Damage)
		}
		if len(traces[k].Warnings) > 0 || len(rows[k][1])+len(rows[k+len(files)][1]) > 0 {
			t.Errorf("%s: Chrome's trace viewer warns: %q, trace_processor: %v", name, traces[k].Warnings, rows[k][1])
		}
		checkLanes(t, traces[k], sum)
		for _, p := range profiles[2*len(files):] { // these two formats it has as times of stacks only
			if len(p.Profiles) != 1 || p.Profiles[0].Total <= 0 {
				t.Errorf("%s: speedscope reads of another format %d profiles", name, len(p.Profiles))
			}
		}
		byReader := map[string]*seen{
			"catapult":                seenByCatapult(traces[k]),
			"trace_processor":         seenByTraceProcessor(rows[k][0]),
			"speedscope":              seenBySpeedscope(profiles[k]),
			"trace_processor, chrome": seenByTraceProcessor(rows[k+len(files)][0]),
			"speedscope, chrome":      seenBySpeedscope(profiles[k+len(files)]),
			"pprof":                   seenByPProf(t, out["pb.gz"][k]),
			"folded":                  seenInFolded(t, out["folded"][k], true),
			"folded calls":            seenInFolded(t, out["folded calls"][k], false),
		}
		for reader, s := range byReader {
			s.checkReport(t, name+", "+reader, sum)
			if want := byReader["pprof"].edges; s.count && !maps.Equal(s.edges, want) {
				t.Errorf("%s, %s: callers differ from pprof's in\n%s", name, reader, differences(s.edges, want))
			}
		}
		checkGoToolPProf(t, out["pb.gz"][k], sum)
	}
}

// checkLanes checks the calls of each thread and goroutine against the report.
func checkLanes(t *testing.T, trace catapultTrace, sum *reel.Summary) {
	t.Helper()
	got := map[string]uint64{}
	runs := 0
	for _, th := range trace.Threads {
		name := strings.TrimSuffix(th.Name, ", stack 2")
		for _, c := range th.Slices {
			switch c.category {
			case "callreel":
			case "goroutine":
				runs++
			default:
				got[name]++
			}
		}
	}
	want := map[string]uint64{}
	for _, g := range sum.Goroutines {
		if g.ID != 0 && g.Calls > 0 {
			want[goroutineName(g.ID)] = g.Calls
		}
	}
	for name := range got {
		if !strings.HasPrefix(name, "goroutine ") {
			delete(got, name)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("calls of goroutines %v, in the report %v", got, want)
	}
	if len(want) > 0 && (runs < len(want) || len(trace.Flows) == 0) {
		t.Errorf("%d runs of %d goroutines on threads, flows %v", runs, len(want), trace.Flows)
	}
	for _, f := range trace.Flows {
		if strings.HasPrefix(f[0], "goroutine ") && f[0] != f[1] {
			t.Errorf("a flow leads from %s to %s", f[0], f[1])
		}
	}
	if len(trace.Counters) < 2 {
		t.Errorf("counters: %v", trace.Counters)
	}
}

// checkGoToolPProf has go tool pprof list the calls.
func checkGoToolPProf(t *testing.T, file string, sum *reel.Summary) {
	t.Helper()
	out, err := exec.Command("go", "tool", "pprof", "-top", "-sample_index=calls", "-nodecount=10000", "-nodefraction=0", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]int64{}, map[string]int64{}
	_, table, _ := strings.Cut(string(out), "cum%\n")
	for line := range strings.Lines(table) {
		w := strings.Fields(line)
		n, err := strconv.ParseInt(w[0], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got[strings.Join(w[5:], " ")] += n
	}
	for _, f := range sum.Functions {
		want[f.Name] += int64(f.Calls)
	}
	if !maps.Equal(got, want) {
		t.Errorf("go tool pprof: calls differ from the report's in\n%s", differences(got, want))
	}
}
