package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
)

// someStall is a stall with names from outside.
func someStall(name string) *sampler.Stall {
	return &sampler.Stall{
		TID: 7, Name: name, Start: time.Unix(0, 12345), Duration: 300 * time.Millisecond, State: sampler.StallLock, Samples: 4, Partial: 1, Ongoing: true,
		Stack: []sampler.StallFrame{
			{Function: name, Image: name, Address: 0x401000, Offset: 0x1000, File: name, Line: 3, Inlined: true, Samples: 1},
			{Image: name, Address: 0x402000, Offset: 0x2000, Samples: 2},
			{Address: 0x403000, Samples: 3},
		},
	}
}

func TestStallJSONHasThePromisedKeysOnOneLine(t *testing.T) {
	for _, name := range append(hostileNames, "plain") {
		var b bytes.Buffer
		realtest.Must(t, stallJSON(&b, someStall(name), name, name))
		if strings.Count(b.String(), "\n") != 1 {
			t.Errorf("more than a line: %q", b.String())
		}
		got := realtest.DecodeExactly[stallObject](t, b.String())
		if got.TID != 7 || got.StartNS != 12345 || got.DurationNS != 3e8 || got.State != "lock" || got.Samples != 4 || got.Partial != 1 || !got.Ongoing || len(got.Stack) != 3 {
			t.Errorf("%+v", got)
		}
		if name == "plain" && (got.Reel != name || got.NoReel != name) {
			t.Errorf("%+v", got)
		}
		for _, key := range []string{`"function":`, `"image":`, `"address":"0x`, `"file":`, `"line":`, `"samples":`} {
			if n := strings.Count(b.String(), key); n < 3 {
				t.Errorf("%s stands %d times in %s", key, n, b.String())
			}
		}
	}
}

func TestStallTextIsSafeForATerminal(t *testing.T) {
	for _, name := range hostileNames {
		var b bytes.Buffer
		realtest.Must(t, stallText(&b, someStall(name), name, name))
		checkTerminalSafe(t, b.String())
		for _, want := range []string{"300.00 ms: lock, and is still stalled (4 samples, 1 not whole)", "1   25%", "?? 0x403000"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
	}
}

func TestStallRefusesWhatItCannotDo(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "give -p PID"},
		{[]string{"-p", "x"}, "not a process ID"},
		{[]string{"-p", "1", "--over", "1ms"}, "10ms"},
		{[]string{"-p", "1", "--over", "-1s"}, "10ms"},
		{[]string{"-p", "1", "-d", "-1s"}, "give a duration of 0 or more"},
		{[]string{"-p", "1", "--thread", "0"}, "neither main nor a thread ID"},
		{[]string{"-p", "1", "extra"}, "no argument is expected"},
	} {
		a := callreel("", append([]string{"stall"}, c.args...)...)
		if a.code != exitUsage || !strings.Contains(a.stderr, c.want) || a.stdout != "" {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want %q", c.args, a.code, a.stdout, a.stderr, c.want)
		}
	}
}
