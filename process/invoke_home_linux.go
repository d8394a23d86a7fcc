package process

import (
	"fmt"
	"time"
)

// putBack puts the thread, which stands somewhere on its way, back to where it was and lets it go. First it is one that would restore
// itself at once, beginning its own system call anew. It is stopped before it does, where the kernel can be made to go on with that call
// instead, and a signal that has come meanwhile ends the call as it would have.
func (v *invocation) putBack(why error) error {
	t := v.t
	if err := v.standHome(); err != nil {
		return err
	}
	v.restoreErrno()
	if err := arch.setVector(t.TID, v.vector); err != nil {
		return t.fail("restore vector state", err)
	}
	if err := setSigMask(t.TID, v.mask); err != nil {
		return t.fail("restore signal mask", err)
	}
	back := v.own
	if v.waitsAnew() {
		back = v.back
	}
	if err := setRegs(t.TID, back); err != nil {
		return t.fail("restore registers", err)
	}
	if arch.beginsAnew(t, &back) {
		t.stopped = true
		t.reenter()
		return v.away(why)
	}
	return v.letGo(why)
}

// standHome makes the thread one that would restore itself at once, in a stop that isn't one of a system call's.
func (v *invocation) standHome() error {
	t := v.t
	if err := setRegs(t.TID, v.f.home); err != nil {
		return t.fail("write registers", err)
	}
	t.stopped = false
	if err := t.s.sendOn(t, report{event: -1}); err != nil {
		return err
	}
	if err := t.s.settle(t, time.Now().Add(graceHome)); err != nil {
		return err
	}
	if t.ended {
		return v.gone()
	}
	return nil
}

// answered keeps errno, and sends the thread on to the function. Until its registers change it would restore itself.
func (v *invocation) answered() error {
	t := v.t
	v.asks = false
	regs, err := getRegs(t.TID)
	if err != nil {
		return t.fail("read registers", err)
	}
	at := arch.returned(&regs, nil).Integer[0]
	if _, err := t.s.p.ReadAt(v.errno[:], at); err == nil {
		v.errnoAt = at
	}
	if !arch.setsAllAtSyscalls() {
		if err := v.standHome(); err != nil {
			return err
		}
	}
	if err := arch.setVector(t.TID, v.f.vector); err != nil {
		return t.fail("write vector state", err)
	}
	if err := setRegs(t.TID, v.f.start); err != nil {
		return t.fail("write registers", err)
	}
	return v.goOn()
}

// restoreErrno gives errno back what it was. A memory that is gone, or can't be written, has none.
func (v *invocation) restoreErrno() {
	var now [4]byte
	if v.errnoAt == 0 {
		return
	}
	if _, err := v.t.s.p.ReadAt(now[:], v.errnoAt); err == nil && now != v.errno {
		_, _ = v.t.s.p.WriteAt(v.errno[:], v.errnoAt)
	}
}

// take reads the result.
func (v *invocation) take() error {
	t := v.t
	regs, err := getRegs(t.TID)
	if err != nil {
		return t.fail("read registers", err)
	}
	vector, err := arch.getVector(t.TID)
	if err != nil {
		return t.fail("read vector state", err)
	}
	out := arch.returned(&regs, vector)
	out.Took = time.Since(v.begun)
	out.WaitsAnew = v.waitsAnew()
	if v.call.Returned != nil {
		v.call.Returned(out)
	}
	return nil
}

func (v *invocation) waitsAnew() bool { return arch.waitsAnew(v.t, &v.own, v.forgets) }

// leave lets the thread go in the function, with its own signal mask: it may be there for long.
func (v *invocation) leave() error {
	t := v.t
	if !t.stopped { // in the kernel; it is let go when this OS thread ends
		return fmt.Errorf("process %d: thread %d: %w", t.s.p.pid, t.TID, ErrLeftInFunction)
	}
	_ = setSigMask(t.TID, v.mask)
	return v.letGo(ErrLeftInFunction)
}

// left lets a thread go that has jumped out of the function.
func (v *invocation) left() error {
	_ = setSigMask(v.t.TID, v.mask)
	return v.letGo(ErrFunctionLeft)
}

// letGo detaches the thread, which can't be used by us any more.
func (v *invocation) letGo(err error) error {
	t := v.t
	t.endIfDue()
	if detachErr := detach(t.TID, 0); detachErr != nil {
		t.s.leftover = true // it was killed
	}
	return v.away(err)
}

// away notes that the thread has been let go, and passes an error on.
func (v *invocation) away(err error) error {
	t := v.t
	// Where its next stop has to know the number of a call that it goes on with, see rememberRestart.
	t.stopped, t.ended, t.regs, t.haveRegs = false, true, v.own, true
	if err != nil {
		return fmt.Errorf("process %d: thread %d: %w", t.s.p.pid, t.TID, err)
	}
	return nil
}
