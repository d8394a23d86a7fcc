package realtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// BuildGoSource builds a Go program of one file, without C code, by go build with flags, and returns its path. env are settings such as
// GOARCH=arm64 besides.
func BuildGoSource(t testing.TB, source string, env []string, flags ...string) string {
	t.Helper()
	tool, dir := Tool(t, GoTool), t.TempDir()
	file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, slices.Concat([]string{"build"}, flags, []string{"-o", program, file})...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off"), env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("realtest: go build: %v\n%s", err, said)
	}
	return program
}
