package amd64

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// program is a target that checks its own results, linked with selfpatch.c.
type program struct {
	sources []string // of testdata/targets
	args    []string
	storm   bool          // signals all the while
	stdin   string        // what it waits for
	runs    time.Duration // until its stdin is closed
}

// Each program runs with all its functions patched: every kind of moved instruction, of site and of exit must do what
// it did before. What they check is said in their sources.
func TestProgramsRunAsBeforeWithAllSitesPatched(t *testing.T) {
	for name, p := range map[string]program{
		"state":          {sources: []string{"state.c", "state.S", "shapes.S"}, args: []string{"2", "100"}, stdin: "\n\n"},
		"state in storm": {sources: []string{"state.c", "state.S", "shapes.S"}, args: []string{"2", "100"}, stdin: "\n\n", storm: true},
		"abi":            {sources: []string{"abi.c", "abi_control.c", "abi_signal.c"}, args: []string{"30"}, stdin: "\n\n"},
		"abi in storm":   {sources: []string{"abi.c", "abi_control.c", "abi_signal.c"}, args: []string{"30"}, stdin: "\n\n", storm: true},
		"threads":        {sources: []string{"threads.c"}, args: []string{"fixed", "8", "3000"}, stdin: "\n\n"},
		"churn":          {sources: []string{"threads.c"}, args: []string{"churn", "4"}, runs: 500 * time.Millisecond},
		"fork":           {sources: []string{"fork.c"}, runs: 500 * time.Millisecond},
		"cxx":            {sources: []string{"cxx.cc"}, args: []string{"2"}, runs: 500 * time.Millisecond},
	} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shared %v", name, shared), func(t *testing.T) {
				r := runPatched(t, p, shared)
				if r.drainer.Totals().Torn != 0 {
					t.Errorf("%d events torn", r.drainer.Totals().Torn)
				}
				for id, n := range r.calls {
					if n[0] == n[1] || uneven[r.names[id]] {
						continue
					}
					if strings.HasPrefix(name, "state") || name == "threads" {
						t.Errorf("%s: %d entries and %d exits", r.names[id], n[0], n[1])
					}
				}
				t.Logf("%d functions, %d of them refused, %d events; %d calls", len(r.names), r.refused, r.drainer.Totals().Events, r.drainer.Totals().Entries)
				r.compareCounts(t)
			})
		}
	}
}

// uneven are functions whose exits are not as many as their entries, by their nature.
var uneven = map[string]bool{
	"shape_padded": true, // another function jumps into its middle
	"main":         true, "exit": true, "_start": true, "storm": true,
}

// patchedRun is what a program wrote while it ran.
type patchedRun struct {
	drainer *ring.Drainer
	names   map[uint32]string
	calls   map[uint32][2]uint64 // entries and exits
	refused int
	output  string
}

// countSink counts entries and exits of all threads by function.
type countSink struct{ calls map[uint32][2]uint64 }

func (s countSink) Append(events []reel.Event) error {
	for _, e := range events {
		n := s.calls[e.ID()]
		n[e.Word&1]++
		s.calls[e.ID()] = n
	}
	return nil
}

func (s countSink) Dropped(entries, exits, tick uint64) error { return nil }

// buildPatched links a program with selfpatch.c and, so that event code is shared, many functions more.
func buildPatched(t *testing.T, p program, shared bool) string {
	t.Helper()
	dir := t.TempDir()
	compiler := "gcc"
	if strings.HasSuffix(p.sources[0], ".cc") {
		compiler = "g++"
	}
	realtest.Need(t, realtest.Capability(compiler))
	run := func(name string, args ...string) {
		if msg, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, msg)
		}
	}
	object := filepath.Join(dir, "selfpatch.o")
	run("gcc", "-O2", "-c", "-o", object, "testdata/selfpatch.c")
	out := filepath.Join(dir, "program")
	args := []string{"-O2", "-no-pie", "-pthread", "-o", out, object}
	for _, s := range p.sources {
		args = append(args, targetsDir+s)
	}
	if shared {
		var code bytes.Buffer
		for i := range InlineLimit + 10 {
			fmt.Fprintf(&code, "int more_%d(int x) { return x * %d; }\n", i, i+3)
		}
		more := filepath.Join(dir, "more.c")
		if err := os.WriteFile(more, code.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		run("gcc", "-O2", "-c", "-o", more+".o", more)
		args = append(args, more+".o")
	}
	run(compiler, append(args, "-lm")...)
	return out
}

