package recorder_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// textAsFile and remainsIn say what a recorder has left in a process.
func textAsFile(pid int) error                     { return realtest.TextAsFile(pid) }
func remainsIn(pid int) ([]realtest.Region, error) { return realtest.RemainsIn(pid) }

// wantUntouched fails the test unless the process's text is its files', byte for
// byte, and nothing of a recorder is mapped in it.
func wantUntouched(t testing.TB, pid int) {
	t.Helper()
	if err := textAsFile(pid); err != nil {
		t.Fatalf("after detaching: %v", err)
	}
	remains, err := remainsIn(pid)
	if err != nil {
		t.Fatal(err)
	}
	if len(remains) > 0 {
		t.Fatalf("after detaching there is still %+v", remains)
	}
}

// wantProbed fails the test unless the process is being recorded as it should
// be: text changed, no tracer attached, no page writable and executable.
func wantProbed(t testing.TB, pid int) {
	t.Helper()
	if err := textAsFile(pid); err == nil {
		t.Errorf("process %d is being recorded, but its text is unchanged", pid)
	}
	regions, err := realtest.RegionsOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		if r.Perm[1] == 'w' && r.Perm[2] == 'x' {
			t.Errorf("writable and executable at once: %+v", r)
		}
	}
	if tracer := statusField(t, pid, "TracerPid"); tracer != "0" {
		t.Errorf("while recording, process %s traces it", tracer)
	}
}

// statusField returns the first word of a field of /proc/PID/status.
func statusField(t testing.TB, pid int, key string) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Fields(rest)[0]
		}
	}
	t.Fatalf("/proc/%d/status has no %s", pid, key)
	return ""
}

// needLive ends the test on machines where nothing can be recorded.
func needLive(t testing.TB, caps ...realtest.Capability) {
	t.Helper()
	realtest.Need(t, append(caps, realtest.LivePtrace, realtest.GCC)...)
}
