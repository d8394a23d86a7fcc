package process

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Nudge lets the thread run for some microseconds at a time, at most tries
// times, until its registers satisfy until, and says whether they do. The other
// threads stay where they are. It brings a thread out of a range of code
// without single-stepping, and is as safe as the stop itself. A signal that
// arrives is delivered: then the thread stands at its handler's entry, and the
// handler's frame holds the address that it will return to.
func (t *Thread) Nudge(tries int, until func(*Regs) bool) (bool, error) {
	for i := 0; ; i++ {
		regs, err := t.Regs()
		if err != nil {
			return false, err
		}
		if until(regs) {
			return true, nil
		}
		if i >= tries {
			return false, nil
		}
		if err := t.runBriefly(min(time.Duration(i)*2*time.Microsecond, 100*time.Microsecond)); err != nil {
			return false, err
		}
	}
}

func (t *Thread) runBriefly(d time.Duration) error {
	t.stopped = false
	if err := resume(t.TID, 0); err != nil {
		return t.fail("continue", err)
	}
	if d > 0 {
		sleep(d)
	}
	t.order()
	// All, for the thread may have made others.
	if err := t.s.settleAll(time.Now().Add(t.s.opts.timeout())); err != nil {
		return err
	}
	if t.ended {
		return t.fail("run", unix.ESRCH)
	}
	return nil
}

var (
	errStepSyscall = errors.New("the next instruction is a system call, which may block")
	errStepSignal  = errors.New("the instruction faults: its signal was delivered")
)

// stepMask blocks all signals but those that an instruction itself may raise.
const stepMask = allBlocks &^ (1<<(unix.SIGTRAP-1) | 1<<(unix.SIGSEGV-1) | 1<<(unix.SIGBUS-1) |
	1<<(unix.SIGILL-1) | 1<<(unix.SIGFPE-1) | 1<<(unix.SIGSYS-1))

// Step runs at most n instructions one by one until the registers satisfy until,
// and says whether they do. Signals wait meanwhile. System calls are not stepped
// over.
//
// Unlike everything else here Step is not proof against being killed: a SIGKILL
// between a step and our noticing it leaves the target with a SIGTRAP, which
// ends it, and one in the middle leaves its signals blocked. Prefer Nudge on a
// process that matters.
func (t *Thread) Step(n int, until func(*Regs) bool) (bool, error) {
	mask, err := t.SigMask()
	if err != nil {
		return false, err
	}
	regs, err := t.Regs()
	if err != nil {
		return false, err
	}
	if until(regs) {
		return true, nil
	}
	if err := t.SetSigMask(mask | stepMask); err != nil {
		return false, err
	}
	reached, err := t.steps(n, mask, until)
	if t.ended || errors.Is(err, errStepSignal) {
		return false, err
	}
	if maskErr := setSigMask(t.TID, mask); maskErr != nil {
		return false, errors.Join(err, t.fail("restore signal mask", maskErr))
	}
	// From the step's own signal stop to the kind of stop all else expects.
	t.stopped = false
	if settleErr := t.s.sendOn(t, report{event: -1}); settleErr != nil {
		return false, errors.Join(err, settleErr)
	}
	settleErr := t.s.settle(t, time.Now().Add(t.s.opts.timeout()))
	return reached && err == nil && settleErr == nil, errors.Join(err, settleErr)
}

func (t *Thread) steps(n int, mask uint64, until func(*Regs) bool) (bool, error) {
	for range n {
		regs, err := t.Regs()
		if err != nil {
			return false, err
		}
		if restartCode(regs) != 0 || t.s.p.holds(regs.PC(), arch.syscallCode()[:arch.syscallSize()]) {
			return false, t.fail("step", errStepSyscall)
		}
		if err := t.stepOnce(mask); err != nil {
			return false, err
		}
		regs, err = t.Regs()
		if err != nil {
			return false, err
		}
		if until(regs) {
			return true, nil
		}
	}
	return false, nil
}

func (t *Thread) stepOnce(mask uint64) error {
	goOn := func() error {
		if err := ptrace(unix.PTRACE_SINGLESTEP, t.TID, 0, 0); err != nil {
			return t.fail("step", err)
		}
		return nil
	}
	t.stopped = false
	if err := goOn(); err != nil {
		return err
	}
	var faulted error
	err := t.s.await(t, time.Now().Add(t.s.opts.timeout()), func(r report) (bool, error) {
		switch {
		case r.event == unix.PTRACE_EVENT_STOP && faulted != nil:
			return true, nil
		case r.event == unix.PTRACE_EVENT_STOP:
			return false, goOn() // an order to stop was still pending, or SIGSTOP came
		case r.event == 0 && r.signal == int(unix.SIGTRAP) && t.trapIsOurs():
			return true, nil
		case r.event == 0 && isFault(r.signal):
			// The handler's frame keeps the mask as it is now.
			if err := setSigMask(t.TID, mask); err != nil {
				return false, t.fail("restore signal mask", err)
			}
			faulted = t.fail("step", errStepSignal)
		}
		return false, t.s.sendOn(t, r)
	})
	if err == nil && t.ended {
		return t.fail("step", unix.ESRCH)
	}
	return errors.Join(err, faulted)
}

const (
	trapBreakpoint = 1 // TRAP_BRKPT, for a step over a system call
	trapTrace      = 2 // TRAP_TRACE
)

// trapIsOurs tells a step from an int3 of the target's own or a SIGTRAP sent to it.
func (t *Thread) trapIsOurs() bool {
	info, err := getSigInfo(t.TID)
	return err == nil && (info.code == trapTrace || info.code == trapBreakpoint)
}
