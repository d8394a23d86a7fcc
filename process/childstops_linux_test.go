package process

import (
	"context"
	"testing"
)

// toldOfStops says whether the kernel would send us SIGCHLD for a child's stop.
func toldOfStops(t *testing.T) bool {
	t.Helper()
	var now sigaction
	if err := changeSIGCHLD(nil, &now); err != nil {
		t.Fatal(err)
	}
	return now.flags&noChildStop == 0
}

func TestStopsSendNoSignalToTheTracer(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"))
	defer g.finish()
	p, err := Open(g.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before := toldOfStops(t)
	if _, err := p.Stop(context.Background(), StopOptions{}, func(*Stopped) error {
		if toldOfStops(t) {
			t.Error("SIGCHLD is sent while the process is stopped")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := p.EachThread(context.Background(), StopOptions{}, []int{g.pid()}, func(_ *Thread, err error) error {
		if toldOfStops(t) {
			t.Error("SIGCHLD is sent while a thread is stopped")
		}
		return err
	}, nil); err != nil {
		t.Fatal(err)
	}
	if toldOfStops(t) != before {
		t.Error("what is done about SIGCHLD was not put back")
	}
}
