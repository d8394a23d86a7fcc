package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// AwaitExec waits for the exec of thread tid of process pid, which is about to replace its program, and calls
// fn with the new program stopped where Launch would stop it: at its entry point, or a little
// later if it is static (see opts.GoAtEntry for Go). Then the program goes on untraced. It calls ready
// once when it traces the thread; until then the thread must wait, best by short sleeps, and it must not be
// in a restartable sequence or in a chain of remote calls.
//
// The program is never ours: whatever happens, fn's failing and our death at any instant included, it goes on
// as it would have. What fn has done to it is fn's to undo. If fn fails, the Process of
// its Stopped is closed, otherwise it belongs to fn's caller. fn and ready run on a goroutine tied to one OS thread.
// Several AwaitExec may run at once. Who takes the IDs from somebody else says by opts.Of which process it must be.
//
// One call of execve(2) or execveat(2) is awaited: ErrNoExec when it fails, as in a search through PATH, or
// is not made within patience after ready. Signals are delivered meanwhile, and a stop by SIGSTOP and its
// like lasts until SIGCONT, as far as patience reaches, and after the exec opts.Timeout.
//
// Other errors are fn's own, ctx's, ErrTraced, ErrNotPermitted, ErrNoProcess (the thread has ended), ErrSelf,
// and for the new program ErrForeignArch, ErrNotReady, ErrSeccomp, ErrStopTimeout and ErrEnded. A program that the kernel gives
// privileges (setuid, file capabilities) would not get them under a tracer without CAP_SYS_PTRACE:
// it is let go in time, with ErrNotPermitted.
func AwaitExec(ctx context.Context, pid, tid int, patience time.Duration, opts StopOptions, ready func(), fn func(*Stopped) error) error {
	if pid == os.Getpid() {
		return fmt.Errorf("process %d: %w", pid, ErrSelf)
	}
	if pid <= 0 || tid <= 0 {
		return fmt.Errorf("process %d: thread %d: %w: IDs are positive", pid, tid, ErrNoProcess)
	}
	return onTracerThread(func() (bool, error) {
		// A thread that is stopped where it can't be detached is let go by the end of this OS thread.
		before := newStopped(&Process{pid: pid, pidfd: -1}, opts, ctx)
		if err := before.awaitExec(tid, patience, ready); err != nil {
			var took time.Duration
			before.letGo(&took)
			return !before.leftover, err
		}
		p, err := open(pid, true)
		if err != nil {
			return false, err
		}
		s := newStopped(p, opts, ctx)
		if err := s.atEntry(fn); err != nil {
			return !s.leftover, errors.Join(err, p.Close())
		}
		return !s.leftover, nil
	})
}

// atEntry leads a program that has just replaced another one to where it can be recorded, calls fn, and lets it go.
func (s *Stopped) atEntry(fn func(*Stopped) error) error {
	t := s.add(s.p.pid)
	var took time.Duration
	defer s.letGo(&took)
	if err := t.settleFromTrap(); err != nil {
		return err
	}
	if err := t.toReadiness(s.opts.GoAtEntry); err != nil {
		return err
	}
	if err := t.gatherThreads(); err != nil {
		return err
	}
	s.Since = time.Now()
	return s.call(fn)
}

// awaitExec seizes a thread and waits until it is stopped behind its execve, in PTRACE_EVENT_EXEC.
func (s *Stopped) awaitExec(tid int, patience time.Duration, ready func()) error {
	if err := seize(tid, passageOptions); err != nil {
		return s.notAwaited(tid, err)
	}
	t := s.add(tid)
	if _, err := os.Stat(taskPath(s.p.pid, tid, "stat")); err != nil {
		return s.threadGone(tid)
	}
	if s.opts.Of != nil && (s.opts.Of.pid != s.p.pid || !s.opts.Of.Alive()) {
		return s.threadGone(tid)
	}
	t.order()
	if err := s.settle(t, time.Now().Add(s.opts.timeout())); err != nil {
		return err
	}
	if t.ended {
		return s.threadGone(tid)
	}
	if err := t.keepRestartable(); err != nil {
		return err
	}
	r := report{event: unix.PTRACE_EVENT_STOP, signal: int(unix.SIGTRAP)}
	if t.groupStop {
		r.signal = int(unix.SIGSTOP)
	}
	t.stopped = false
	if err := t.pass(unix.PTRACE_SYSCALL, r); err != nil {
		return err
	}
	ready()
	return s.waitForExec(t, time.Now().Add(patience))
}

