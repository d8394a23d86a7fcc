package recorder_test

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Rings of 64 chunks have room for 600 threads that stay, and 20 calls of each; and for as many threads that come and go as there may be.
func TestManyThreadsFitIntoSmallRings(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		mode        string
		threads     int
		calls, made string
		inAll       int64
		flags       []string
	}{
		{"stay", 600, "20", "600", 600 * 20, nil},
		{"late", 3000, "1", "3000", 3000, []string{"--lossless"}}, // the recorder may have to wait for a processor
	} {
		p := realtest.Start(t, realtest.Build(t, "crowd"), c.mode, c.made, c.calls)
		p.WaitLine("ready")
		r := realtest.StartRecording(t, slices.Concat(pidFlag(p), c.flags, []string{"--ring", "4M", "-f", "counted_call"})...)
		p.Say("")
		p.WaitLine("made")
		s := stop(t, r)
		if s.Dropped != 0 || s.Calls != c.inAll || s.Threads != c.threads {
			t.Errorf("%s: %d calls in %d threads, %d dropped; want %d in %d, none dropped", c.mode, s.Calls, s.Threads, s.Dropped, c.inAll, c.threads)
		}
	}
}

// What has no room is dropped, and the summary says how much room would have been enough.
func TestTheSummaryHintsAtTheRing(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "crowd"), "stay", "2000", "10")
	p.WaitLine("ready")
	r := realtest.StartRecording(t, append(pidFlag(p), "--ring", "512K", "-f", "counted_call")...)
	p.Say("")
	p.WaitLine("made")
	s := stop(t, r)
	if s.Dropped == 0 {
		t.Fatal("2000 threads fit into 512 KB")
	}
	if s.RingEnough != 16<<20 || s.Ring != 512<<10 {
		t.Errorf("%d dropped, a ring of %d would do instead of %d, want %d instead of %d", s.Dropped, s.RingEnough, s.Ring, 16<<20, 512<<10)
	}
}
