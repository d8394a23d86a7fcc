package process

import (
	"errors"
	"strings"
	"testing"
	"time"
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
}

func TestActivityShowsThatAThreadRuns(t *testing.T) {
	g := startTarget(t, "/bin/sh", "-c", "echo ready; while :; do :; done")
	p := openTarget(t, g)
	before := activityOf(t, p, g.pid())
	eventually(t, "it has run", func() bool {
		after := activityOf(t, p, g.pid())
		return after.CPU > before.CPU || after.Blocked > before.Blocked
	})
}

func TestPassageIsSeenOnce(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"), "0")
	p := openTarget(t, g)
	eventually(t, "it reads", func() bool { a := activityOf(t, p, g.pid()); return a.Waiting != nil && a.Waiting.Syscall() == "read" })
	back := activityOf(t, p, g.pid()).Waiting.PC
	w, err := p.Passage(g.pid(), back)
	if errors.Is(err, ErrNotPermitted) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if w.Seen() {
		t.Error("it waits, but is said to have come back")
	}
	g.finish() // it is unharmed by the breakpoint, which it runs over
	if !w.Seen() {
		t.Error("it has come back from its wait unseen")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if w, err := p.Passage(g.pid(), back); !errors.Is(err, ErrReleased) {
		t.Errorf("of a thread that has ended: %v, %v", w, err)
	}
}
