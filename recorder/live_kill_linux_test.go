package recorder_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// kills is how often callreel is killed on each target.
func kills(t *testing.T) int { return realtest.Repeats(t, 8) }

// Whenever callreel is killed, the target goes on and is right, the reel can be
// read, and detach removes what was left.
func TestATargetOutlivesItsRecorder(t *testing.T) {
	t.Parallel()
	needLive(t)
	t.Run("threads", func(t *testing.T) {
		p := realtest.Start(t, realtest.Build(t, "threads"), "churn", "3")
		killRecorders(t, p)
		if counts := p.Finish(); counts["counted_a"] == 0 {
			t.Errorf("%v", counts)
		}
	})
	t.Run("abi", func(t *testing.T) {
		p := realtest.Start(t, realtest.Build(t, "abi"))
		killRecorders(t, p)
		if counts := p.Finish(); counts["signals"] == 0 {
			t.Errorf("%v", counts)
		}
	})
	t.Run("redis", func(t *testing.T) {
		realtest.Need(t, realtest.RedisTools)
		s := realtest.Redis(t)
		load := underLoad(t, func(ctx context.Context) (int64, error) { return s.Load(ctx, 1) })
		killRecorders(t, s.Proc)
		load.end(t)
	})
}

// killRecorders kills recorders of p at random moments of their lives: while
// they plan, attach, record and detach.
func killRecorders(t *testing.T, p *realtest.Proc) {
	t.Helper()
	realtest.GiveWay(t, p.Pid())
	start := time.Now()
	r := realtest.StartRecording(t, pidFlag(p)...)
	attached := time.Since(start)
	stop(t, r)
	// 400 ms is more than a life on a quiet machine.
	most := max(400*time.Millisecond, attached*3/2)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, delays up to %v", seed, most)
	outcomes := map[string]int{}
	for i := range kills(t) {
		flags := pidFlag(p)
		if i%2 == 1 { // it detaches soon
			flags = append(flags, "-d", "20ms")
		}
		if i%5 == 4 {
			flags = append(flags, "--lossless", "--ring", "1M")
		}
		outcomes[killedAfter(t, p, time.Duration(random.Int64N(int64(most))), flags)]++
	}
	t.Logf("%v", outcomes)
	if s := cycle(t, p.Pid()); s.Calls == 0 {
		t.Error("recording again: no call")
	}
}

// killedAfter kills one recorder after a delay, and says what it had reached.
func killedAfter(t *testing.T, p *realtest.Proc, delay time.Duration, flags []string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "killed.reel")
	cmd := exec.Command(realtest.CallreelPath(t), slices.Concat([]string{"record", "--json", "-o", file}, flags)...)
	r := realtest.StartCommand(t, cmd)
	time.Sleep(delay)
	_ = cmd.Process.Kill() // it may have ended by itself
	code := r.Wait()
	if !p.Alive() {
		t.Fatalf("killed after %v: the target has ended: %s", delay, p.Stderr())
	}
	outcome := "killed before recording was on"
	if code == 0 {
		outcome = "done before it was killed"
	}
	if info, err := os.Stat(file); err == nil && info.Size() > 0 { // an empty one has just been made
		if code != 0 {
			outcome = "killed while recording"
		}
		rep := realtest.Callreel(t, "report", "--json", file)
		if rep.Code != 0 || strings.Contains(rep.Stderr, "goroutine ") {
			t.Errorf("killed after %v: report of the reel: code %d\n%s", delay, rep.Code, rep.Stderr)
		}
	}
	d := realtest.Callreel(t, "detach", "-p", strconv.Itoa(p.Pid()))
	switch {
	case d.Code == 0 && strings.Contains(d.Stdout, "text verified: true"):
	case d.Code == 0 && strings.Contains(d.Stdout, "not being recorded"):
		if outcome == "killed while recording" {
			outcome = "killed when detached"
		}
	default:
		t.Fatalf("killed after %v: detach: code %d\n%s%s", delay, d.Code, d.Stdout, d.Stderr)
	}
	if strings.Contains(d.Stdout, "stay mapped") {
		t.Logf("detach: %s", d.Stdout)
		d = realtest.MustCallreel(t, "detach", "-p", strconv.Itoa(p.Pid()))
	}
	wantUntouched(t, p.Pid())
	return outcome
}

