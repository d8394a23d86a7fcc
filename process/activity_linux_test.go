package process

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// eventually gives a thread time to get somewhere.
func eventually(t *testing.T, what string, there func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !there(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func activityOf(t *testing.T, p *Process, tid int) Activity {
	t.Helper()
	a, err := p.Activity(tid)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestActivityOfAThreadThatWaitsSaysForWhat(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"), "1")
	p := openTarget(t, g)
	eventually(t, "it reads", func() bool {
		a := activityOf(t, p, g.pid())
		return a.State == 'S' && a.Waiting != nil && a.Waiting.Syscall() == "read" && a.Waiting.Args[0] == 0
	})
	a := activityOf(t, p, g.pid())
	if b := activityOf(t, p, g.pid()); b.Blocked != a.Blocked || b.CPU != a.CPU || b.StackStart != a.StackStart || *b.Waiting != *a.Waiting {
		t.Errorf("it waits, but first %+v and then %+v", a, b)
	}
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if m.Special == "[stack]" && (a.StackStart < m.Start || a.StackStart >= m.End) {
			t.Errorf("the stack starts at %#x, not in %+v", a.StackStart, m)
		}
	}
	if to, err := p.FileOf(0); err != nil || !strings.HasPrefix(to, "pipe:") {
		t.Errorf("stdin is %q, %v", to, err)
	}
	if to, err := p.FileOf(99); err == nil {
		t.Errorf("descriptor 99 is %q", to)
	}
	g.finish()
	if a, err := p.Activity(g.pid()); !errors.Is(err, ErrNoProcess) {
		t.Errorf("after its end: %+v, %v", a, err)
	}
	if cpu, err := p.CPU(); !errors.Is(err, ErrNoProcess) {
		t.Errorf("after its end: %v, %v", cpu, err)
	}
}

func TestActivityShowsThatAThreadRuns(t *testing.T) {
	g := startTarget(t, "/bin/sh", "-c", "echo ready; while :; do :; done")
	p := openTarget(t, g)
	before := activityOf(t, p, g.pid())
	cpu, err := p.CPU()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process has run", func() bool {
		now, err := p.CPU()
		return err == nil && now > cpu
	})
	eventually(t, "it has run", func() bool {
		after := activityOf(t, p, g.pid())
		return after.CPU > before.CPU || after.Blocked > before.Blocked
	})
}

func TestPassageIsSeenOnce(t *testing.T) {
	realtest.Need(t, realtest.Breakpoints)
	g := startTarget(t, build(t, "idle.c", "gcc"), "0")
	p := openTarget(t, g)
	eventually(t, "it reads", func() bool { a := activityOf(t, p, g.pid()); return a.Waiting != nil && a.Waiting.Syscall() == "read" })
	at := activityOf(t, p, g.pid()).Waiting
	back, sp := at.PC, at.SP
	w, err := p.Passage(g.pid(), back, 1)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if len(w.Seen()) > 0 {
		t.Error("it waits, but is said to have come back")
	}
	g.finish() // it is unharmed by the breakpoint, which it runs over
	if sps := w.Seen(); len(sps) != 1 || sps[0] != sp && sps[0] != 0 {
		t.Errorf("it has come back from its wait with its stack at %#x; seen: %#x", sp, sps)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if w, err := p.Passage(g.pid(), back, 1); !errors.Is(err, ErrReleased) {
		t.Errorf("of a thread that has ended: %v, %v", w, err)
	}
}
