package recorder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
)

// Every way for a recording to end by itself or by request is clean.
func TestRecordingsEndCleanly(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	realtest.GiveWay(t, p.Pid())
	for _, c := range []struct {
		name string
		end  func(*realtest.Recording)
		args []string
	}{
		{name: "Ctrl-C", end: func(r *realtest.Recording) { r.Signal(os.Interrupt) }},
		{name: "SIGTERM", end: func(r *realtest.Recording) { r.Signal(syscall.SIGTERM) }},
		{name: "two signals", end: func(r *realtest.Recording) { r.Signal(syscall.SIGTERM); r.Signal(os.Interrupt) }},
		{name: "-d", args: []string{"-d", "100ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := realtest.StartRecording(t, append(pidFlag(p), c.args...)...)
			wantProbed(t, p.Pid())
			if c.end != nil {
				time.Sleep(50 * time.Millisecond)
				c.end(r)
			}
			s := ended(t, r)
			if s.Calls == 0 || s.Ended {
				t.Errorf("%+v", s)
			}
			wantUntouched(t, p.Pid())
			if rep := reportOf(t, r.File); rep.Calls != s.Calls {
				t.Errorf("%d calls in the report, %d in the summary", rep.Calls, s.Calls)
			}
		})
	}
	p.Finish()
}

// timeout(1) sends its signal twice, and terminals may; the two come at once,
// or nearly.
func TestASignalSentTwiceEndsARecordingCleanly(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	realtest.GiveWay(t, p.Pid())
	for i := range 8 {
		r := realtest.StartRecording(t, append(pidFlag(p), "-f", "counted_*")...)
		r.Signal(os.Interrupt)
		time.Sleep(time.Duration(i) * 500 * time.Microsecond)
		_ = unix.Kill(r.Pid(), unix.SIGINT) // it may be done already
		ended(t, r)
		wantUntouched(t, p.Pid())
	}
	p.Finish()
}

// A signal that comes while callreel still plans or attaches ends it too, and
// the process is as it was.
func TestASignalBeforeRecordingIsOnEndsCleanly(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	realtest.GiveWay(t, p.Pid())
	for i := range 15 {
		file := filepath.Join(t.TempDir(), "early.reel")
		r := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "record", "--json", "-o", file, "-p", strconv.Itoa(p.Pid())))
		time.Sleep(time.Duration(40+20*i) * time.Millisecond)
		r.Signal(os.Interrupt)
		code := r.Wait()
		_, err := os.Stat(file)
		if on := err == nil; on != (code == 0) || code != 0 && code != 1 && code != 128+int(syscall.SIGINT) {
			t.Errorf("code %d, reel exists: %v\n%s", code, on, r.Stderr())
		}
		wantUntouched(t, p.Pid())
	}
	p.Finish()
}

// A target that ends is no failure, however it ends; all it did is in the reel.
func TestATargetMayEndWhileItIsRecorded(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		name string
		end  func(*realtest.Proc)
		code int
	}{
		{"by itself", func(*realtest.Proc) {}, 0},
		{"killed", func(p *realtest.Proc) { p.Signal(os.Kill) }, 128 + 9},
		{"segmentation fault", func(p *realtest.Proc) { p.Signal(syscall.SIGSEGV) }, 128 + 11},
		{"abort", func(p *realtest.Proc) { p.Signal(syscall.SIGABRT) }, 128 + 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "count"), "1000000", "1000")
			r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "-m", "count*")...)
			p.Go()
			p.WaitLine("counted ")
			c.end(p)
			if code := p.Wait(); code != c.code {
				t.Errorf("the target's code is %d, want %d", code, c.code)
			}
			s := ended(t, r)
			if !s.Ended {
				t.Errorf("the summary does not say that the process has ended: %+v", s)
			}
			rep := reportOf(t, r.File)
			if got := rep.Report.Calls("leaf"); got != 1001000 {
				t.Errorf("%d calls of leaf in the reel, want 1,001,000", got)
			}
		})
	}
}