// Recording again is possible at once, without a detach: what was left is
// removed first, and the user is told.
func TestRecordingAgainAfterAKillNeedsNoDetach(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	realtest.GiveWay(t, p.Pid())
	rounds := 3
	if testing.Short() { // in an emulator each takes a quarter of a minute
		rounds = 1
	}
	for range rounds {
		killRecording(t, p)
		again := realtest.StartRecording(t, pidFlag(p)...)
		time.Sleep(50 * time.Millisecond)
		s := stop(t, again)
		if s.Calls == 0 {
			t.Error("no calls")
		}
		if said := again.Stderr(); !strings.Contains(said, "removed the probes") {
			t.Errorf("the user was told %q", said)
		}
		wantUntouched(t, p.Pid())
	}
	p.Finish()
}

// What had been drained is in the reel of a recorder that was killed.
func TestTheReelOfAKilledRecorderHoldsWhatWasDrained(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "count"), "2000000", "0")
	r := realtest.StartRecording(t, append(pidFlag(p), "-f", "leaf", "--lossless")...)
	p.Go()
	p.WaitLine("counted ")
	time.Sleep(time.Second) // the reel is flushed some times a second
	r.Signal(os.Kill)
	r.Wait()
	rep := realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout)
	if got := rep.Report.Calls("leaf"); got != 2000000 {
		t.Errorf("%d calls of 2,000,000 are in the reel a second later", got)
	}
	realtest.MustCallreel(t, "detach", "-p", strconv.Itoa(p.Pid()))
	wantUntouched(t, p.Pid())
	p.Finish()
}

// A lossless target waits for its recorder, but not for one that is dead or
// stands still for good.
func TestALosslessTargetDoesNotWaitForADeadRecorder(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		name   string
		signal os.Signal
	}{{"killed", os.Kill}, {"stopped", sigStop}} {
		t.Run(c.name, func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "threads"), "fixed", "4", "100000")
			r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "--ring", "1M", "-f", "counted_*")...)
			r.Signal(c.signal)
			if c.signal == os.Kill {
				r.Wait()
			} else {
				waitState(t, r.Pid(), 'T')
			}
			start := time.Now()
			p.Go()
			p.WaitLine("counted ") // or the test fails after a minute
			took := time.Since(start)
			t.Logf("went on after %v", took)
			// Two seconds are waited in all; the rest is room for a machine that is shared.
			if took > soon {
				t.Errorf("the target took %v", took)
			}
			if c.signal == os.Kill {
				realtest.MustCallreel(t, "detach", "-p", strconv.Itoa(p.Pid()))
				wantUntouched(t, p.Pid())
				p.Finish()
				return
			}
			// It wakes up, and what it missed is counted.
			r.Signal(sigCont)
			s := stop(t, r)
			wantUntouched(t, p.Pid())
			made := p.Finish()
			want := made["counted_a"] + made["counted_b"] + made["counted_c"] + made["counted_d"]
			if s.Calls+s.Dropped != want || s.Dropped == 0 {
				t.Errorf("%d calls recorded and %d dropped, the program made %d", s.Calls, s.Dropped, want)
			}
		})
	}
}

// In a small static program there may be no instruction left that cleaning up
// needs, when all functions are probed.
func TestAStaticTargetOutlivesItsRecorder(t *testing.T) {
	needLive(t, realtest.Musl)
	for _, target := range []string{"threads", "abi", "count"} {
		if target == "abi" && runtime.GOARCH != "amd64" {
			continue // it has that processor's instructions
		}
		p := realtest.Start(t, realtest.Build(t, target, "cc=musl-gcc", "-static"))
		realtest.GiveWay(t, p.Pid())
		for _, again := range []bool{false, true} {
			r := realtest.StartRecording(t, pidFlag(p)...)
			r.Signal(os.Kill)
			r.Wait()
			if again {
				stop(t, realtest.StartRecording(t, pidFlag(p)...))
			} else {
				realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
			}
			wantUntouched(t, p.Pid())
		}
		p.Finish()
	}
}
