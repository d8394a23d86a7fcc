package recorder_test

import (
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// The gates of several images are closed one after another. A call that returned behind a closed one isn't ended by calls behind an open
// one: it was open when recording ended.
func TestCallsThatWereOpenAtTheEndAreUnfinished(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "between"))
	for round := range realtest.Repeats(t, 5) {
		r := realtest.StartRecording(t, append(pidFlag(p), "-f", "near", "-f", "nearer", "-f", "*strtoull*")...)
		time.Sleep(100 * time.Millisecond)
		s := stop(t, r)
		if s.Calls == 0 || s.Dropped != 0 {
			t.Fatalf("%+v", s)
		}
		rep := reportOf(t, r.File).ends
		libraries := false
		for _, f := range rep.Functions {
			libraries = libraries || f.Name != "near" && f.Name != "nearer" // it has several names
			if f.Implicit > 0 {
				t.Errorf("round %d: %d calls of %s were left without an exit", round, f.Implicit, f.Name)
			}
		}
		if !libraries {
			t.Fatal("no call in the C library was recorded")
		}
	}
	p.Finish()
}
