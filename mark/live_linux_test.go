package mark_test

import (
	"crypto/sha256"
	"encoding/hex"
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

// saysIn builds the program that says things in a language, and logs what it says.
func saysIn(t *testing.T, language string, flags ...string) string {
	t.Helper()
	root := realtest.Root()
	switch language {
	case "C", "C++":
		text, err := os.ReadFile(filepath.Join(root, "mark", "header", "callreel.h"))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text) // so that another header makes another program
		target := map[string]string{"C": "says", "C++": "says_cxx"}[language]
		return realtest.Build(t, target, append(flags, "-DHEADER="+hex.EncodeToString(sum[:4]))...)
	case "Rust":
		return rustSays(t, root)
	}
	return realtest.BuildGo(t, "gomarks", flags...)
}

// rustSays builds the one in Rust, of the macro that the documents have.
func rustSays(t *testing.T, root string) string {
	t.Helper()
	rustc, dir := realtest.Tool(t, realtest.Rustc), t.TempDir()
	page, err := os.ReadFile(filepath.Join(root, "docs", "markers-in-code.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```rust\n")
	macro, _, found := strings.Cut(block, "```")
	if !found || !strings.Contains(macro, "macro_rules! callreel") {
		t.Fatal("the documents have no macro for Rust")
	}
	body, err := os.ReadFile(filepath.Join(root, "testdata", "targets", "says.rs"))
	if err != nil {
		t.Fatal(err)
	}
	source, out := filepath.Join(dir, "says.rs"), filepath.Join(dir, "says")
	if err := os.WriteFile(source, append([]byte(macro), body...), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(rustc, "--edition", "2021", "-O", "-g", "-o", out, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// logOf is what a program has logged, by lane.
func logOf(lines []string) map[string][]string {
	all := map[string][]string{}
	for _, line := range lines {
		if rest, is := strings.CutPrefix(line, "said\t"); is {
			lane, what, _ := strings.Cut(rest, "\t")
			all[lane] = append(all[lane], what)
		}
	}
	return all
}

// marksOf are the marks of a reel in the same words, by lane: the goroutine, or the thread.
func marksOf(t *testing.T, f *reel.File) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	tids := map[uint32]int{}
	for _, th := range f.Threads() {
		tids[th.Key] = th.TID
	}
	for thread, x := range f.AllMarks {
		m, ok := f.Marker(x.Marker)
		if !ok {
			t.Fatalf("a mark of marker %d", x.Marker)
		}
		lane := strconv.FormatUint(x.Goroutine, 10)
		if x.Goroutine == 0 {
			lane = strconv.Itoa(tids[thread])
		}
		var values []string
		for i := range x.Values {
			if i != m.TitleArg {
				values = append(values, m.Arguments[i].Text(x.Values[i]))
			}
		}
		all[lane] = append(all[lane], fmt.Sprintf("%v\t%s\t%s", m.Kind, m.TitleOf(x), strings.Join(values, "|")))
	}
	return all
}

// What is recorded is what programs in C, C++, Rust and Go have logged themselves: each mark of every kind, with its title, ID and values, in order,
// of its thread or goroutine.
func TestWhatIsRecordedIsWhatProgramsLog(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	const lanes, rounds = 4, 1500
	for _, c := range []struct {
		name, language string
		flags          []string
		with           []string
	}{
		{"C", "C", nil, nil},
		{"C without optimization", "C", []string{"-O0"}, nil},
		{"C with all functions", "C", nil, []string{"-m", "says*"}},
		{"C++", "C++", nil, nil},
		{"Rust", "Rust", nil, nil},
		{"Go", "Go", nil, nil},
		{"Go, stripped and position-independent", "Go", []string{"-buildmode=pie", "-ldflags=-s -w"}, nil},
		{"Go without optimization", "Go", []string{"-gcflags=all=-N -l"}, nil},
		{"Go with all functions", "Go", nil, []string{"-m", "gomarks"}},
		{"Go in a small ring", "Go", nil, []string{"--ring", "4M"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := realtest.Start(t, saysIn(t, c.language, c.flags...), strconv.Itoa(lanes), strconv.Itoa(rounds))
			p.WaitLine("ready")
			r := realtest.StartRecording(t, append([]string{"-p", strconv.Itoa(p.Pid()), "--lossless", "--markers", "callreel:*"}, c.with...)...)
			p.Say("go")
			p.WaitLine("logged")
			s := r.Stop()
			p.Say("end")
			p.WaitLine("says semaphore=0 ok")
			if s.Dropped != 0 {
				t.Fatalf("%d dropped", s.Dropped)
			}
			f, err := reel.Open(r.File)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			said := logOf(p.Stdout())
			names(t, f, said)
			compare(t, said, marksOf(t, f))
			if c.language == "Go" {
				for lane, list := range said {
					id, _ := strconv.ParseUint(lane, 10, 64) // it is a goroutine's
					if name := f.GoroutineNames()[id]; name == "" || list[0] != "instant\tgoroutine name\t"+name {
						t.Errorf("goroutine %s is called %q, it has said %q", lane, name, list[0])
					}
				}
				wantSpansOfGoroutines(t, f, lanes*rounds)
				if n := realtest.Decode[realtest.Report](t, realtest.MustCallreel(t, "report", r.File, "--json").Stdout).Calls("github.com/callreel/callreel/mark.Begin"); n != 0 {
					t.Errorf("%d marks are calls as well", n)
				}
			}
		})
	}
}

// names takes the names out of the log that threads have given themselves, and holds them against the reel's.
func names(t *testing.T, f *reel.File, said map[string][]string) {
	t.Helper()
	for lane, list := range said {
		name, is := strings.CutPrefix(list[0], "thread-name\t\t")
		if !is {
			continue
		}
		said[lane] = list[1:]
		if !slices.ContainsFunc(f.Threads(), func(th reel.Thread) bool { return strconv.Itoa(th.TID) == lane && th.Name == name }) {
			t.Errorf("no thread %s is called %q", lane, name)
		}
	}
}

// compare holds what was recorded against what was logged.
func compare(t *testing.T, said, got map[string][]string) {
	t.Helper()
	if len(said) == 0 || len(said) != len(got) {
		t.Errorf("%d lanes were recorded, the program has logged %d", len(got), len(said))
	}
	for lane, want := range said {
		list := got[lane]
		if len(list) != len(want) {
			t.Errorf("lane %s: %d marks, the program has logged %d", lane, len(list), len(want))
		}
		for i := range min(len(list), len(want)) {
			if list[i] != want[i] {
				t.Errorf("lane %s, mark %d of %d: %q, the program has logged %q", lane, i, len(want), list[i], want[i])
				break
			}
		}
	}
}

// wantSpansOfGoroutines asserts that spans are whole, though goroutines have gone from thread to thread in them.
func wantSpansOfGoroutines(t *testing.T, f *reel.File, each int) {
	t.Helper()
	moved, counts := 0, map[string]int{}
	p := reel.NewSpanPairer(f)
	p.OnSpan = func(s *reel.Span) {
		title, _, _ := strings.Cut(s.Title, " ")
		counts[title]++
		if s.Thread != s.EndThread && !s.Async {
			moved++
		}
		if s.Unstarted || s.Unfinished && title != "late" && title != "numbered" { // an end without a name ends the innermost
			t.Errorf("%q is not whole: %+v", s.Title, s)
		}
	}
	f.AllMarks(func(thread uint32, x *reel.Mark) bool {
		p.Push(thread, x)
		return true
	})
	p.Finish()
	for _, title := range []string{"frame", "numbered", "100%", "late", "request"} {
		if counts[title] != each {
			t.Errorf("%d spans of %s, not %d", counts[title], title, each)
		}
	}
	if moved == 0 {
		t.Error("no goroutine has gone to another thread in a span")
	}
	t.Logf("%d spans ended on other threads than they had begun on", moved)
}

// A Go program that pauses its own recording is obeyed to the call, whether functions of this package are recorded or not.
func TestGoProgramsPauseTheirRecording(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	program := realtest.BuildGo(t, "gopauses")
	const rounds = 3000
	for _, more := range [][]string{nil, {"-f", "github.com/callreel/callreel/mark.*"}} {
		p := realtest.Start(t, program, strconv.Itoa(rounds))
		r := realtest.StartRecording(t, append([]string{"-p", strconv.Itoa(p.Pid()), "--lossless", "-f", "main.work", "-f", "main.busy"}, more...)...)
		p.Go()
		p.WaitLine("gopauses ")
		p.Wait()
		s := r.Summary()
		f, err := reel.Open(r.File)
		realtest.Must(t, err)
		calls := map[string]int{}
		for _, th := range f.Threads() {
			f.ReadThread(th.Key, func(events []reel.Event, _ bool) bool {
				for _, e := range events {
					if fn, ok := f.Function(e.ID()); ok && !e.IsExit() {
						calls[fn.Name]++
					}
				}
				return true
			})
		}
		pauses := f.Pauses()
		f.Close()
		kept := 0
		for _, word := range strings.Fields(strings.Join(p.Stdout(), " ")) {
			if n, is := strings.CutPrefix(word, "kept="); is {
				kept, _ = strconv.Atoi(n)
			}
		}
		if calls["main.work"] != kept || kept == 0 || s.Dropped != 0 {
			t.Errorf("%v: %v, it says %d; %d dropped", more, calls, kept, s.Dropped)
		}
		if len(pauses) != rounds || pauses[0].By != "program" {
			t.Errorf("%v: %d pauses", more, len(pauses))
		}
	}
}
