package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Syscall makes the target perform one system call and returns its result; a
// failure wraps the syscall.Errno. See SyscallBatch.
func (s *Stopped) Syscall(number uintptr, args ...uint64) (uint64, error) {
	call := Call{Number: number}
	if len(args) > len(call.Args) {
		return 0, fmt.Errorf("system call %s: %d arguments, at most %d", syscallName(uint64(number)), len(args), len(call.Args))
	}
	copy(call.Args[:], args)
	results, err := s.SyscallBatch([]Call{call})
	if err != nil {
		return 0, err
	}
	if err := results[0].Err(); err != nil {
		return 0, fmt.Errorf("process %d: remote system call %s: %w", s.p.pid, syscallName(uint64(number)), err)
	}
	return results[0].Value, nil
}

// SyscallBatch makes the target perform up to MaxBatch system calls one after
// the other, each whatever the one before has returned, with a single stop. One
// of the stopped threads makes them, and no signal handler runs meanwhile. The
// calls must not block, must not end, fork or replace the process, and must
// leave the thread's stack and signal state alone.
//
// At no instant does the target depend on us: if we are killed, the thread
// finishes the calls and goes on where it was. What an interrupted call of that
// thread had left of a timeout is lost, it starts over with the whole; threads
// for which that is not so are preferred.
//
// Should we be held up for half a second in the middle, that thread has gone on
// by itself for a moment: rely on no registers read before. The results are lost
// then, ErrLate says so; all calls have been made.
//
// The errors, with nothing done, are ErrSeccomp, ErrNoSafeThread and
// ErrNoGadget. After any other error the calls may have been made in part.
func (s *Stopped) SyscallBatch(calls []Call) ([]SyscallResult, error) {
	if s.release {
		return nil, fmt.Errorf("process %d: %w", s.p.pid, ErrReleased)
	}
	if err := checkCalls(calls); err != nil {
		return nil, fmt.Errorf("process %d: remote system calls: %w", s.p.pid, err)
	}
	g, err := s.p.findGadgets()
	if errors.Is(err, ErrNoGadget) && s.opts.UnsafeSyscall && g.syscall != 0 {
		return s.unsafeBatch(g, calls)
	}
	if errors.Is(err, ErrNoGadget) {
		if own, missing := s.p.laidGadgets(); missing == nil {
			g, err = own, nil
		}
	}
	if err != nil {
		return nil, err
	}
	var reasons []error
	for _, t := range s.candidates() {
		results, err := t.makeCalls(g, calls)
		if !errors.Is(err, errUnfit) {
			return results, err
		}
		reasons = append(reasons, err)
	}
	return nil, s.noThread(reasons)
}

func checkCalls(calls []Call) error {
	if len(calls) == 0 || len(calls) > MaxBatch {
		return fmt.Errorf("%d calls, want 1 to %d", len(calls), MaxBatch)
	}
	for _, c := range calls {
		if len(c.Data) > MaxCallData || c.DataArg < 0 || c.DataArg >= len(c.Args) {
			return fmt.Errorf("%s: %d bytes of data for argument %d, want at most %d and 0 to %d",
				syscallName(uint64(c.Number)), len(c.Data), c.DataArg, MaxCallData, len(c.Args)-1)
		}
	}
	return nil
}

// noThread sums up why each thread was unfit. If all are for seccomp, so is the error.
func (s *Stopped) noThread(reasons []error) error {
	for _, r := range reasons {
		var seccomp *SeccompError
		if errors.As(r, &seccomp) {
			return fmt.Errorf("process %d: %w", s.p.pid, seccomp)
		}
	}
	if len(reasons) > 0 {
		return fmt.Errorf("process %d: %w (of %d; the first: %w); try again a little later", s.p.pid, ErrNoSafeThread, len(reasons), reasons[0])
	}
	return fmt.Errorf("process %d: %w; try again a little later", s.p.pid, ErrNoSafeThread)
}

