//go:build amd64 || arm64

package step

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// build compiles a program from sources by their file names; "x.S" and "x.cc" are made by the languages that they tell.
func build(t *testing.T, sources map[string]string, flags ...string) string {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	dir := t.TempDir()
	out := filepath.Join(dir, "program")
	compiler, args := "gcc", append([]string{"-g0", "-o", out}, flags...)
	for name, text := range sources {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if args = append(args, path); strings.HasSuffix(name, ".cc") {
			realtest.Need(t, realtest.GXX)
			compiler = "g++"
		}
	}
	args = append(args, "-lm", "-ldl", "-pthread")
	if said, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, said)
	}
	return out
}

// follow runs a program and follows the functions of these names.
func follow(t *testing.T, opt Options, functions ...string) *Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if opt.Function == nil {
		opt.Function = func(name string) bool { return slices.Contains(functions, name) }
	}
	opt.Stderr = os.Stderr
	r, err := Run(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// expectNothing fails for findings, for a command that did not end well, and when fewer calls were followed.
func expectNothing(t *testing.T, r *Result, calls uint64) {
	t.Helper()
	for _, f := range r.Findings {
		t.Errorf("%s: %+v", f.Module, f.Finding)
	}
	if r.ExitStatus.Code != 0 || r.ExitStatus.Signal != 0 {
		t.Errorf("the command ended with %+v", r.ExitStatus)
	}
	if r.Calls < calls || r.Steps < r.Calls || !r.Complete {
		t.Errorf("%d calls and %d steps were followed, at least %d calls expected; complete: %v", r.Calls, r.Steps, calls, r.Complete)
	}
}
