package process

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"golang.org/x/sys/unix"
)

// trace runs a shell script to its end and returns how often each kind of stop was seen.
func trace(t *testing.T, script string, see func(*Tracing, TraceStop) (signal int, err error)) (map[TraceKind]int, ExitStatus) {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace)
	kinds := map[TraceKind]int{}
	status, err := Trace(t.Context(), Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}}, func(tr *Tracing) error {
		if err := tr.Continue(tr.Process().Pid(), 0); err != nil {
			return err
		}
		for {
			s, err := tr.Wait()
			if errors.Is(err, ErrEnded) {
				return nil
			}
			if err != nil {
				return err
			}
			kinds[s.Kind]++
			signal, err := see(tr, s)
			switch {
			case err != nil && !errors.Is(err, ErrReleased):
				return err
			case s.Kind == TraceChild || s.Kind == TraceGuest || s.Kind == TraceExec:
				err = tr.Detach(s.TID)
			case s.Kind != TraceEnded:
				err = tr.Continue(s.TID, signal)
			}
			if err != nil && !errors.Is(err, ErrReleased) {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds, status
}

func deliver(_ *Tracing, s TraceStop) (int, error) { return s.Signal, nil }

func TestTraceTellsOfProcessesThatTheCommandMakes(t *testing.T) {
	kinds, status := trace(t, "(exit 3); a=$?; (exit 4); exit $((a + $?))", deliver)
	if made := kinds[TraceChild] + kinds[TraceGuest]; made != 2 || kinds[TraceEnded] != 1 || status != (ExitStatus{Code: 7}) {
		t.Errorf("%v, %+v", kinds, status)
	}
}

func TestTraceDeliversTheSignalsThatItIsToldTo(t *testing.T) {
	script := "trap 'exit 5' USR1; kill -USR1 $$; exit 6"
	if kinds, status := trace(t, script, deliver); status != (ExitStatus{Code: 5}) || kinds[TraceSignal] == 0 {
		t.Errorf("%v, %+v", kinds, status)
	}
	swallow := func(_ *Tracing, s TraceStop) (int, error) {
		if s.Signal == int(unix.SIGUSR1) {
			return 0, nil
		}
		return s.Signal, nil
	}
	if kinds, status := trace(t, script, swallow); status != (ExitStatus{Code: 6}) {
		t.Errorf("%v, %+v", kinds, status)
	}
	if kinds, status := trace(t, "kill -TERM $$", deliver); status != (ExitStatus{Signal: int(unix.SIGTERM)}) {
		t.Errorf("%v, %+v", kinds, status)
	}
}

func TestTraceLetsAnotherProgramGo(t *testing.T) {
	if kinds, status := trace(t, "exec sh -c 'exit 8'", deliver); status != (ExitStatus{Code: 8}) || kinds[TraceExec] != 1 {
		t.Errorf("%v, %+v", kinds, status)
	}
}

func TestTraceLeavesOtherChildrenAlone(t *testing.T) {
	other := exec.Command("/bin/sh", "-c", "exit 9")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	trace(t, "sleep 0.05", deliver)
	var end *exec.ExitError
	if err := other.Wait(); !errors.As(err, &end) || end.ExitCode() != 9 {
		t.Errorf("%v", err)
	}
}

func TestTraceKillsTheCommandWhenItsFunctionFails(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	failed, pid := errors.New("failed"), 0
	_, err := Trace(t.Context(), Command{Path: "/bin/sleep", Args: []string{"sleep", "60"}}, func(tr *Tracing) error {
		pid = tr.Process().Pid()
		return failed
	})
	if !errors.Is(err, failed) || unix.Kill(pid, 0) != unix.ESRCH {
		t.Errorf("%v, %v", err, unix.Kill(pid, 0))
	}
}
