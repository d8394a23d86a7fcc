package recorder_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// Children made by fork, vfork and posix_spawn, from threads and by children, and the programs that they are replaced by: all
// calls of all of them are in the reel.
func TestFollowedProcessesAreCountedExactly(t *testing.T) {
	needLive(t)
	for _, flags := range [][]string{{"-f", "walk", "-f", "step", "-f", "by_*"}, {"--lazy"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			const rounds = 3
			r := startCommand(t, append(flags, "--follow", "--lossless"), realtest.Build(t, "fork"), strconv.Itoa(6*rounds))
			r.WaitLine("fork ") // it ends by itself
			code := r.Wait()
			s := r.result(t)
			said := strings.Join(r.Stdout(), " ")
			if code != 0 || !strings.Contains(said, fmt.Sprintf("children=%d ok", 6*rounds)) || s.Dropped != 0 || s.LostExits != 0 {
				t.Errorf("code %d, %s, %+v", code, said, s)
			}
			rep := reportOf(t, r.file)
			for name, want := range map[string]int64{"by_vfork": rounds, "by_spawn": rounds, "by_fork": 2 * rounds, "walk": 9 * rounds, "step": 9000 * rounds} {
				if got := rep.Report.Calls(name); got != want {
					t.Errorf("%d calls of %s, want %d", got, name, want)
				}
			}
			// With all its calls recorded one is seen that does nothing but fork again.
			forked := 4 * rounds
			if flags[0] == "--lazy" {
				forked += rounds
			}
			if p := s.Processes; p.Forked != forked || p.Executed != 2*rounds || p.Late != 0 || p.Unrecorded != 0 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// A shell's programs are recorded, each with what it does itself.
func TestAShellsProgramsAreRecorded(t *testing.T) {
	needLive(t)
	count := realtest.Build(t, "fork")
	script := "for i in 1 2 3; do " + count + " child; done; " + count + " child | cat; (" + count + " child)& wait"
	r := startCommand(t, []string{"--follow", "--lossless", "-f", "walk", "-f", "step"}, "sh", "-c", script)
	r.Wait()
	s := r.result(t)
	rep := reportOf(t, r.file)
	if walks, steps := rep.Report.Calls("walk"), rep.Report.Calls("step"); walks != 5 || steps != 5000 {
		t.Errorf("%d calls of walk of 5, %d of step of 5,000: %+v\n%s", walks, steps, s.Processes, r.Stderr())
	}
}

// Children that live when recording ends are left as they were, like their parent.
func TestFollowedChildrenAreDetachedFrom(t *testing.T) {
	needLive(t, realtest.Python3)
	for _, how := range []string{"--eager", "--lazy"} {
		p := realtest.Python(t, forkingScript, filepath.Join(t.TempDir(), "end"))
		r := realtest.StartRecording(t, append(pidFlag(p), "--follow", how)...)
		p.Go()
		child, err := strconv.Atoi(strings.TrimPrefix(p.WaitLine("child "), "child "))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		s := stop(t, r)
		wantUntouched(t, child)
		wantUntouched(t, p.Pid())
		if s.Processes.Forked != 1 {
			t.Errorf("%+v", s.Processes)
		}
		calls := int64(0)
		for _, th := range reportOf(t, r.File).Threads {
			if th.TID == child {
				calls += th.Calls
			}
		}
		if calls == 0 {
			t.Error("no call of the child's is in the reel")
		}
		p.Go()
		if counts := p.Finish(); counts["status"] != 0 || counts["right"] != 1 {
			t.Errorf("%v", counts)
		}
	}
}

// Recorders that follow come and go while children are made in every way.
func TestChildrenOfAFollowedProcessAreUnharmed(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "fork"))
	cycles(t, realtest.Repeats(t, 4), p.Pid(), "", "--follow")
	if counts := p.Finish(); counts["children"] == 0 {
		t.Error("no children")
	}
}

// Without their recorder children go on, those too that were waiting for it.
func TestFollowedProcessesOutliveTheirRecorder(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "fork"))
	realtest.GiveWay(t, p.Pid())
	for i := range 5 {
		r := realtest.StartRecording(t, append(pidFlag(p), "--follow", "--force")...)
		time.Sleep(time.Duration(20+60*i) * time.Millisecond)
		r.Signal(syscall.SIGKILL)
		r.Wait()
	}
	realtest.MustCallreel(t, "detach", "-p", strconv.Itoa(p.Pid()))
	wantUntouched(t, p.Pid())
	if counts := p.Finish(); counts["children"] == 0 {
		t.Error("no children")
	}
}

