package recorder_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// goTarget builds testdata/targets/goroutines, static.
func goTarget(t *testing.T, flags ...string) string {
	t.Helper()
	return goProgram(t, "goroutines", flags...)
}

// goProgram builds one of the Go programs.
func goProgram(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return realtest.BuildGo(t, name, flags...)
}

var goCounted = []string{"-f", "main.leaf", "-f", "main.deep", "-f", "main.thrower", "-f", "main.catcher", "-f", "main.spin", "-f", "main.marked", "-f", "main.keeps"}

// Calls recorded and calls dropped are the calls made, though stacks grow, panics are recovered from, goroutines are preempted and go
// from thread to thread; each goroutine's calls are its own.
func TestGoCallsAreCountedExactly(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, c := range []struct {
		name  string
		build []string
		flags []string
		all   bool // every function is traced
	}{
		{name: "counted functions", flags: goCounted},
		{name: "stripped", build: []string{"-ldflags=-s -w"}, flags: goCounted},
		{name: "position-independent", build: []string{"-buildmode=pie"}, flags: goCounted},
		{name: "all functions", all: true},
		{name: "small ring", flags: slices.Concat(goCounted, []string{"--ring", "512K"})},
		{name: "lossless", flags: slices.Concat(goCounted, []string{"--ring", "4M", "--lossless"})}, // more chunks than threads
	} {
		t.Run(c.name, func(t *testing.T) {
			p := realtest.Start(t, goTarget(t, c.build...), "rounds", "30")
			r := realtest.StartRecording(t, slices.Concat(pidFlag(p), c.flags)...)
			p.Go()
			p.WaitLine("counted ")
			s := stop(t, r)
			wantUntouched(t, p.Pid())
			lines := p.Stdout()
			made := p.Finish()
			rep := reportOf(t, r.File)
			if s.Left != "" {
				t.Errorf("memory is left: %s", s.Left)
			}
			if !c.all {
				want := int64(0)
				for _, n := range made {
					want += n
				}
				if s.Calls+s.Dropped != want {
					t.Errorf("%d calls recorded and %d dropped are %d, the program made %d", s.Calls, s.Dropped, s.Calls+s.Dropped, want)
				}
			}
			if c.name == "lossless" && s.Dropped != 0 {
				t.Errorf("--lossless dropped %d", s.Dropped)
			}
			if rep.Calls != s.Calls || rep.Dropped != s.Dropped {
				t.Errorf("report: %d calls, %d dropped; summary: %d, %d", rep.Calls, rep.Dropped, s.Calls, s.Dropped)
			}
			if s.Dropped > 0 {
				t.Logf("%d of %d calls dropped", s.Dropped, s.Calls+s.Dropped)
				return
			}
			for name, n := range made {
				if got := rep.Report.Calls(name); got != n {
					t.Errorf("%d calls of %s in the report, the program made %d", got, name, n)
				}
			}
			if !c.all {
				wantGoroutines(t, rep, lines)
				wantEndsOfGoCalls(t, rep, made)
			}
		})
	}
}

// wantGoroutines asserts that each goroutine that the program names has the calls that it made.
func wantGoroutines(t *testing.T, rep report, lines []string) {
	t.Helper()
	g := realtest.Decode[struct {
		Goroutines []struct {
			ID    uint64 `json:"id"`
			Calls int64  `json:"calls"`
		} `json:"goroutines"`
	}](t, rep.said)
	calls := map[uint64]int64{}
	for _, x := range g.Goroutines {
		calls[x.ID] += x.Calls
	}
	named := 0
	for _, line := range lines {
		var id uint64
		var n int64
		if k, _ := fmt.Sscanf(line, "goroutine %d %d", &id, &n); k != 2 {
			continue
		}
		named++
		if calls[id] != n {
			t.Errorf("goroutine %d has %d calls, it made %d", id, calls[id], n)
		}
	}
	if named != 8 {
		t.Errorf("%d goroutines are named, want 8", named)
	}
}

// wantEndsOfGoCalls asserts that calls ended by their own exits, but for those that a panic has left, and that no exit is left over.
func wantEndsOfGoCalls(t *testing.T, rep report, made realtest.Counts) {
	t.Helper()
	if rep.Unmatched != 0 {
		t.Errorf("%d exits without an entry", rep.Unmatched)
	}
	for name, n := range made {
		want := int64(0)
		if name == "main.thrower" {
			want = n
		}
		if got := rep.ends.of(name); got != want {
			t.Errorf("%d of %d calls of %s have no exit, want %d", got, n, name, want)
		}
	}
}

