package realtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// BuildGo builds a Go program of testdata/targets, without C code, by go build with flags, and returns its path.
func BuildGo(t testing.TB, target string, flags ...string) string {
	t.Helper()
	tool, program := Tool(t, GoTool), filepath.Join(t.TempDir(), target)
	cmd := exec.Command(tool, slices.Concat([]string{"build"}, flags, []string{"-o", program, "./testdata/targets/" + target})...)
	cmd.Dir, cmd.Env = Root(), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("realtest: go build: %v\n%s", err, said)
	}
	return program
}
