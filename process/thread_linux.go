package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A Thread is one thread of a stopped process.
type Thread struct {
	TID int // as seen from here

	s         *Stopped
	regs      Regs
	haveRegs  bool
	stopped   bool
	ended     bool
	ordered   bool // it was told to stop, by us or since it was born to one that we trace, and hasn't been seen to
	groupStop bool
	anew      bool   // it begins its system call again when it is let go, see reenter
	returnsTo uint64 // see ReturnsTo
	was       noted  // see noteCall
}

func (t *Thread) check() error {
	if t.stopped && !t.s.release {
		return nil
	}
	return fmt.Errorf("process %d: thread %d: %w", t.s.p.pid, t.TID, ErrReleased)
}

func (t *Thread) fail(doing string, err error) error {
	if errors.Is(err, unix.ESRCH) {
		err = ErrReleased // killed meanwhile
	}
	return fmt.Errorf("process %d: thread %d: %s: %w", t.s.p.pid, t.TID, doing, err)
}

// Info reads the thread's name, state and IDs.
func (t *Thread) Info() (ThreadInfo, error) { return t.s.p.threadInfo(t.TID) }

// GroupStopped says whether the process was stopped by a job-control signal
// (SIGSTOP and the like) besides being stopped by us.
func (t *Thread) GroupStopped() bool { return t.groupStop }

// Regs returns the thread's general registers. They are read once; the result
// is the caller's.
func (t *Thread) Regs() (*Regs, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if !t.haveRegs {
		regs, err := getRegs(t.TID)
		if err != nil {
			return nil, t.fail("read registers", err)
		}
		t.regs, t.haveRegs = regs, true
	}
	regs := t.regs
	return &regs, nil
}

// SetRegs changes the thread's general registers. While a system call waits to
// be restarted (InSyscall), the kernel moves the PC back onto the call when the thread
// goes on; Regs.LeaveSyscall prevents that.
func (t *Thread) SetRegs(regs *Regs) error {
	if err := t.check(); err != nil {
		return err
	}
	if err := setRegs(t.TID, *regs); err != nil {
		return t.fail("write registers", err)
	}
	t.regs, t.haveRegs = *regs, true
	return nil
}

// ThreadPointer returns the thread pointer.
func (t *Thread) ThreadPointer() (uint64, error) {
	regs, err := t.Regs()
	if err != nil {
		return 0, err
	}
	return regs.ThreadPointer(), nil
}

// InSyscall says whether the thread was stopped at a system call, and which.
func (t *Thread) InSyscall() (number uint64, in bool, err error) {
	regs, err := t.Regs()
	if err != nil {
		return 0, false, err
	}
	number, in = arch.inSyscall(t, regs)
	return number, in, nil
}

// XState returns the vector and floating-point state as ptrace gives it. On x86-64 that
// is the standard format of XSAVE (Intel SDM vol. 1 §13.4).
func (t *Thread) XState() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	state, err := arch.getVector(t.TID)
	if err != nil {
		return nil, t.fail("read vector state", err)
	}
	return state, nil
}

// SetXState sets what XState has returned.
func (t *Thread) SetXState(state []byte) error {
	if err := t.check(); err != nil {
		return err
	}
	if err := arch.setVector(t.TID, state); err != nil {
		return t.fail("write vector state", err)
	}
	return nil
}

// SigMask returns the blocked signals: signal n is bit n-1.
func (t *Thread) SigMask() (uint64, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	mask, err := getSigMask(t.TID)
	if err != nil {
		return 0, t.fail("read signal mask", err)
	}
	return mask, nil
}

// SetSigMask sets the blocked signals. A caller that is killed before it has
// put the old mask back leaves the new one in place.
func (t *Thread) SetSigMask(mask uint64) error {
	if err := t.check(); err != nil {
		return err
	}
	if err := setSigMask(t.TID, mask); err != nil {
		return t.fail("write signal mask", err)
	}
	return nil
}
