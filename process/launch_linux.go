package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Launched is a program that Launch has started. It is our child.
type Launched struct {
	Process *Process
	child   *os.Process
}

// Launch starts a command and calls fn with it stopped at its program's entry
// point, where the loader has mapped all libraries and set up the thread's
// state. A static program with a C library is stopped a little later, once it has set its thread
// pointer and asked for its thread ID. Then, unless fn failed, the command goes
// on untraced; if fn fails it is killed. See Stop for what fn may do and for
// opts; opts.Timeout also bounds the time until the entry point is reached.
//
// Until fn is called the command dies if we do, from then on it never does.
//
// The errors are fn's own, ErrCommandNotFound, ErrCommandNotExecutable,
// ErrForeignArch, ErrEnded (the *Launched is given then, for Wait) and
// ErrNotReady for static Go programs, unless cmd.GoAtEntry is set.
func Launch(ctx context.Context, cmd Command, opts StopOptions, fn func(*Stopped) error) (*Launched, error) {
	return launchFrom(ctx, isMainThread, cmd, opts, fn)
}

// launchFrom is Launch from a thread that is not unfit.
func launchFrom(ctx context.Context, unfit func() bool, cmd Command, opts StopOptions, fn func(*Stopped) error) (*Launched, error) {
	path, err := lookUp(cmd.Path)
	if err != nil {
		return nil, err
	}
	var l *Launched
	err = onThread(unfit, func() (bool, error) {
		child, err := start(path, cmd)
		if err != nil {
			return true, err
		}
		l = &Launched{child: child}
		return l.run(ctx, cmd, opts, fn)
	})
	if l != nil && err != nil && !errors.Is(err, ErrEnded) {
		// What was not handed over does not go on half prepared.
		_ = l.child.Kill()
		_, _ = l.child.Wait()
		if l.Process != nil {
			_ = l.Process.Close()
		}
		return nil, err
	}
	return l, err
}

// Wait waits for the program's end and releases its resources.
func (l *Launched) Wait() (ExitStatus, error) {
	state, err := l.child.Wait()
	if l.Process != nil {
		_ = l.Process.Close()
	}
	if err != nil {
		return ExitStatus{}, fmt.Errorf("wait for process %d: %w", l.child.Pid, err)
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return ExitStatus{Signal: int(status.Signal())}, nil
	}
	return ExitStatus{Code: state.ExitCode()}, nil
}

// Pid returns the program's process ID.
func (l *Launched) Pid() int { return l.child.Pid }

// Signal sends the program a signal. It fails once Wait has returned.
func (l *Launched) Signal(sig os.Signal) error { return l.child.Signal(sig) }

func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	return "", commandError(name, err)
}

// commandError sorts failures as the shell does for its codes 127 and 126
// (POSIX.1-2017, XCU §2.8.2).
func commandError(name string, err error) error {
	kind := ErrCommandNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		kind = ErrCommandNotFound
	}
	return fmt.Errorf("%s: %w: %w", name, kind, err)
}

func start(path string, cmd Command) (*os.Process, error) {
	files := []*os.File{cmd.Stdin, cmd.Stdout, cmd.Stderr}
	for i, f := range files {
		if f != nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		files[i] = null
	}
	args := cmd.Args
	if len(args) == 0 {
		args = []string{cmd.Path}
	}
	child, err := os.StartProcess(path, args, &os.ProcAttr{
		Dir: cmd.Dir, Env: cmd.Env, Files: files,
		// The death signal covers the moment at which the child is not traced.
		Sys: &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, commandError(path, err)
	}
	return child, nil
}

// run leads the child from its exec to the stop at which fn is called.
func (l *Launched) run(ctx context.Context, cmd Command, opts StopOptions, fn func(*Stopped) error) (bool, error) {
	t, err := l.takeOver(ctx, cmd.Ignored, opts)
	if err != nil {
		return false, err
	}
	s := t.s
	err = func() error {
		var took time.Duration
		defer s.letGo(&took)
		if !cmd.AtExec {
			if err := t.toReadiness(cmd.GoAtEntry); err != nil {
				return err
			}
		}
		if err := t.gatherThreads(); err != nil {
			return err
		}
		s.Since = time.Now()
		return s.call(fn)
	}()
	return !s.leftover, err
}

// takeOver turns the child, stopped at its exec in the old way that
// PTRACE_TRACEME brings about, into a seized thread: detached for a moment, it
// spins where it stands.
func (l *Launched) takeOver(ctx context.Context, ignored []syscall.Signal, opts StopOptions) (*Thread, error) {
	pid := l.child.Pid
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != unix.EINTR {
			if err != nil {
				return nil, fmt.Errorf("process %d: wait for its exec: %w", pid, err)
			}
			break
		}
	}
	if !status.Stopped() {
		return nil, fmt.Errorf("process %d: %w: it was killed while it was started", pid, ErrNoProcess)
	}
	if err := setOptions(pid, unix.PTRACE_O_EXITKILL); err != nil {
		return nil, fmt.Errorf("process %d: set options: %w", pid, err)
	}
	p, err := open(pid, true)
	if err != nil {
		return nil, err
	}
	l.Process = p
	regs, err := getRegs(pid)
	if err != nil {
		return nil, fmt.Errorf("process %d: read registers: %w", pid, err)
	}
	undo, err := p.overwrite(regs.PC(), arch.spin())
	if err != nil {
		return nil, err
	}
	if err := detach(pid, 0); err != nil {
		return nil, fmt.Errorf("process %d: detach: %w", pid, err)
	}
	if err := seize(pid, passageOptions|unix.PTRACE_O_EXITKILL); err != nil {
		return nil, fmt.Errorf("process %d: seize: %w", pid, err)
	}
	s := newStopped(p, opts, ctx)
	t := s.add(pid)
	_ = interrupt(pid)
	if err := s.settle(t, time.Now().Add(opts.timeout())); err != nil {
		return nil, err
	}
	if err := undo(); err != nil {
		return nil, err
	}
	return t, t.settleSignals(ignored)
}

// overwrite changes a few bytes of the target and returns how to undo it.
func (p *Process) overwrite(addr uint64, code []byte) (undo func() error, err error) {
	old := make([]byte, len(code))
	if _, err := p.ReadAt(old, addr); err != nil {
		return nil, err
	}
	if _, err := p.WriteAt(code, addr); err != nil {
		return nil, err
	}
	return func() error {
		_, err := p.WriteAt(old, addr)
		return err
	}, nil
}
