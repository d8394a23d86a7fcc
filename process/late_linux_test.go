package process

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread that has run on before it was stopped may have written over the
// results: nothing is made of them.
func TestResultsOfAThreadThatHasRunOnAreNotBelieved(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "states.c", "gcc"), "read")
	p := openTarget(t, g)
	time.Sleep(20 * time.Millisecond)
	noSleep := sleepCall{number: unix.SYS_SCHED_YIELD, timeArg: -1}
	late := 0
	for start := time.Now(); late == 0 && time.Since(start) < time.Minute; {
		stop(t, p, func(s *Stopped) error {
			gadgets, err := p.findGadgets()
			if err != nil {
				return err
			}
			thread := s.Threads()[0]
			r, err := thread.prepare(gadgets, []Call{{Number: unix.SYS_GETTID}}, noSleep)
			if err != nil {
				return err
			}
			if _, err := p.ReadAt(r.below, r.chain.base); err != nil {
				return err
			}
			if _, err := p.WriteAt(r.chain.bytes, r.chain.base); err != nil {
				return err
			}
			results, err := r.do([]Call{{Number: unix.SYS_GETTID}})
			if errors.Is(err, ErrLate) {
				late++
				return r.clear()
			}
			if err == nil && results[0].Value != uint64(thread.TID) {
				t.Errorf("gettid: %+v", results[0])
			}
			return errors.Join(err, r.clear())
		})
	}
	if late == 0 {
		t.Error("it was always stopped in time")
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}
