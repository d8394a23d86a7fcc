package recorder_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// loading starts the target that loads libraries of the same shape.
func loading(t *testing.T, mode string) *realtest.Proc {
	t.Helper()
	args := []string{mode}
	for _, which := range []string{"1", "2"} {
		args = append(args, realtest.Build(t, "library", "-fPIC", "-shared", "-DWHICH="+which))
	}
	p := realtest.Start(t, realtest.Build(t, "loading"), args...)
	realtest.GiveWay(t, p.Pid())
	return p
}

// Libraries may come and go at any moment, and take one another's places, also
// while they are looked at, attached to and detached from.
func TestLibrariesMayComeAndGoWhileAttaching(t *testing.T) {
	needLive(t)
	p := loading(t, "swap")
	for i := range realtest.Repeats(t, 6) {
		// On a busy machine the target, which gives way, may have no time at all for a while.
		for ms := 100; !swapsAreRecorded(t, p, i, ms); ms *= 2 {
			if ms > 20_000 {
				t.Fatalf("round %d: no call in %d ms", i, ms)
			}
		}
	}
	p.Finish()
}

// swapsAreRecorded records a target of loading for ms milliseconds, and says whether there was a call.
func swapsAreRecorded(t *testing.T, p *realtest.Proc, round, ms int) bool {
	t.Helper()
	args := []string{"record", "--json", "-d", strconv.Itoa(ms) + "ms", "-o", filepath.Join(t.TempDir(), "swap.reel"), "-p", strconv.Itoa(p.Pid())}
	if round%3 != 2 { // or the whole process
		args = append(args, "-m", "l*-*") // loading-… and library-…
	}
	r := realtest.Callreel(t, args...)
	if !p.Alive() {
		t.Fatalf("round %d: the target has ended: %s", round, p.Stderr())
	}
	if remains, err := remainsIn(p.Pid()); err != nil || len(remains) > 0 {
		t.Fatalf("round %d: left %+v, %v", round, remains, err)
	}
	if r.Code != 0 {
		t.Fatalf("round %d: code %d: %s", round, r.Code, r.Stderr)
	}
	s := realtest.Decode[summary](t, r.Stdout)
	if !s.TextVerified || s.Ended {
		t.Errorf("round %d: %+v", round, s)
	}
	if s.Calls == 0 {
		t.Logf("round %d: no call in %d ms: %+v", round, ms, s)
	}
	return s.Calls > 0
}

// The same when the recorder is dead and detach removes its probes.
func TestLibrariesMayComeAndGoWhileDetaching(t *testing.T) {
	needLive(t)
	p := loading(t, "swap")
	for i := range 5 {
		r := realtest.StartRecording(t, append(pidFlag(p), "-m", "l*-*")...)
		r.Signal(os.Kill)
		r.Wait()
		d := realtest.Callreel(t, append([]string{"detach"}, pidFlag(p)...)...)
		if d.Code != 0 || !strings.Contains(d.Stdout, "text verified: true") {
			t.Errorf("round %d: code %d: %s%s", i, d.Code, d.Stdout, d.Stderr)
		}
		if remains, err := remainsIn(p.Pid()); err != nil || len(remains) > 0 {
			t.Fatalf("round %d: left %+v, %v", i, remains, err)
		}
	}
	p.Finish()
}

// A library that goes for good while it is recorded takes its probes along.
// What is at its place then is left alone.
func TestALibraryMayGoWhileItIsRecorded(t *testing.T) {
	needLive(t)
	for _, mode := range []string{"unload", "replace", "data"} {
		t.Run(mode, func(t *testing.T) {
			p := loading(t, mode)
			r := realtest.StartRecording(t, append(pidFlag(p), "-m", "l*-*")...)
			wantProbed(t, p.Pid())
			p.Go()
			p.WaitLine("unloaded")
			if s := stop(t, r); s.Calls == 0 || s.Ended || s.Left != "" {
				t.Errorf("%+v", s)
			}
			wantUntouched(t, p.Pid())
			if calls := reportOf(t, r.File).Report.Calls("library_value"); calls == 0 {
				t.Error("no call of the library was recorded before it went")
			}
			cycle(t, p.Pid()) // and what is there now can be recorded
			p.Finish()
		})
	}
}

// And when its recorder is dead.
func TestALibraryMayGoAfterItsRecorderDied(t *testing.T) {
	needLive(t)
	for _, mode := range []string{"unload", "replace", "data"} {
		t.Run(mode, func(t *testing.T) {
			p := loading(t, mode)
			r := realtest.StartRecording(t, append(pidFlag(p), "-m", "l*-*")...)
			r.Signal(os.Kill)
			r.Wait()
			p.Go()
			p.WaitLine("unloaded")
			d := realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
			if !strings.Contains(d.Stdout, "text verified: true") {
				t.Errorf("it said %q", d.Stdout)
			}
			wantUntouched(t, p.Pid())
			p.Finish()
		})
	}
}