// A child that enters a sandbox is left alone from then on, and the recording of the others goes on.
func TestAFollowedChildMayEnterASandbox(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "sandbox"), "child")
	r := realtest.StartRecording(t, append(pidFlag(p), "-f", "*", "--follow")...)
	p.Go()
	p.WaitLine("done")
	time.Sleep(50 * time.Millisecond)
	if !r.Alive() {
		t.Fatalf("it has ended\n%s", r.Stderr())
	}
	stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
}

// What can't be recorded is started all the same, with its own arguments and exit code.
func TestProgramsThatCannotBeRecordedRun(t *testing.T) {
	needLive(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nkill -USR1 $$\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := startCommand(t, []string{"--follow"}, "sh", "-c", "nosuchprogram 2>"+dir+"/err; "+script+"; echo $? >"+dir+"/code; exit 7")
	if code := r.Wait(); code != 7 {
		t.Errorf("code %d\n%s", code, r.Stderr())
	}
	code, err := os.ReadFile(filepath.Join(dir, "code"))
	if want := fmt.Sprintln(128 + int(syscall.SIGUSR1)); err != nil || string(code) != want {
		t.Errorf("%q, %v", code, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "err")); err != nil || !strings.Contains(string(text), "not found") {
		t.Errorf("%q, %v", text, err)
	}
}

// In a PID namespace of its own a process has another ID than we know it by, and one that here is somebody else's.
func TestProgramsInANewPIDNamespaceAreRecorded(t *testing.T) {
	needLive(t, realtest.Superuser)
	count := realtest.Build(t, "fork")
	script := "for i in 1 2 3; do " + count + " child; done; true"
	r := startCommand(t, []string{"--follow", "--lossless", "-f", "walk", "-f", "step"}, "unshare", "-pf", "sh", "-c", script)
	if code := r.Wait(); code != 0 {
		t.Errorf("code %d\n%s", code, r.Stderr())
	}
	s := r.result(t)
	rep := reportOf(t, r.file)
	if walks, steps := rep.Report.Calls("walk"), rep.Report.Calls("step"); walks != 3 || steps != 3000 {
		t.Errorf("%d calls of walk of 3, %d of step of 3,000: %+v", walks, steps, s.Processes)
	}
	if s.Processes.Executed < 3 || s.Processes.Late != 0 || s.Processes.Unrecorded != 0 {
		t.Errorf("%+v\n%s", s.Processes, r.Stderr())
	}
}

// The first processes of two PID namespaces have one ID. They don't write into the same rings for long, where they would be one thread.
func TestForkedChildrenInPIDNamespacesAreToldApart(t *testing.T) {
	needLive(t, realtest.Superuser)
	p := realtest.Start(t, realtest.Build(t, "namespaces"))
	r := realtest.StartRecording(t, append(pidFlag(p), "--follow", "--lossless", "-f", "early", "-f", "step")...)
	p.Go()
	var children [2]int
	line := p.WaitLine("children ")
	if _, err := fmt.Sscanf(line, "children %d %d", &children[0], &children[1]); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	own := rings(t, p.Pid())
	eventually(t, "one child has rings of its own", func() bool {
		a, b := rings(t, children[0]), rings(t, children[1])
		return a != 0 && b != 0 && (a == own) != (b == own)
	})
	eventually(t, "both children have probes", func() bool { return probed(children[0]) && probed(children[1]) })
	p.Go()
	if counts := p.Finish(); counts["children"] != 2 {
		t.Errorf("%v", counts)
	}
	s := stop(t, r)
	if s.Processes.Forked != 2 || s.Processes.Late != 1 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
	rep := reportOf(t, r.File)
	if n := rep.Report.Calls("step"); n != 3000 {
		t.Errorf("%d calls of step", n)
	}
	for i, child := range children {
		if !slices.ContainsFunc(rep.Threads, func(th realtest.ReportThread) bool { return th.TID == child && th.Calls >= int64(1000*(i+1)) }) {
			t.Errorf("calls of process %d aren't its own: %+v", child, rep.Threads)
		}
	}
}

// probed says whether a process has probes, false while somebody sees to it.
func probed(pid int) bool {
	err := textAsFile(pid)
	return err != nil && !errors.Is(err, process.ErrTraced)
}

// rings returns the inode of the rings that a process has mapped, 0 if there are none, or somebody sees to it.
func rings(t *testing.T, pid int) uint64 {
	t.Helper()
	p, err := process.Open(pid)
	if errors.Is(err, process.ErrTraced) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if m.Perm&process.PermShared != 0 && m.Perm&process.PermWrite != 0 && m.Path == ring.MappingName {
			return m.Inode
		}
	}
	return 0
}
