package recorder_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// A tracer is a way to have a program's calls recorded.
type tracer struct {
	name   string
	work   string // what it does at an entry and at an exit, in words
	build  []string
	by     realtest.Capability // "" for callreel
	record []string            // what comes before the program, in a folder of its own
}

// tracers are callreel in its forms, and its peers.
func tracers() []tracer {
	uftrace := []string{"record", "--no-libcall", "--no-event"}
	return []tracer{
		{name: "callreel, inline", work: "CNTVCT_EL0, 16 bytes each", record: []string{"-f", "counted_*"}},
		{name: "callreel, by a shared routine", work: "the same", record: []string{"-m", "instructions*"}},
		{name: "callreel --clock exit, inline", work: "CNTVCT_EL0 at exits", record: []string{"-f", "counted_*", "--clock", "exit"}},
		{name: "callreel --clock none, inline", work: "no clock", record: []string{"-f", "counted_*", "--clock", "none"}},
		{name: "uftrace -P", work: "clock_gettime, return address replaced", by: realtest.Uftrace, record: append(uftrace, "-P", "^counted_work$")},
		{name: "uftrace, compiled with -pg", work: "the same", build: []string{"-pg"}, by: realtest.Uftrace, record: uftrace},
		{name: "uftrace, compiled with -finstrument-functions", work: "clock_gettime", build: []string{"-finstrument-functions"}, by: realtest.Uftrace,
			record: uftrace},
	}
}

// command is how the tracer is started with a program.
func (k *tracer) command(t *testing.T, program ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	if k.by == "" {
		args := slices.Concat([]string{"record", "-o", filepath.Join(dir, "reel")}, k.record, []string{"--"}, program)
		return exec.Command(realtest.CallreelPath(t), args...)
	}
	return exec.Command(realtest.Tool(t, k.by), slices.Concat(k.record, []string{"-d", filepath.Join(dir, "data")}, program)...)
}

// instructionsOf runs what runs testdata/targets/instructions, and returns how many instructions that took.
func instructionsOf(t *testing.T, cmd *exec.Cmd) float64 {
	t.Helper()
	p := realtest.StartCommand(t, cmd)
	if code := p.Wait(); code != 0 {
		t.Fatalf("%v: exit code %d\n%s", cmd, code, p.Stderr())
	}
	for _, line := range p.Stdout() {
		if text, ok := strings.CutPrefix(line, "instructions "); ok {
			n, err := strconv.ParseFloat(text, 64)
			realtest.Must(t, err)
			return n
		}
	}
	t.Fatalf("%v: %q\n%s", cmd, p.Stdout(), p.Stderr())
	return 0
}

// What a call takes in instructions of user space, besides its own, entry and exit together, with all that comes once in some thousand calls:
// callreel's and its peers', counted by the processor's counter in one run. It prints the table of docs/costs.md. A program that is compiled
// otherwise has more of its own; that is what it takes to be traced so, and counts.
func TestInstructionsOfACall(t *testing.T) {
	needLive(t, realtest.InstructionCounter)
	const calls = 200_000
	plain := instructionsOf(t, exec.Command(realtest.Build(t, "instructions"), strconv.Itoa(calls)))
	again := instructionsOf(t, exec.Command(realtest.Build(t, "instructions"), strconv.Itoa(calls)))
	if d := again - plain; d > calls/10 || d < -calls/10 {
		t.Fatalf("%.0f and %.0f instructions of the same: the counter counts something else", plain, again)
	}
	var table strings.Builder
	took := map[string]float64{}
	for _, k := range tracers() {
		if k.by != "" {
			if _, err := k.by.Find(); err != nil {
				t.Logf("%s isn't there", k.name)
				continue
			}
		}
		n := instructionsOf(t, k.command(t, realtest.Build(t, "instructions", k.build...), strconv.Itoa(calls)))
		took[k.name] = (n - plain) / calls
		fmt.Fprintf(&table, "| %s | %.1f | %s |\n", k.name, took[k.name], k.work)
	}
	t.Logf("a call takes %.1f instructions untraced; besides:\n%s", plain/calls, table.String())
	ours := took["callreel, inline"]
	if ours < 35 || ours > 40 {
		t.Errorf("%.1f instructions", ours)
	}
	for name, n := range took {
		if !strings.HasPrefix(name, "callreel") && n < ours {
			t.Errorf("%s takes %.1f instructions, callreel %.1f", name, n, ours)
		}
	}
}
