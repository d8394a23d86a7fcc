package arm64

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// instructions returns how many instructions of the code run in a call of each of two functions, without the return.
func instructions(t *testing.T, s stubSetup) (entry, exit int) {
	t.Helper()
	s.log = filepath.Join(t.TempDir(), "log")
	s.ids = 1
	d := startDriver(t, s)
	d.do("once 0") // the slow path
	d.do("once 0")
	d.do("once 1")
	d.in.Close()
	if _, err := d.out.ReadString('\n'); err == nil {
		t.Fatal("the driver says more")
	}
	f, err := os.Open(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Of each instruction there is a line: Trace 0: host [flags/PC/flags/flags] name
	var runs []int
	in := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "/")
		if !strings.HasPrefix(parts[0], "Trace ") || len(parts) < 2 {
			continue
		}
		pc, err := strconv.ParseUint(parts[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		inside := pc >= testArena && pc < testArena+uint64(len(d.code))
		if inside && !in {
			runs = append(runs, 0)
		}
		if inside {
			runs[len(runs)-1]++
		}
		in = inside
	}
	if len(runs) != 3 {
		t.Fatalf("%d runs", len(runs))
	}
	return runs[1] - 1, runs[2] - 1
}

// The instructions that an event takes, counted by an emulator that logs each. What a stub runs besides is the program's own instruction, and
// branches: to the stub and, at an entry, back.
func TestEventsTakeFewInstructions(t *testing.T) {
	for name, k := range map[string]struct {
		setup       stubSetup
		entry, exit int
	}{
		"inline":               {stubSetup{}, 18, 18},
		"thread ID near":       {stubSetup{tid: -160}, 17, 17},
		"no clock":             {stubSetup{clock: stub.ClockNone}, 17, 17},
		"x16 and x17 alive":    {stubSetup{alive: true}, 20, 20},
		"old processor":        {stubSetup{machine: oldMachine}, 24, 24},
		"shared":               {stubSetup{shared: true}, 25, 25},
		"switched off":         {stubSetup{off: true}, 2, 2},
		"shared, switched off": {stubSetup{shared: true, off: true}, 5, 5},
	} {
		entry, exit := instructions(t, k.setup)
		t.Logf("%s: %d at an entry, %d at an exit", name, entry, exit)
		if entry > k.entry || exit > k.exit {
			t.Errorf("%s: %d at an entry, %d at an exit, want %d and %d", name, entry, exit, k.entry, k.exit)
		}
	}
}
