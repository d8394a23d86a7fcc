package mark_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// groups is what report --by prints.
type groups struct {
	Groups []struct {
		Value string `json:"value"`
		Calls int    `json:"calls"`
	} `json:"groups"`
}

// What a program says by this package is recorded, with the names it was said of, as often as the program's own log has it.
func TestWhatGoProgramsSayIsRecorded(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	tool, dir := realtest.Tool(t, realtest.GoTool), t.TempDir()
	program := filepath.Join(dir, "gomarks")
	cmd := exec.Command(tool, "build", "-o", program, "./testdata/targets/gomarks")
	cmd.Dir = realtest.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	const functions = "github.com/callreel/callreel/mark.*"
	p := realtest.Start(t, program)
	p.WaitLine("ready")
	r := realtest.StartRecording(t, "-p", strconv.Itoa(p.Pid()), "-f", functions, "--args", functions)
	p.Say("go")
	p.WaitLine("done")
	s := r.Stop()
	said := map[string]map[string]int{} // by function and name
	for _, line := range p.Stdout() {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "said" {
			continue
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		if said[f[2]] == nil {
			said[f[2]] = map[string]int{}
		}
		said[f[2]][strings.Join(f[3:], " ")] = n
	}
	p.Say("end")
	if code := p.Wait(); code != 0 {
		t.Errorf("the program ended with %d", code)
	}
	if len(said) != 11 || s.Dropped != 0 {
		t.Fatalf("%d functions, %d dropped", len(said), s.Dropped)
	}
	rep := realtest.Decode[realtest.Report](t, realtest.MustCallreel(t, "report", r.File, "--json").Stdout)
	for function, names := range said {
		full := "github.com/callreel/callreel/mark." + function
		for name, n := range names {
			if name == "" {
				if got := rep.Calls(full); got != int64(n) {
					t.Errorf("%s: %d calls, the program made %d", function, got, n)
				}
				continue
			}
			found := 0
			for _, g := range realtest.Decode[groups](t, realtest.MustCallreel(t, "report", r.File, "-f", full, "--by", "name", "--json").Stdout).Groups {
				if g.Value == name {
					found += g.Calls
				}
			}
			if found != n {
				t.Errorf("%s(%q): %d calls, the program made %d", function, name, found, n)
			}
		}
	}
}

// A Go program that pauses its own recording is obeyed to the call, whether functions of this package are recorded or not.
func TestGoProgramsPauseTheirRecording(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	tool, dir := realtest.Tool(t, realtest.GoTool), t.TempDir()
	program := filepath.Join(dir, "gopauses")
	cmd := exec.Command(tool, "build", "-o", program, "./testdata/targets/gopauses")
	cmd.Dir = realtest.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
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
