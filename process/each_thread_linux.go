package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// EachThread stops one thread of the process after the other, each for as long as fn
// works on it, and lets it go before the next one is stopped: the rest of the process
// runs on. fn gets the threads in the order of tids with the time since it was told to
// stop; a thread that has ended meanwhile, or that does not stop in time, comes with an
// error that wraps ErrReleased or ErrStopTimeout and must not be used. After a thread
// was let go, done (if not nil) gets the time that it was stopped, from the order to stop
// until it was let go.
//
// The rules of Stop hold: signals are delivered later, system calls are restarted, and
// if this process is killed the thread runs on. fn runs on a goroutine tied to one OS
// thread. An error of fn ends the round and is returned; the others are ctx's, ErrTraced,
// ErrNotPermitted and ErrExec.
func (p *Process) EachThread(ctx context.Context, opts StopOptions, tids []int, fn func(*Thread, error) error, done func(tid int, stopped time.Duration)) error {
	p.stopping.Lock()
	defer p.stopping.Unlock()
	for len(tids) > 0 {
		var seen int
		err := onTracerThread(func() (reusable bool, err error) {
			seen, reusable, err = p.inTurn(ctx, opts, tids, fn, done)
			return reusable, err
		})
		if err != nil {
			return err
		}
		tids = tids[seen:]
	}
	return nil
}

// inTurn stops threads one after the other until one cannot be let go, which only the
// end of this OS thread then does. It returns how many it has dealt with.
func (p *Process) inTurn(ctx context.Context, opts StopOptions, tids []int, fn func(*Thread, error) error, done func(int, time.Duration)) (seen int, reusable bool, err error) {
	for k, tid := range tids {
		if err := ctx.Err(); err != nil {
			return k, true, fmt.Errorf("process %d: stop: %w", p.pid, err)
		}
		s := newStopped(p, opts, ctx)
		took, err := s.oneThread(tid, fn)
		if err != nil {
			return k, !s.leftover, err
		}
		if done != nil {
			done(tid, took)
		}
		if s.leftover {
			return k + 1, false, nil
		}
	}
	return len(tids), true, nil
}

// oneThread stops a thread, hands it to fn and lets it go.
func (s *Stopped) oneThread(tid int, fn func(*Thread, error) error) (took time.Duration, err error) {
	// The child of a thread that is being stopped is none of ours, unlike in Stop.
	if err := s.seizeAgain(tid, unix.PTRACE_O_TRACEEXEC); err != nil {
		if err = s.notSeized(tid, err); errors.Is(err, ErrReleased) {
			return 0, fn(&Thread{TID: tid, s: s}, err)
		}
		return 0, err
	}
	t := s.add(tid)
	defer s.rememberRestart(t) // once the thread runs on
	defer s.letGo(&took)
	s.Since = time.Now()
	t.order()
	awaitBriefly(tid)
	switch err := s.settle(t, s.Since.Add(s.opts.timeout())); {
	case errors.Is(err, ErrStopTimeout):
		return 0, fn(t, err)
	case err != nil:
		return 0, err
	case s.execed:
		return 0, fmt.Errorf("process %d: %w while its threads were looked at; try again", s.p.pid, ErrExec)
	case t.ended:
		return 0, fn(t, t.fail("stop", unix.ESRCH))
	}
	if err := t.keepRestartable(); err != nil {
		return 0, s.unlessEnded(t, err, fn)
	}
	if err := t.finishOrphan(); err != nil {
		return 0, s.unlessEnded(t, err, fn)
	}
	return 0, fn(t, nil)
}

// awaitBriefly looks for a thread's stop without giving up the processor, for about as
// long as a stop takes where processors are free: on a busy machine the thread would
// be stopped until others have had their turn.
func awaitBriefly(tid int) {
	for range 64 {
		if _, ok, err := peek(tid); ok || err != nil {
			return
		}
	}
}

// unlessEnded makes the end of a thread that is killed in its stop no failure.
func (s *Stopped) unlessEnded(t *Thread, err error, fn func(*Thread, error) error) error {
	if errors.Is(err, ErrReleased) {
		return fn(t, err)
	}
	return err
}

// notSeized says why a thread cannot be seized; ErrReleased when it has ended.
func (s *Stopped) notSeized(tid int, cause error) error {
	ended := fmt.Errorf("process %d: thread %d: %w", s.p.pid, tid, ErrReleased)
	switch {
	case errors.Is(cause, unix.ESRCH):
		return ended
	case errors.Is(cause, ErrTraced):
		return cause
	}
	status, err := s.p.ThreadStatus(tid)
	if err != nil {
		return ended
	}
	if status.TracerPID != 0 {
		return checkTracer(s.p.pid, status)
	}
	if st, err := readStat(s.p.pid, tid); err != nil || st.ended() || st.worker() {
		return ended
	}
	if errors.Is(cause, unix.EPERM) {
		return notPermitted(s.p.pid, status, cause)
	}
	return fmt.Errorf("process %d: seize thread %d: %w", s.p.pid, tid, cause)
}

// rememberRestart is rememberRestarts for one thread; what is known of the others stays.
func (s *Stopped) rememberRestart(t *Thread) {
	if !t.haveRegs {
		return
	}
	before, known := s.p.restarted[t.TID]
	delete(s.p.restarted, t.TID)
	r := &t.regs
	call, waits := arch.waitsByBlock(r)
	if !waits {
		return
	}
	if s.p.restarted == nil {
		s.p.restarted = map[int]restartedCall{}
	}
	if call != unix.SYS_RESTART_SYSCALL {
		s.p.restarted[t.TID] = restartedCall{siteOf(r), call}
	} else if known && before.site == siteOf(r) {
		s.p.restarted[t.TID] = before
	}
}

// ReadUpTo reads memory with one system call (process_vm_readv) and returns how much
// of buf it filled: less where the memory ends. It allocates nothing.
func (p *Process) ReadUpTo(buf []byte, addr uint64) int {
	if len(buf) == 0 {
		return 0
	}
	local := [1]unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	remote := [1]unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}
	n, err := unix.ProcessVMReadv(p.pid, local[:], remote[:], 0)
	if errors.Is(err, unix.ESRCH) {
		n, err = unix.ProcessVMReadv(p.view(), local[:], remote[:], 0)
	}
	if err != nil {
		return 0
	}
	return n
}
