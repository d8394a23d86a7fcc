package recorder_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// markersList is what callreel markers --json says.
type markersList struct {
	Markers []struct {
		Provider, Name, Kind, Reason string
		WithFunctions                string `json:"with_functions"`
		Joined                       bool
		Count                        *int
	}
}

func listMarkers(t testing.TB, args ...string) markersList {
	t.Helper()
	return realtest.Decode[markersList](t, realtest.MustCallreel(t, append([]string{"markers", "--json"}, args...)...).Stdout)
}

// markersOf is what the summary of a recording says of markers.
type markersOf struct {
	Calls, Dropped, Marks int64
	TextVerified          bool `json:"text_verified"`
	Markers               struct {
		Seen, Recorded int
		Refused        map[string]int
	}
}

// recordMarkers records markers of a process for a while.
func recordMarkers(t *testing.T, file string, args ...string) (m markersOf) {
	t.Helper()
	run := realtest.MustCallreel(t, append([]string{"record", "--json", "--force", "-o", file}, args...)...)
	if err := json.Unmarshal([]byte(run.Stdout), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// passed is how often each marker was passed, by provider:name, and what a function is told of each passing.
func passed(t *testing.T, file string, each func(m *reel.Marker, values []string, thread uint32)) map[string]int64 {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]int64{}
	last := map[uint32]uint64{}
	for thread, x := range f.AllMarks {
		m, ok := f.Marker(x.Marker)
		if !ok {
			t.Fatalf("a mark of marker %d", x.Marker)
		}
		if x.Time < last[thread] {
			t.Fatalf("thread %d: a mark at %d behind one at %d", thread, x.Time, last[thread])
		}
		last[thread] = x.Time
		all[m.Provider+":"+m.Name]++
		if each == nil {
			continue
		}
		values := make([]string, len(x.Values))
		for i := range x.Values {
			values[i] = m.Arguments[i].Text(x.Values[i])
		}
		each(m, values, thread)
	}
	return all
}

// At a marker everything is the program's: each register, the flags, the vector and x87 registers, and what is below the stack pointer.
func TestMarkersKeepEveryRegister(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.AMD64) // where the program's shapes have markers
	p := realtest.Start(t, realtest.Build(t, "state"), "2")
	realtest.GiveWay(t, p.Pid())
	file := filepath.Join(t.TempDir(), "marks.reel")
	marks := int64(0)
	for i := range 12 {
		flags := append(pidFlag(p), "-d", "40ms", "--markers", "shapes:*")
		switch i % 4 {
		case 1:
			flags = append(flags, "-m", "state*", "--ring", "512K")
		case 2: // through the slow path: strings at addresses that are none
			flags = append(flags, "--markers", "shapes:*(arg1:s, arg2)", "--lossless", "--ring", "512K")
		case 3:
			flags = append(flags, "-m", "state*", "--lazy", "--min", "1us")
		}
		m := recordMarkers(t, file, flags...)
		if !m.TextVerified || m.Markers.Recorded == 0 || len(m.Markers.Refused) > 1 {
			t.Errorf("%q: %+v", flags, m)
		}
		marks += m.Marks
		wantUntouched(t, p.Pid())
	}
	if marks == 0 {
		t.Error("no marks")
	}
	if counts := p.Finish(); counts["calls"] == 0 {
		t.Errorf("%v", counts)
	}
}

// The marks are those that the program counts, with the values that it gives them.
func TestMarksAreWhatTheProgramSays(t *testing.T) {
	t.Parallel()
	needLive(t)
	const threads, rounds = 3, 5000
	program := realtest.Build(t, "marks")
	for _, with := range [][]string{nil, {"-m", "marks*"}, {"-m", "marks*", "--lazy"}} {
		p := realtest.Start(t, program, strconv.Itoa(threads), strconv.Itoa(rounds))
		r := realtest.StartRecording(t, slices.Concat(pidFlag(p), []string{"--lossless", "--markers", "marks:*", "--markers", "marks:strings(arg1:s, arg2, arg3:s)"}, with)...)
		p.Go()
		p.WaitLine("counted ")
		stop(t, r)
		next := map[string]int64{} // by thread and marker
		got := passed(t, r.File, func(m *reel.Marker, values []string, thread uint32) {
			key := fmt.Sprint(thread, m.Name)
			i := next[key]
			next[key]++
			want := []string{fmt.Sprint(i)}
			switch m.Name {
			case "leaf":
				want = []string{fmt.Sprint(i), fmt.Sprint(i * 3), fmt.Sprint(i ^ 0x5555)}
				slices.Sort(want[1:])
				slices.Sort(values[1:]) // which variable is where is the compiler's choice: "m" operands keep their order
			case "sizes":
				want = []string{fmt.Sprint(uint8(i)), fmt.Sprint(-int16(i)), fmt.Sprint(uint32(i * 0x10001)), fmt.Sprint(-i), "-12",
					strconv.FormatFloat(float64(i)/2, 'g', -1, 64), "77"}
				values = values[:7] // the last is of all threads
			case "indexed":
				want = []string{fmt.Sprint(i + i%4), fmt.Sprint(i + i%4), "7"}
			case "strings":
				text := fmt.Sprintf("round %d", i)
				want = []string{text, fmt.Sprint(i), text}
				if i%16 == 15 {
					want = []string{text, "?", "?"}
				}
			}
			if !slices.Equal(values, want) {
				t.Fatalf("%s of thread %d, round %d: %q, not %q", m.Name, thread, i, values, want)
			}
		})
		counts := p.Finish()
		if counts["semaphore"] != 0 {
			t.Errorf("the semaphore is %d", counts["semaphore"])
		}
		for name, want := range map[string]int64{"leaf": counts["rounds"], "sizes": counts["rounds"], "strings": counts["rounds"], "indexed": counts["rounds"],
			"request__start": counts["rounds"], "request__done": counts["rounds"], "guarded": counts["guarded"]} {
			if n := got["marks:"+name]; n != want || n != threads*rounds {
				t.Errorf("%q: %d marks of %s, and the program says %d", with, n, name, want)
			}
		}
		f, err := reel.Open(r.File)
		if err != nil {
			t.Fatal(err)
		}
		s := f.SummarizeMarks(reel.MarkSummaryOptions{})
		if len(s.Spans) != 1 || s.Spans[0].Count != threads*rounds {
			t.Errorf("spans: %+v", s.Spans)
		}
		f.Close()
	}
}

