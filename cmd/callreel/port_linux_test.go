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

// On a processor to which not all is ported, verbs and flags that aren't say so, and verbs for files work. What is ported is tested on the processor
// itself: an emulator of programs has no ptrace.
func TestWhatIsNotPortedSaysSo(t *testing.T) {
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
		{"record", "--", "true"}, {"record", "-p", self, "--when", "call > 1ms"}, {"record", "-p", self, "--args", "f"},
		{"record", "-p", self, "--ret", "f"}, {"record", "-p", self, "--if", "f: a > 1"}, {"record", "-p", self, "--markers", "m"},
		{"record", "-p", self, "--imports", "libc*:malloc"}, {"record", "-p", self, "--lazy"}, {"record", "-p", self, "--follow"},
		{"record", "-p", self, "--budget", "5%"}, {"call", "-p", self, "f()"}, {"cfi", "step", "--", "/bin/true"}, {"doctor"}, {"doctor", "-p", self},
		{"markers", "-p", self}, {"imports", "-p", self},
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
