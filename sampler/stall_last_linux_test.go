package sampler

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
)

// On a busy machine a detector may end before it had a processor to look.
func TestStallThatWasNotLookedAtYetIsSeenAtTheEnd(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	// os/exec would take the stops of a child of ours for its end.
	const shell = `sh -c 'echo $$ ready; while :; do :; done' & trap "kill $!" EXIT; read end`
	target := realtest.StartCommand(t, exec.Command("/bin/sh", "-c", shell))
	var pid int
	if _, err := fmt.Sscan(target.WaitLine(""), &pid); err != nil {
		t.Fatal(err)
	}
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	stacks := &stallStacks{live: live{p: p, buf: make([]byte, unknownStack)}}
	if err := stacks.refresh(); err != nil {
		t.Fatal(err)
	}
	var got []*Stall
	w := newStallDetector(p, StallOptions{TID: pid, Over: time.Second}, stacks, func(s *Stall) error {
		got = append(got, s)
		return nil
	})
	ended, end := context.WithCancel(context.Background())
	end()
	if err := w.run(ended); err != nil || len(got) > 0 {
		t.Errorf("a detector that has just begun: %v, %+v", err, got)
	}
	for try := 0; len(got) == 0 && try < 10; try++ { // once more if it waited for a page between
		if err := w.step(context.Background()); err != nil {
			t.Fatal(err)
		}
		w.progress = time.Now().Add(-time.Minute)
		if err := w.run(ended); err != nil {
			t.Error(err)
		}
	}
	if len(got) != 1 || !got[0].Ongoing || got[0].Samples != 1 || got[0].Duration < time.Minute {
		t.Errorf("%+v", got)
	}
	if err := w.disarm(); err != nil {
		t.Error(err)
	}
	if err := stacks.space.close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	target.Wait()
}
