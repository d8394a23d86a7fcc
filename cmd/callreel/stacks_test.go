package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

// promisedStacks has exactly the keys of stacks --json.
type promisedStacks struct {
	PID     int           `json:"pid"`
	Name    string        `json:"name"`
	Arch    string        `json:"arch"`
	Images  []stackImage  `json:"images"`
	Threads []stackThread `json:"threads"`
}

// someStacks is a capture with a whole stack and one that is not, and names from outside.
func someStacks(name string) *sampler.Capture {
	return &sampler.Capture{
		PID: 7, Name: name, Arch: "amd64",
		Threads: []sampler.Thread{
			{TID: 7, Name: name, State: "sleeping", Stopped: 12 * time.Microsecond, Frames: []sampler.Frame{
				{Address: 0x401000, Function: name, File: name, Line: 3, Inlined: true},
				{Address: 0x401000, Function: name, Flags: unwind.SignalFrame},
				{Address: 0x402000, Flags: unwind.Exact | unwind.Late, By: unwind.BySignalFrame},
			}},
			{TID: 8, Name: name, State: "running", End: unwind.End{Reason: unwind.Unreadable, Addr: 0x7000, Err: errors.New(name)}},
		},
	}
}

func TestStacksJSONHasThePromisedKeys(t *testing.T) {
	var b bytes.Buffer
	realtest.Must(t, stacksJSON(&b, someStacks("prog")))
	got := realtest.DecodeExactly[promisedStacks](t, b.String())
	if got.PID != 7 || got.Name != "prog" || got.Images == nil || len(got.Threads) != 2 {
		t.Fatalf("%+v", got)
	}
	whole, cut := got.Threads[0], got.Threads[1]
	if whole.TID != 7 || whole.State != "sleeping" || whole.End != "complete" || whole.StoodNS != 12000 || whole.EndSays != "" {
		t.Errorf("%+v", whole)
	}
	if cut.End != "unreadable-memory" || !strings.Contains(cut.EndSays, "0x7000") || cut.Frames == nil {
		t.Errorf("%+v", cut)
	}
	f := whole.Frames
	if len(f) != 3 || f[0].Address != "0x401000" || !f[0].Inlined || f[0].Line != 3 || f[1].Kind != "signal" || !f[2].Exact || !f[2].Late {
		t.Errorf("%+v", f)
	}
	for _, key := range []string{`"address":"0x`, `"function":`, `"image":`, `"file":`, `"line":`, `"inlined":`} {
		if n := strings.Count(b.String(), key); n != len(f) {
			t.Errorf("%s stands %d times in %s", key, n, b.String())
		}
	}
}

func TestStacksAreSafeForATerminalAndSayWhatIsMissing(t *testing.T) {
	for _, name := range hostileNames {
		var text, json bytes.Buffer
		c := someStacks(name)
		realtest.Must(t, stacksText(&text, c))
		checkTerminalSafe(t, text.String())
		if n := strings.Count(text.String(), "the stack is not whole (unreadable-memory)"); n != 1 {
			t.Errorf("%d stacks are said not to be whole in\n%s", n, text.String())
		}
		realtest.Must(t, stacksJSON(&json, c))
		realtest.DecodeExactly[promisedStacks](t, json.String())
	}
}

func TestStacksRefusesWhatItCannotDo(t *testing.T) {
	dir := t.TempDir()
	text := write(t, dir, "text", []byte("no core\n"))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "-p PID or --core FILE"},
		{[]string{"-p", "1", "--core", text}, exitUsage, "-p PID or --core FILE"},
		{[]string{"-p", "0"}, exitUsage, "not a process ID"},
		{[]string{"-p", "1", "extra"}, exitUsage, "no argument is expected"},
		{[]string{"--core", text}, exitFailed, "not a core file"},
		{[]string{"--core", filepath.Join(dir, "none")}, exitFailed, "none"},
		{[]string{"--core", dir}, exitFailed, dir},
	} {
		a := callreel("", append([]string{"stacks"}, c.args...)...)
		if a.code != c.code || !strings.Contains(a.stderr, c.want) || a.stdout != "" {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want code %d and %q", c.args, a.code, a.stdout, a.stderr, c.code, c.want)
		}
	}
	if self := callreel("", "stacks", "-p", pidText(os.Getpid())); self.code != exitNotPermitted || self.stdout != "" {
		t.Errorf("itself: code %d, stderr %q", self.code, self.stderr)
	}
}

func pidText(pid int) string {
	p := processID(pid)
	return p.String()
}
