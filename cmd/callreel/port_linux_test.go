package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// A callreel of another processor says whose programs it can't do anything with, and its verbs for files work. What it does with its own is tested
// on that processor: an emulator of programs has no ptrace.
func TestProgramsOfAnotherProcessorAreRefused(t *testing.T) {
	realtest.Need(t, realtest.GoTool, realtest.QEMUARM64)
	emulator, err := realtest.QEMUARM64.Find()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "callreel")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	self := strconv.Itoa(os.Getpid())
	for _, args := range [][]string{{"record", "-p", self, "-o", filepath.Join(t.TempDir(), "a.reel")}, {"top", "-p", self}, {"call", "-p", self, "f()"}, {"stacks", "-p", self},
		{"functions", "-p", self}, {"markers", "-p", self}, {"detach", "-p", self}} {
		said, err := exec.Command(emulator, append([]string{program}, args...)...).CombinedOutput()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != 3 || !strings.Contains(string(said), "not a 64-bit arm64 program") {
			t.Errorf("%v: %v: %s", args, err, said)
		}
	}
	said, err := exec.Command(emulator, program, "functions", "--json", "/bin/true").Output()
	if err != nil || len(said) == 0 {
		t.Errorf("functions of a file: %v: %s", err, said)
	}
}