// makeCalls runs the calls on t. errUnfit means that nothing was done.
func (t *Thread) makeCalls(g *gadgets, calls []Call) ([]SyscallResult, error) {
	sleep, err := t.allowsChain(g, calls)
	if err != nil {
		return nil, err
	}
	if err := t.leaveRestartableSequence(); err != nil {
		return nil, unfit(t, err)
	}
	run, err := t.prepare(g, calls, sleep)
	if err != nil {
		return nil, unfit(t, err)
	}
	if _, err := t.s.p.ReadAt(run.below, run.chain.base); err != nil {
		return nil, unfit(t, err)
	}
	if _, err := t.s.p.WriteAt(run.chain.bytes, run.chain.base); err != nil {
		return nil, unfit(t, err)
	}
	if err := g.laid.lay(t.s.p); err != nil {
		return nil, errors.Join(err, g.laid.take(t.s.p))
	}
	run.laid = g.laid
	results, err := run.do(calls)
	return results, errors.Join(err, run.clear())
}

// A run is one chain on its way through a thread, and what the thread was before.
type run struct {
	t        *Thread
	chain    *chain
	back     Regs
	vector   []byte
	mask     uint64
	below    []byte // what was in the chain's place
	laid     *laid
	restored bool // by us, and the thread has not run since
}

// clear puts back what was in the chain's place. As a rule that is nobody's, but
// coroutines may have their stacks there. Where the thread has restored itself it has
// run on, and may use the place.
func (r *run) clear() error {
	if !r.restored || !r.t.stopped {
		return nil
	}
	if _, err := r.t.s.p.WriteAt(r.below, r.chain.base); err != nil {
		return r.t.fail("restore what was below its stack", err)
	}
	return r.laid.take(r.t.s.p)
}

func (t *Thread) prepare(g *gadgets, calls []Call, sleep sleepCall) (*run, error) {
	regs, err := t.Regs()
	if err != nil {
		return nil, err
	}
	mask, err := t.SigMask()
	if err != nil {
		return nil, err
	}
	vector, err := t.XState()
	if err != nil {
		return nil, err
	}
	back, rest, err := t.resumable(*regs)
	if err != nil {
		return nil, err
	}
	c, err := arch.chain(chainPlan{
		stack: regs.SP(), calls: calls, rest: rest, mask: mask, vector: vector, sleep: sleep, cookie: newCookie(), gadgets: g,
	})
	if err != nil {
		return nil, err
	}
	if err := t.ownsStack(*regs, c.base); err != nil {
		return nil, err
	}
	return &run{t: t, chain: c, back: back, vector: vector, mask: mask, below: make([]byte, len(c.bytes))}, nil
}

// do sends the thread through the chain, takes the results and puts the thread
// back where it was.
func (r *run) do(calls []Call) ([]SyscallResult, error) {
	t := r.t
	deadline := time.Now().Add(t.s.opts.timeout())
	// The order matters: with the chain's registers and its own mask the thread
	// is whole at any time; with its own registers and our mask it is not.
	if err := t.SetRegs(&r.chain.start); err != nil {
		return nil, err
	}
	if err := setSigMask(t.TID, allBlocks); err != nil {
		return nil, t.fail("block signals", err)
	}
	t.stopped = false
	if err := resume(t.TID, 0); err != nil {
		return nil, t.fail("continue", err)
	}
	cells, waitErr := r.wait(deadline)
	if waitErr == nil {
		waitErr = r.readData(calls)
	}
	if err := r.stop(); err != nil {
		return nil, errors.Join(waitErr, err)
	}
	if waitErr != nil {
		return nil, waitErr
	}
	if !r.restored && !t.ended {
		return nil, fmt.Errorf("process %d: thread %d: %w", t.s.p.pid, t.TID, ErrLate)
	}
	results := make([]SyscallResult, len(calls))
	for i := range results {
		results[i] = resultOf(binary.LittleEndian.Uint64(cells[8*i:]))
	}
	return results, nil
}

var errChain = errors.New("remote system call did not run to its end")

