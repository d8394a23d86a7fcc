package process

import (
	"context"
	"debug/elf"
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
// state. A static program is stopped a little later, once it has set its thread
// pointer and asked for its thread ID. Then, unless fn failed, the command goes
// on untraced; if fn fails it is killed. See Stop for what fn may do and for
// opts; opts.Timeout also bounds the time until the entry point is reached.
//
// Until fn is called the command dies if we do, from then on it never does.
//
// The errors are fn's own, ErrCommandNotFound, ErrCommandNotExecutable,
// ErrForeignArch, ErrEnded (the *Launched is given then, for Wait) and
// ErrNotReady for static programs without a C library.
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
			if err := l.toReadiness(t, cmd.GoAtEntry); err != nil {
				return err
			}
		}
		if err := setOptions(t.TID, attachOptions); err != nil {
			return t.fail("set options", err)
		}
		s.Since = time.Now()
		return fn(s)
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
	spin := []byte{0xeb, 0xfe} // jmp to itself
	undo, err := p.overwrite(regs.Rip, spin)
	if err != nil {
		return nil, err
	}
	if err := detach(pid, 0); err != nil {
		return nil, fmt.Errorf("process %d: detach: %w", pid, err)
	}
	const launchOptions = attachOptions | unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACESYSGOOD
	if err := seize(pid, launchOptions); err != nil {
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

// settleFromTrap leads from a trap of the launch's own to an event stop.
func (t *Thread) settleFromTrap() error {
	t.stopped = false
	if err := t.s.sendOn(t, report{event: -1}); err != nil {
		return err
	}
	if err := t.s.settle(t, time.Now().Add(t.s.opts.timeout())); err != nil {
		return err
	}
	if t.ended {
		return fmt.Errorf("process %d: %w", t.TID, ErrEnded)
	}
	return nil
}

// toReadiness runs the program to its entry point, and further if it is static. atEntry is Command.GoAtEntry.
func (l *Launched) toReadiness(t *Thread, atEntry bool) error {
	auxv, err := l.Process.Auxv()
	if err != nil {
		return err
	}
	if err := t.runTo(auxv.Entry); err != nil {
		return err
	}
	if auxv.Base != 0 {
		return nil // the loader has set the thread up
	}
	if static, err := l.isGo(); err == nil && static {
		if atEntry {
			return nil
		}
		return fmt.Errorf("process %d: %w: it is a static Go program", t.TID, ErrNotReady)
	}
	return t.runToThreadID()
}

// isGo says whether the program has Go's build information.
func (l *Launched) isGo() (bool, error) {
	f, err := elf.Open(procPath(l.child.Pid, "exe"))
	if err != nil {
		return false, err
	}
	defer f.Close()
	return f.Section(".go.buildinfo") != nil || f.Section(".note.go.buildid") != nil, nil
}

// runTo runs the program's only thread to addr by a breakpoint.
func (t *Thread) runTo(addr uint64) error {
	undo, err := t.s.p.overwrite(addr, []byte{0xcc})
	if err != nil {
		return err
	}
	t.stopped = false
	if err := resume(t.TID, 0); err != nil {
		return t.fail("continue", err)
	}
	err = t.awaitOwn(func(r report) (bool, int, error) {
		if r.event != 0 || r.signal != int(unix.SIGTRAP) {
			return false, r.signal, nil
		}
		regs, err := getRegs(t.TID)
		if err != nil {
			return false, 0, t.fail("read registers", err)
		}
		return regs.Rip == addr+1, r.signal, nil
	}, unix.PTRACE_CONT)
	if err != nil {
		return err
	}
	if err := undo(); err != nil {
		return err
	}
	regs, err := t.Regs()
	if err != nil {
		return err
	}
	if err := t.settleFromTrap(); err != nil {
		return err
	}
	regs.Rip, regs.Orig_rax = addr, ^uint64(0)
	return t.SetRegs(regs)
}

// awaitOwn waits until judge accepts a stop; until then the thread goes on by
// request with the signal that judge returns.
func (t *Thread) awaitOwn(judge func(report) (ok bool, signal int, err error), request int) error {
	err := t.s.await(t, time.Now().Add(t.s.opts.timeout()), func(r report) (bool, error) {
		ok, signal, err := judge(r)
		if ok || err != nil {
			return ok, err
		}
		if r.event != 0 || signal > 64 {
			signal = 0
		}
		if err := ptrace(request, t.TID, 0, uintptr(signal)); err != nil && !errors.Is(err, unix.ESRCH) {
			return false, t.fail("continue", err)
		}
		return false, nil
	})
	if err == nil && t.ended {
		return fmt.Errorf("process %d: %w", t.TID, ErrEnded)
	}
	return err
}

// maxStartupCalls bounds how many system calls a static program makes before
// it asks for its thread ID. glibc's and musl's make fewer than ten.
const maxStartupCalls = 200

// runToThreadID runs a static program until set_tid_address(2) has returned.
func (t *Thread) runToThreadID() error {
	stops, ready := 0, false
	t.stopped = false
	if err := ptrace(unix.PTRACE_SYSCALL, t.TID, 0, 0); err != nil {
		return t.fail("continue", err)
	}
	err := t.awaitOwn(func(r report) (bool, int, error) {
		if r.event != 0 || r.signal != sysStop {
			return false, r.signal, nil
		}
		stops++
		regs, err := getRegs(t.TID)
		if err != nil {
			return false, 0, t.fail("read registers", err)
		}
		switch regs.Orig_rax {
		case unix.SYS_SET_TID_ADDRESS:
			ready = int64(regs.Rax) > 0 // -ENOSYS at the entry, the ID at the exit
		case unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_EXECVE, unix.SYS_EXIT_GROUP:
			return true, 0, nil
		}
		return ready || stops > 2*maxStartupCalls, 0, nil
	}, unix.PTRACE_SYSCALL)
	if err != nil {
		return err
	}
	if !ready {
		return fmt.Errorf("process %d: %w", t.TID, ErrNotReady)
	}
	if err := t.settleFromTrap(); err != nil {
		return err
	}
	return t.runToStoredID()
}

// maxStoreSteps is how many instructions a C library may need to store the ID
// that set_tid_address has returned.
const maxStoreSteps = 64

// runToStoredID steps until the ID stands where TIDOffset finds it. A library
// that stores it elsewhere or not at all is ready as it is.
func (t *Thread) runToStoredID() error {
	_, err := t.Step(maxStoreSteps, func(*Regs) bool {
		_, err := t.s.TIDOffset()
		return err == nil
	})
	if errors.Is(err, errStepSyscall) {
		return nil
	}
	return err
}
