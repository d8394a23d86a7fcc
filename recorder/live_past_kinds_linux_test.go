package recorder_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// dumpAll makes a dump of all that there is and returns its file.
func dumpAll(t *testing.T, p interface{ Pid() int }) string {
	t.Helper()
	return strings.TrimSpace(realtest.MustCallreel(t, append([]string{"dump", "--last", "1h"}, pidFlag(p)...)...).Stdout)
}

// isWhole says whether a dump has all; on a busy machine the recorder may have come too late, and then the dump must say so.
func isWhole(t *testing.T, rep dumpReport) bool {
	t.Helper()
	if len(rep.Missing) > 0 {
		t.Logf("not whole: %+v", rep.Missing)
	}
	return len(rep.Missing) == 0
}

// Of 3000 threads that live for a moment a dump has all calls.
func TestDumpsHaveThreadsThatLivedForAMoment(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "crowd"), "prctl", "3000")
	p.WaitLine("ready")
	r := realtest.StartRecording(t, append(pidFlag(p), "-f", "counted_call", "--when", "counted_call > 1h")...)
	p.Say("")
	p.WaitLine("made")
	file := dumpAll(t, p)
	stopArmed(t, r)
	rep := reportOfDump(t, file)
	const want = 2 * 3000
	if calls := rep.Report.Calls("counted_call"); calls > want || isWhole(t, rep) && calls != want {
		t.Errorf("%d calls, want %d", calls, want)
	}
}

// Goroutines go from thread to thread, and from the past to what the rings hold.
func TestDumpsOfGoProgramsReachBack(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, goTarget(t), "rounds", "60")
	r := realtest.StartRecording(t, slices.Concat(pidFlag(p), goCounted, []string{"--ring", "8M", "--when", "main.spin > 1h"})...)
	p.Go()
	p.WaitLine("counted ")
	file := dumpAll(t, p)
	s := realtest.Decode[pastSummary](t, strings.Join(func() []string { r.Stop(); return r.Stdout() }(), "\n"))
	wantUntouched(t, p.Pid())
	lines := p.Stdout()
	made := p.Finish()
	rep := reportOfDump(t, file)
	t.Logf("%d events; kept: %+v", eventsOf(t, file), s.Past)
	if !isWhole(t, rep) {
		return
	}
	for name, n := range made {
		if got := rep.Report.Calls(name); got != n {
			t.Errorf("%d calls of %s in the report, the program made %d", got, name, n)
		}
	}
	wantGoroutines(t, rep.report, lines)
	wantEndsOfGoCalls(t, rep.report, made)
}

// What events carried long ago is still that of the same events.
func TestDumpsHaveTheArgumentsOfThePast(t *testing.T) {
	needLive(t)
	t.Run("all calls", func(t *testing.T) { dumpsHaveArgumentsOfThePast(t) })
	t.Run("long calls", func(t *testing.T) { dumpsHaveArgumentsOfThePast(t, "--min", "1ns") }) // which all are, but they are looked at
}

func dumpsHaveArgumentsOfThePast(t *testing.T, flags ...string) {
	program, dir := realtest.Build(t, "arguments"), filepath.Join(t.TempDir(), "dumps")
	const rounds = 60000
	out, err := exec.Command(realtest.CallreelPath(t), slices.Concat([]string{"record", "-o", dir, "-m", filepath.Base(program), "-f", "integers", "-f", "mixed",
		"--args", "integers(e, h)", "--ret", "integers", "--when", "mixed > 1h", "--keep", "1h", "--ring", "4M"}, flags,
		[]string{"--", program, strconv.Itoa(rounds), "1000"})...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "slow-0001.reel")
	f, err := reel.Open(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	defer f.Close()
	for _, thread := range f.Threads() {
		var all []reel.Event
		f.ReadThread(thread.Key, func(events []reel.Event, _ bool) bool {
			all = append(all, events...)
			return true
		})
		r, sets, integers := f.Values(thread.Key), 0, 0
		for s := r.Next(); s != nil; s = r.Next() {
			sets++
			e := all[s.Number]
			if e.ID() != s.Function || e.IsExit() != s.AtReturn || e.Time != s.Time || e.SP != s.SP || s.Values[0].State != reel.ValueKnown {
				t.Fatalf("%+v of event %+v", s, e)
			}
		}
		for _, e := range all {
			if fn, _ := f.Function(e.ID()); fn.Name == "integers" {
				integers++
			}
		}
		if sets != integers {
			t.Errorf("%d events of integers, %d with values", integers, sets)
		}
		if rep := reportOfDump(t, file); isWhole(t, rep) && integers != 2*rounds {
			t.Errorf("%d events of %d calls", integers, rounds)
		}
	}
}

// So is what markers said.
func TestDumpsHaveTheMarksOfThePast(t *testing.T) {
	needLive(t)
	const threads, rounds = 3, 40000
	p := realtest.Start(t, realtest.Build(t, "marks"), strconv.Itoa(threads), strconv.Itoa(rounds))
	r := realtest.StartRecording(t, append(pidFlag(p), "-m", "marks*", "--ring", "8M", "--markers", "marks:strings(arg1:s, arg2, arg3:s)", "--markers", "marks:request*",
		"--when", "leaf > 1h")...)
	p.Go()
	p.WaitLine("counted ")
	file := dumpAll(t, p)
	stopArmed(t, r)
	p.Finish()
	rep := reportOfDump(t, file)
	full := isWhole(t, rep)
	next := map[uint32]int64{} // by thread
	got := passed(t, file, func(m *reel.Marker, values []string, thread uint32) {
		if m.Name != "strings" {
			return
		}
		i := next[thread]
		next[thread]++
		text := fmt.Sprintf("round %d", i)
		want := []string{text, fmt.Sprint(i), text}
		if i%16 == 15 {
			want = []string{text, "?", "?"}
		}
		if full && !slices.Equal(values, want) {
			t.Fatalf("thread %d, round %d: %q, not %q", thread, i, values, want)
		}
	})
	if n := got["marks:strings"]; full && n != threads*rounds {
		t.Errorf("%d marks, not %d: %v", n, threads*rounds, got)
	}
}

// A recorder that is killed takes with it what it has kept, and nothing else: the process goes on, and detach leaves it as it was.
func TestAProcessOutlivesAnArmedRecorder(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 1h", "--ring", "2M")
	a.do("100 0")
	r.Signal(os.Kill)
	r.Wait()
	before := a.made(t)
	for a.made(t)-before < 100000 { // which goes over all chunks
		a.do("100 0")
	}
	realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(a)...)...)
	wantUntouched(t, a.Pid())
	a.do("100 0")
	a.Finish()
}