func (s *Stopped) threadGone(tid int) error {
	return fmt.Errorf("process %d: %w: thread %d has ended", s.p.pid, ErrNoProcess, tid)
}

func (s *Stopped) notAwaited(tid int, cause error) error {
	err := s.notSeized(tid, cause)
	if errors.Is(err, ErrReleased) {
		return s.threadGone(tid)
	}
	return err
}

// waitForExec waits for the exec of a thread that runs from system call to system call.
func (s *Stopped) waitForExec(t *Thread, deadline time.Time) error {
	looks := 0
	for tries := 0; ; tries++ {
		// Also of a thread that reports one system call after the other.
		if looks++; looks&15 == 0 {
			if err := s.tired(t, deadline); err != nil {
				return err
			}
		}
		r, ok, err := peek(t.TID)
		switch {
		case errors.Is(err, unix.ECHILD) && t.TID != s.p.pid && tracedByUs(s.p.pid):
			t.TID = s.p.pid // it has become the leader, being in execve
			continue
		case errors.Is(err, unix.ECHILD):
			t.ended = true
			return s.threadGone(t.TID)
		case err != nil:
			return fmt.Errorf("process %d: wait for thread %d: %w", s.p.pid, t.TID, err)
		case ok && r.exited:
			t.markEnded()
			return s.threadGone(t.TID)
		case ok && r.event == unix.PTRACE_EVENT_EXEC:
			takeExec(t.TID)
			return nil
		case ok:
			if err := t.passTowardsExec(r); err != nil {
				return err
			}
			tries = 0
			continue
		}
		pause(tries)
	}
}

// tired returns an error when waiting for t's exec is over.
func (s *Stopped) tired(t *Thread, deadline time.Time) error {
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("process %d: await exec: %w", s.p.pid, err)
	}
	if time.Now().Before(deadline) {
		return nil
	}
	if !tracedByUs(t.TID) && !tracedByUs(s.p.pid) {
		return s.threadGone(t.TID) // a leader whose end is not told while others live
	}
	return fmt.Errorf("process %d: thread %d: %w in time", s.p.pid, t.TID, ErrNoExec)
}

// tracedByUs says whether this OS thread traces that thread.
func tracedByUs(tid int) bool {
	status, err := readStatus(tid, tid)
	return err == nil && status.TracerPID == unix.Gettid()
}

// passTowardsExec lets a thread run on from what it reported, unless its exec has failed or must not be traced.
func (t *Thread) passTowardsExec(r report) error {
	if r.event != 0 || r.signal != sysStop {
		return t.pass(unix.PTRACE_SYSCALL, r)
	}
	regs, err := getRegs(t.TID)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return t.fail("read registers", err)
	}
	if call, _ := regs.Syscall(); err != nil || call != unix.SYS_EXECVE && call != unix.SYS_EXECVEAT {
		return t.pass(unix.PTRACE_SYSCALL, r)
	}
	if arch.atSyscallEntry(&regs) {
		if err := t.keepsPrivileges(&regs); err != nil {
			t.stopped = true
			return err
		}
		return t.pass(unix.PTRACE_SYSCALL, r)
	}
	if code := -int64(regs.Result()); code > 0 && code < restartSys {
		t.stopped = true
		return fmt.Errorf("process %d: thread %d: %w: %w", t.s.p.pid, t.TID, ErrNoExec, unix.Errno(code))
	}
	return t.pass(unix.PTRACE_SYSCALL, r)
}
