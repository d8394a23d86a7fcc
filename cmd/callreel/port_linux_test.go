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

// On a processor to which nobody has ported what puts code into processes, verbs that need that say so, and verbs for files work. What looks
// at processes only is tested on the processor itself: an emulator of programs has no ptrace.
func TestAProcessorWithoutAPort(t *testing.T) {
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
	for _, args := range [][]string{
		{"record", "-p", self}, {"record", "--", "true"}, {"record", "-p", self, "--when", "call > 1ms"}, {"functions", "-p", self},
		{"top", "-p", self}, {"detach", "-p", self}, {"dump", "-p", self}, {"set", "-p", self, "--min", "1us"}, {"call", "-p", self, "f()"},
		{"cfi", "step", "--", "/bin/true"}, {"doctor"}, {"doctor", "-p", self},
	} {
		said, err := exec.Command(emulator, append([]string{program}, args...)...).CombinedOutput()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != 3 || !strings.Contains(string(said), "not supported on linux/arm64") {
			t.Errorf("%v: %v: %s", args, err, said)
		}
	}
	said, err := exec.Command(emulator, program, "functions", "--json", "/bin/true").Output()
	if err != nil || len(said) == 0 {
		t.Errorf("functions of a file: %v: %s", err, said)
	}
}
