package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// startDeep starts the target, and gives callreel a store of its own once all is built.
func startDeep(t *testing.T) *realtest.Proc {
	t.Helper()
	realtest.CallreelPath(t)
	p := realtest.Start(t, realtest.Build(t, "deep"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return p
}

func TestStacksOfARunningProcessReachTheOutermostCall(t *testing.T) {
	realtest.Need(t, realtest.GXX, realtest.LivePtrace)
	p := startDeep(t)
	a := realtest.MustCallreel(t, "stacks", "-p", pidText(p.Pid()), "--json")
	got := realtest.DecodeExactly[promisedStacks](t, a.Stdout)
	if len(got.Threads) != 1 || got.Threads[0].End != "complete" || got.PID != p.Pid() {
		t.Fatalf("%+v", got)
	}
	levels, inlined := 0, 0
	for _, f := range got.Threads[0].Frames {
		if strings.HasPrefix(f.Function, "deep::level<") && strings.HasSuffix(f.File, "deep.cc") && f.Line > 0 {
			levels++
		}
		if f.Inlined {
			inlined++
		}
	}
	if levels != 60 || inlined == 0 {
		t.Errorf("%d levels, want 60; %d inlined calls\n%s", levels, inlined, a.Stdout)
	}
	for _, im := range got.Images {
		if im.ID == "" || im.Size == 0 {
			t.Errorf("image %+v", im)
		}
	}
	text := realtest.MustCallreel(t, "stacks", "-p", pidText(p.Pid()))
	checkTerminalSafe(t, text.Stdout)
	if n := strings.Count(text.Stdout, "deep::level<"); n != 60 {
		t.Errorf("%d levels in\n%s", n, text.Stdout)
	}
	p.Finish() // it has come to no harm
}

func TestRawStacksAreFinishedBySymbolize(t *testing.T) {
	realtest.Need(t, realtest.GXX, realtest.LivePtrace)
	p := startDeep(t)
	raw := realtest.MustCallreel(t, "stacks", "-p", pidText(p.Pid()), "--json", "--raw").Stdout
	if strings.Contains(raw, "deep::") {
		t.Errorf("raw stacks have names:\n%s", raw)
	}
	cmd := exec.Command(realtest.CallreelPath(t), "symbolize", "--json")
	cmd.Stdin = strings.NewReader(raw)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("symbolize: %v", err)
	}
	if n := strings.Count(string(out), `"function":"deep::level<`); n != 60 {
		t.Errorf("%d levels, want 60, in\n%s", n, out)
	}
	p.Finish()
}

func TestProcessUnderAnotherTracerIsRefusedByStacks(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.GDB, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "deep"))
	gdb := realtest.StartCommand(t, exec.Command("gdb", "-nx", "-q", "-p", pidText(p.Pid()), "-ex", "echo attached\\n", "-ex", "shell cat"))
	gdb.WaitLine("attached")
	a := realtest.Callreel(t, "stacks", "-p", pidText(p.Pid()))
	if a.Code != exitNotPermitted || !strings.Contains(a.Stderr, "gdb") || a.Stdout != "" {
		t.Errorf("code %d, stderr %q", a.Code, a.Stderr)
	}
}