// ownCode are functions of selfpatch.c that run while the text changes.
var ownCode = []string{"selfpatch", "print_offset", "apply", "map", "must"}

func runPatched(t *testing.T, p program, shared bool) *patchedRun {
	t.Helper()
	path := buildPatched(t, p, shared)
	im := openTestImage(t, path)
	r := &patchedRun{names: map[uint32]string{}, calls: map[uint32][2]uint64{}}
	var fns []stub.Probe
	planned := planImage(t, im)
	for i := range planned {
		f := &planned[i]
		if f.Tier == plan.TierNone {
			r.refused++
			continue
		}
		if slices.Contains(ownCode, f.Name) {
			continue
		}
		id := uint32(len(fns) + 1)
		fns = append(fns, stub.Probe{Function: f, Image: im, ID: id})
		r.names[id] = f.Name
	}
	cfg := stub.Config{TIDOffset: tidOffsetOf(t, path), Gate: testArena + 1<<24, Ring: testRing, Lossless: true}
	first, err := compile(testArena, cfg, fns, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Gate = gateFor(first.Bytes)
	code, err := compile(testArena, cfg, fns, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(code.Bytes) != len(first.Bytes) {
		t.Fatalf("%d bytes of code for one place of the gate, %d for another", len(first.Bytes), len(code.Bytes))
	}
	mem := newTestMemory(t, 256, 0, false, false)
	r.drainer = ring.NewDrainer(mem.Memory, func(tid, _ int, name string) (ring.Sink, error) { return countSink{r.calls}, nil })

	cmd := exec.Command(path, p.args...)
	cmd.Env = []string{"SELFPATCH=" + selfPatchFile(t, code.Bytes, code.Patches, mem)}
	if p.storm {
		cmd.Env = append(cmd.Env, "SELFPATCH_STORM=100")
	}
	cmd.ExtraFiles = []*os.File{mem.file}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		io.WriteString(in, p.stdin)
		time.Sleep(p.runs)
		in.Close()
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer kill.Stop()
	for done := false; !done; {
		select {
		case err = <-ended:
			done = true
		default:
			time.Sleep(time.Millisecond)
		}
		if _, err := r.drainer.Round(); err != nil {
			t.Fatal(err)
		}
		r.endThreads(t, cmd.Process.Pid)
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if err := r.drainer.Finish(); err != nil {
		t.Fatal(err)
	}
	r.output = stdout.String()
	return r
}

// endThreads gives back the rings of threads that have ended.
func (r *patchedRun) endThreads(t *testing.T, pid int) {
	t.Helper()
	for _, tid := range slices.Collect(r.drainer.Threads) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid)); err == nil {
			continue
		}
		if err := r.drainer.End(tid); err != nil {
			t.Fatal(err)
		}
	}
}

// counted is what threads.c prints of the calls that it made.
var counted = regexp.MustCompile(`\b(a|b|c|d)=(\d+)`)

// compareCounts holds the calls of counted_a to counted_d against what the program counted itself.
func (r *patchedRun) compareCounts(t *testing.T) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.output), "\n")
	for id, name := range r.names {
		which, ok := strings.CutPrefix(name, "counted_")
		if !ok {
			continue
		}
		for _, m := range counted.FindAllStringSubmatch(lines[len(lines)-1], -1) {
			want, err := strconv.ParseUint(m[2], 10, 64)
			if m[1] != which || err != nil {
				continue
			}
			if n := r.calls[id]; n[0] != want {
				t.Errorf("%s: %d calls recorded, %d made", name, n[0], want)
			}
		}
	}
}
