package realtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/guest"
)

// Emulated says whether the processor is: clocks that the kernel reads one after the other differ by more there.
func Emulated() bool { return os.Getenv(guest.EmulatedVar) != "" }

// BuildGo builds a Go program of testdata/targets, without C code, by go build with flags, and returns its path. One that was built before is taken
// from the folder that guest.GoProgramsVar names.
func BuildGo(t testing.TB, target string, flags ...string) string {
	t.Helper()
	if folder := os.Getenv(guest.GoProgramsVar); folder != "" {
		program := guest.GoProgram(folder, target, flags)
		if _, err := os.Stat(program); err == nil {
			return program
		}
	}
	return buildGo(t, nil, target, flags)
}

// BuildGoFor is BuildGo for a processor, as GOARCH names it.
func BuildGoFor(t testing.TB, goarch, target string, flags ...string) string {
	t.Helper()
	return buildGo(t, []string{"GOOS=linux", "GOARCH=" + goarch}, target, flags)
}

func buildGo(t testing.TB, env []string, target string, flags []string) string {
	t.Helper()
	tool, program := Tool(t, GoTool), filepath.Join(t.TempDir(), target)
	cmd := exec.Command(tool, slices.Concat([]string{"build"}, flags, []string{"-o", program, "./testdata/targets/" + target})...)
	cmd.Dir, cmd.Env = Root(), slices.Concat(os.Environ(), []string{"CGO_ENABLED=0"}, env)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("realtest: go build: %v\n%s", err, said)
	}
	return program
}