// A Go program under load is recorded and let go many times, and nothing breaks.
func TestGoProgramLivesThroughRecordings(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := realtest.Start(t, goTarget(t), "steady")
	realtest.GiveWay(t, p.Pid())
	for i := range realtest.Repeats(t, 5) {
		d := time.Duration(1+rand.IntN(200)) * time.Millisecond
		file := filepath.Join(t.TempDir(), "cycle.reel")
		res := realtest.Callreel(t, "record", "--json", "-d", d.String(), "-o", file, "-p", strconv.Itoa(p.Pid()))
		if res.Code != 0 {
			t.Fatalf("cycle %d: code %d: %s%s\n%s", i, res.Code, res.Stdout, res.Stderr, p.Ended())
		}
		if s := realtest.Decode[summary](t, res.Stdout); !s.TextVerified || s.Ended || s.Left != "" {
			t.Fatalf("cycle %d: %+v\n%s", i, s, p.Ended())
		}
		if !p.Alive() {
			t.Fatalf("cycle %d: the program has ended: %s", i, p.Ended())
		}
		wantUntouched(t, p.Pid())
	}
	p.Finish()
}

// A Go program that is started for recording is recorded from its first function on.
func TestGoCommandIsRecorded(t *testing.T) {
	needLive(t)
	file := filepath.Join(t.TempDir(), "go.reel")
	realtest.Need(t, realtest.GoTool)
	tool, err := realtest.GoTool.Find()
	if err != nil {
		t.Fatal(err)
	}
	res := realtest.Callreel(t, "record", "-o", file, "--", tool, "version")
	if res.Code != 0 || !strings.Contains(res.Stdout, "go version") {
		t.Fatalf("code %d: %s%s", res.Code, res.Stdout, res.Stderr)
	}
	// The first thread has no ID until runtime.minit gives it one, whose exit is then the first event.
	if rep := reportOf(t, file); rep.Report.Calls("main.main") != 1 || rep.Report.Calls("runtime.main") != 1 || rep.Unmatched > 1 {
		t.Errorf("main.main %d, runtime.main %d, %d exits without entry", rep.Report.Calls("main.main"), rep.Report.Calls("runtime.main"), rep.Unmatched)
	}
}

// All calls of one that is started for recording are there, if no space is wanting.
func TestAGoCommandIsCountedFromItsBeginning(t *testing.T) {
	needLive(t)
	r := startCommand(t, slices.Concat(goCounted, []string{"--ring", "4M", "--lossless"}), goTarget(t), "rounds", "3")
	r.WaitLine("ready")
	r.Go()
	r.WaitLine("counted ")
	made := r.Finish()
	if s := r.result(t); s.Dropped != 0 || !s.Ended {
		t.Errorf("%+v", s)
	}
	rep := reportOf(t, r.file)
	for name, n := range made {
		if got := rep.Report.Calls(name); got != n {
			t.Errorf("%d calls of %s in the report, the program made %d", got, name, n)
		}
	}
}

// Recording a Go program again is possible at once when its recorder was killed.
func TestGoProgramIsRecordedAgainAfterAKill(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, goTarget(t), "steady")
	realtest.GiveWay(t, p.Pid())
	for range 2 {
		killRecording(t, p)
		again := realtest.StartRecording(t, pidFlag(p)...)
		time.Sleep(50 * time.Millisecond)
		if s := stop(t, again); s.Calls == 0 || s.Left != "" {
			t.Errorf("%+v", s)
		}
		wantUntouched(t, p.Pid())
	}
	p.Finish()
}

// A Go program with C code in it is refused with the reason.
func TestCgoProgramIsRefused(t *testing.T) {
	needLive(t)
	const text = `package main

// int three(void) { return 3; }
import "C"
import ("fmt"; "io"; "os")

func main() { fmt.Println("ready"); io.Copy(io.Discard, os.Stdin); fmt.Printf("calls three=%d ok\n", C.three()) }
`
	program := realtest.BuildGoSource(t, text, []string{"CGO_ENABLED=1"})
	p := realtest.Start(t, program)
	res := realtest.Callreel(t, "record", "-m", "program", "-d", "10ms", "-o", filepath.Join(t.TempDir(), "no.reel"), "-p", strconv.Itoa(p.Pid()))
	if res.Code != 3 || !strings.Contains(res.Stderr, "CGO_ENABLED=0") {
		t.Errorf("code %d: %s", res.Code, res.Stderr)
	}
	list := realtest.MustCallreel(t, "functions", program)
	if !strings.Contains(list.Stdout, "- cgo ") || strings.Contains(list.Stdout, "exit-site") {
		t.Errorf("functions: %.2000s", list.Stdout)
	}
	if c := p.Finish(); c["three"] != 3 {
		t.Errorf("%v", c)
	}
}