// semaphoreOf is what the semaphore of the guarded marker is.
func semaphoreOf(t testing.TB, p *realtest.Proc) int {
	t.Helper()
	list := listMarkers(t, append(pidFlag(p), "--name", "guarded")...)
	if len(list.Markers) != 1 || list.Markers[0].Count == nil {
		t.Fatalf("%+v", list)
	}
	return *list.Markers[0].Count
}

// Whenever a recorder is killed, semaphores are as before once detach has cleaned up.
func TestSemaphoresOutliveNoRecorder(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "marks"), "2", "0")
	start := time.Now()
	r := realtest.StartRecording(t, append(pidFlag(p), "--markers", "marks:*")...)
	most := max(300*time.Millisecond, 2*time.Since(start))
	if n := semaphoreOf(t, p); n != 1 {
		t.Errorf("it is %d while recorded", n)
	}
	stop(t, r)
	if n := semaphoreOf(t, p); n != 0 {
		t.Errorf("it is %d behind it", n)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	outcomes := map[string]int{}
	for i := range kills(t) {
		flags := append(pidFlag(p), "--markers", "marks:*")
		if i%2 == 1 {
			flags = append(flags, "-d", "20ms")
		}
		if i%4 > 1 {
			flags = append(flags, "-m", "marks*")
		}
		outcomes[killedAfter(t, p, time.Duration(random.Int64N(int64(most))), flags)]++
		if n := semaphoreOf(t, p); n != 0 {
			t.Fatalf("%v: it is %d", outcomes, n)
		}
	}
	t.Logf("%v", outcomes)
	if counts := p.Finish(); counts["semaphore"] != 0 || counts["guarded"] == 0 {
		t.Errorf("%v", counts)
	}
}

// A forked child that is followed has its markers recorded, and its own semaphores.
func TestMarkersOfPython(t *testing.T) {
	t.Parallel()
	needLive(t)
	const python = "/usr/bin/python3"
	list := realtest.Callreel(t, "markers", "--json", python)
	realtest.NeedThat(t, "python3 with markers", func() error {
		if list.Code != 0 || len(realtest.Decode[markersList](t, list.Stdout).Markers) == 0 {
			return exec.ErrNotFound
		}
		return nil
	}())
	const program = `
import gc, os, sys
gc.disable()
def work(n):
    for i in range(n): gc.collect()
if os.fork() == 0:
    work(7); os._exit(0)
os.wait()
work(5)
`
	file := filepath.Join(t.TempDir(), "python.reel")
	realtest.MustCallreel(t, "record", "--force", "--follow", "-o", file, "--markers", "python:gc__*", "--", python, "-S", "-c", program)
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.SummarizeMarks(reel.MarkSummaryOptions{})
	if len(s.Spans) != 1 || s.Spans[0].Name != "gc" || s.Spans[0].Count < 12 || s.Spans[0].Count != s.Spans[0].Complete {
		t.Errorf("%+v", s.Spans)
	}
}

// A marker that is asked for and isn't there is an error, and what is near it is named.
func TestMarkersThatAreNotThereAreSaid(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "marks"), "1", "0")
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"--markers", "marks:laef"}, 2},
		{[]string{"--markers", "marks:leaf(x)"}, 2},
		{[]string{"--pair", "a=b"}, 2},
		{[]string{"--markers", "marks:leaf", "--clock", "none"}, 2},
		{[]string{"--markers", "marks:leaf", "--pair", "a"}, 2},
	} {
		run := realtest.Callreel(t, slices.Concat([]string{"record", "-d", "1s", "-o", filepath.Join(t.TempDir(), "x.reel")}, pidFlag(p), c.args)...)
		if run.Code != c.code {
			t.Errorf("%q: code %d\n%s", c.args, run.Code, run.Stderr)
		}
	}
	p.Finish()
}

// Markers and spans arm: a dump is made of what led to them, with the marks in it.
func TestMarkersAndSpansMakeDumps(t *testing.T) {
	t.Parallel()
	needLive(t)
	program := realtest.Build(t, "marks")
	for _, c := range []struct {
		when, marker string
		kind         reel.MarkKind
	}{
		{"marker marks:strings #500", "strings", reel.MarkInstant},
		{"span request > 1ns", "request__done", reel.MarkEnd},
	} {
		p := realtest.Start(t, program, "1", "0")
		r := realtest.StartRecording(t, append(pidFlag(p), "--markers", "marks:*", "--when", c.when)...)
		file := waitDumps(t, r, 1)[0] // the span's fires at once: what is called as soon as recording is on is in dumps
		stopArmed(t, r)
		found := false
		passed(t, file, func(m *reel.Marker, values []string, _ uint32) {
			found = found || m.Name == c.marker && m.Kind == c.kind && len(values) > 0
		})
		if !found {
			t.Errorf("%s: no mark of %s", c.when, c.marker)
		}
		p.Finish()
	}
}
