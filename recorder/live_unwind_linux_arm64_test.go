package recorder_test

import (
	"os"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// TestUnwindersStartFromStubsOfARM64 has libgcc walk the stack from wherever a timer's signal has come, in stubs as elsewhere, with a recorder,
// behind one that was killed, and with the next. What the program calls is bound when it begins: libgcc's walks from glibc's resolver may end in a
// fault by themselves, above all of signed return addresses. See docs/platforms.md.
func TestUnwindersStartFromStubsOfARM64(t *testing.T) {
	needLive(t, realtest.GXX)
	for _, flags := range [][]string{{"-mbranch-protection=none"}, {"-mbranch-protection=standard"}} {
		p := realtest.Start(t, realtest.Build(t, "faults", append(flags, "-fnon-call-exceptions", "-Wl,-z,now")...), "walks")
		r := realtest.StartRecording(t, append(pidFlag(p), "-m", "faults*", "--eager")...)
		time.Sleep(3 * time.Second)
		r.Signal(os.Kill) // the program has to get along alone
		r.Wait()
		time.Sleep(time.Second)
		realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
		again := realtest.StartRecording(t, append(pidFlag(p), "-m", "faults*", "--eager")...)
		time.Sleep(time.Second)
		if got := stop(t, again); got.Calls == 0 {
			t.Errorf("%+v", got)
		}
		counts := p.Finish()
		t.Logf("%v: %v", flags, counts)
		if counts["walks"] == 0 || counts["cut"] != 0 {
			t.Errorf("%v: %v", flags, counts)
		}
	}
}

// TestExceptionsPassThroughProbesOfARM64 throws through recorded functions of the program and of the run-time library, while recorders come, go
// and are killed.
func TestExceptionsPassThroughProbesOfARM64(t *testing.T) {
	needLive(t, realtest.GXX)
	p := realtest.Start(t, realtest.Build(t, "cxx"), "4")
	var calls int64
	for range realtest.Repeats(t, 1) {
		calls += cycles(t, 2, p.Pid(), "", "--eager", "-m", "cxx*", "-m", "libgcc_s*")
		r := realtest.StartRecording(t, append(pidFlag(p), "--eager", "-m", "cxx*")...)
		r.Signal(os.Kill) // the next recorder removes what is left
		r.Wait()
	}
	cycle(t, p.Pid(), "--eager")
	if counts := p.Finish(); calls == 0 || counts["thrown"] == 0 || counts["thrown"] != counts["caught"] {
		t.Errorf("%d calls recorded, %v", calls, counts)
	}
}