// wait looks at the last cell until its result is there.
func (r *run) wait(deadline time.Time) ([]byte, error) {
	t := r.t
	cells := make([]byte, 8*len(r.chain.data))
	for tries := 0; ; tries++ {
		if _, err := t.s.p.ReadAt(cells, r.chain.cells); err != nil {
			return nil, err
		}
		if binary.LittleEndian.Uint64(cells[len(cells)-8:]) != cellEmpty {
			return cells, nil
		}
		report, ok, err := peek(t.TID)
		switch {
		case errors.Is(err, unix.ECHILD):
			t.ended = true
			return nil, t.fail("remote system call", unix.ESRCH)
		case err != nil:
			return nil, t.fail("wait", err)
		case ok && report.exited:
			t.markEnded()
			return nil, t.fail("remote system call", unix.ESRCH)
		case ok:
			if err := r.handle(report); err != nil {
				return nil, err
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("process %d: thread %d: %w in %v", t.s.p.pid, t.TID, errChain, t.s.opts.timeout())
		}
		pause(tries)
	}
}

// handle deals with a stop on the way: SIGSTOP and job control, which cannot be
// blocked, an order to stop that was still pending, or a fault in the chain.
func (r *run) handle(rep report) error {
	t, signal := r.t, 0
	switch {
	case rep.event == unix.PTRACE_EVENT_STOP:
		t.groupStop = rep.signal != int(unix.SIGTRAP)
	case rep.event == 0 && isFault(rep.signal):
		return fmt.Errorf("process %d: thread %d: %w: signal %d", t.s.p.pid, t.TID, errChain, rep.signal)
	case rep.event == 0:
		signal = rep.signal
	}
	if err := resume(t.TID, signal); err != nil {
		return t.fail("continue", err)
	}
	return nil
}

func isFault(signal int) bool {
	switch unix.Signal(signal) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGSYS, unix.SIGTRAP:
		return true
	}
	return false
}

func (r *run) readData(calls []Call) error {
	for i, addr := range r.chain.data {
		if addr == 0 {
			continue
		}
		if _, err := r.t.s.p.ReadAt(calls[i].Data, addr); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the chain and restores the thread, vector state and mask first: as
// long as the chain's registers are in place, the chain would do the same.
func (r *run) stop() error {
	t := r.t
	if t.ended {
		return nil
	}
	was := t.was
	t.order()
	deadline := time.Now().Add(t.s.opts.timeout())
	err := t.s.await(t, deadline, func(rep report) (bool, error) {
		switch {
		case rep.event == unix.PTRACE_EVENT_STOP:
			t.groupStop = rep.signal != int(unix.SIGTRAP)
			return true, nil
		case rep.event == 0 && isFault(rep.signal) && r.inChain():
			// The fault is the chain's: the thread never hears of it.
			if err := r.restore(); err != nil {
				return false, err
			}
			return false, t.s.sendOn(t, report{event: -1})
		}
		return false, t.s.sendOn(t, rep)
	})
	if err != nil || t.ended {
		return err
	}
	if r.inChain() {
		t.was = was
		return r.restore()
	}
	// It has restored itself, because it was faulted back above or since we were
	// held up for longer than its sleep. Then it has run on a little, and may
	// even have made other threads.
	if err := t.keepRestartable(); err != nil {
		return err
	}
	return t.s.settleAll(deadline)
}

// inChain says whether the thread is still within the chain.
func (r *run) inChain() bool {
	regs, err := getRegs(r.t.TID)
	if err != nil || regs.SP() < r.chain.base || regs.SP() > r.chain.end {
		return false
	}
	cookie, ok := arch.cookie(&regs)
	return ok && cookie == r.chain.cookie
}

func (r *run) restore() error {
	t := r.t
	if err := arch.setVector(t.TID, r.vector); err != nil {
		return t.fail("restore vector state", err)
	}
	if err := setSigMask(t.TID, r.mask); err != nil {
		return t.fail("restore signal mask", err)
	}
	if err := setRegs(t.TID, r.back); err != nil {
		return t.fail("restore registers", err)
	}
	t.regs, t.haveRegs = r.back, t.stopped
	r.restored = t.stopped
	t.anew = arch.beginsAnew(t, &r.back)
	return nil
}
