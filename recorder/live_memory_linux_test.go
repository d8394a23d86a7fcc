package recorder_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// sharedMemory is how much memory of shared files a process has, in bytes: the rings and the arenas.
func sharedMemory(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssShmem:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Skip("the kernel doesn't say")
	return 0
}

// A program that calls little has little of the rings, however large they are, and however many functions are chosen.
func TestAProgramHasNoMoreOfTheRingsThanItUses(t *testing.T) {
	needLive(t)
	const most = 24 << 20
	p := loading(t, "late")
	r := realtest.StartRecording(t, append(pidFlag(p), "--ring", "64M")...)
	time.Sleep(100 * time.Millisecond)
	took := sharedMemory(t, p.Pid())
	stop(t, r)
	p.Finish()
	if took > most {
		t.Errorf("%d MB of shared memory, want at most %d", took>>20, most>>20)
	}
	t.Logf("%d MB of shared memory", took>>20)
}