// A target that replaces its program is left alone from then on.
func TestATargetMayReplaceItsProgram(t *testing.T) {
	needLive(t)
	count := realtest.Build(t, "count")
	// The shell waits for a line, then becomes another program.
	p := realtest.Start(t, "/bin/sh", "-c", "echo ready; read line; exec "+count+" 1000 0")
	r := realtest.StartRecording(t, pidFlag(p)...)
	p.Go()
	eventually(t, "replaced", func() bool {
		exe, err := os.Readlink("/proc/" + strconv.Itoa(p.Pid()) + "/exe")
		return err == nil && exe == count
	})
	eventually(t, "noticed", func() bool { return !r.Alive() })
	if s := ended(t, r); !s.Ended {
		t.Errorf("the summary does not say that the program is gone: %+v", s)
	}
	if said := r.Stderr(); !strings.Contains(said, count) || !strings.Contains(said, "--follow") {
		t.Errorf("what it runs now is not told: %q", said)
	}
	wantUntouched(t, p.Pid())
	p.Go()
	if counts := p.Finish(); counts["leaf"] != 1000 {
		t.Errorf("%v", counts)
	}
}

// A stopped process can be recorded, and stays stopped.
func TestAStoppedTargetStaysStopped(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "stopped"))
	waitState(t, p.Pid(), 'T')
	r := realtest.StartRecording(t, pidFlag(p)...)
	wantProbed(t, p.Pid())
	time.Sleep(50 * time.Millisecond)
	if state := stateOf(p.Pid()); state != 'T' {
		t.Errorf("state %c while recorded", state)
	}
	stop(t, r)
	wantUntouched(t, p.Pid())
	if state := stateOf(p.Pid()); state != 'T' {
		t.Errorf("state %c afterwards", state)
	}
	// Continued while it is recorded.
	r = realtest.StartRecording(t, append(pidFlag(p), "--lossless", "-f", "leaf")...)
	p.Signal(sigCont)
	eventually(t, "at work", func() bool { return stateOf(p.Pid()) != 'T' })
	time.Sleep(100 * time.Millisecond)
	if s := stop(t, r); s.Calls == 0 {
		t.Error("no calls once it was continued")
	}
	wantUntouched(t, p.Pid())
	if counts := p.Finish(); counts["continued"] != 1 || counts["leaf"] == 0 {
		t.Errorf("%v", counts)
	}
}

// A full disk ends the recording; the target is detached from and unharmed, and
// the reel holds what there was room for.
func TestAFullDiskEndsTheRecording(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	realtest.GiveWay(t, p.Pid())
	t.Run("file system", func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
			t.Skipf("this machine lacks permission to mount: %v; a limit of the file's size is tested anyway", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, 0); err != nil {
				t.Error(err)
			}
		})
		file := filepath.Join(dir, "full.reel")
		r := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "record", "--json", "-o", file, "-p", strconv.Itoa(p.Pid())))
		wantEndedFull(t, p, r, file, "no space left on device")
	})
	t.Run("file size limit", func(t *testing.T) {
		r := realtest.StartRecording(t, pidFlag(p)...)
		limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := unix.Prlimit(r.Pid(), unix.RLIMIT_FSIZE, &limit, nil); err != nil {
			t.Fatal(err)
		}
		wantEndedFull(t, p, r.Proc, r.File, "file too large")
	})
	p.Finish()
}

// wantEndedFull waits for a recorder whose reel has no more room.
func wantEndedFull(t *testing.T, p, r *realtest.Proc, file, why string) {
	t.Helper()
	eventually(t, "over", func() bool { return !r.Alive() })
	if code := r.Wait(); code != 1 {
		t.Errorf("code %d, want 1", code)
	}
	if said := r.Stderr(); !strings.Contains(said, why) || !strings.Contains(said, file) {
		t.Errorf("it said %q", said)
	}
	wantUntouched(t, p.Pid())
	s := realtest.Decode[summary](t, strings.Join(r.Stdout(), "\n"))
	if !s.TextVerified || s.Calls == 0 {
		t.Errorf("%+v", s)
	}
	// The summary counts what can be read, not what was drained.
	rep := realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", file).Stdout)
	if rep.Calls != s.Calls || rep.Events != s.Events {
		t.Errorf("%d calls and %d events are in the reel, the summary says %d and %d", rep.Calls, rep.Events, s.Calls, s.Events)
	}
}
