package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A whereabout is what has become of a thread in a function.
type whereabout int

const (
	underway  whereabout = iota
	isHome               // about to restore itself
	hasFailed            // see failure
	isStopped            // by our order, somewhere
	hasLeft              // by a jump out of the function
	isOverdue
)

// graceHome is how long a thread may take to obey an order to stop or to restore itself; it takes microseconds but for busy machines, and
// for calls of the kernel that nothing interrupts.
const graceHome = 5 * time.Second

// run follows the thread until it is back where it was, or is left.
func (v *invocation) run(ctx context.Context) error {
	deadline := v.begun.Add(v.call.Timeout)
	done := ctx.Done()
	for {
		where, err := v.wait(done, deadline)
		switch {
		case err != nil:
			return err
		case where == isHome && v.asks:
			if err := v.answered(); err != nil {
				return err
			}
			continue
		case where != isOverdue:
			return v.end(where)
		}
		again, err := v.overdue()
		if err != nil || v.t.ended {
			return err
		}
		// Once asked for, the end is no order any more: what was decided holds.
		done, deadline = nil, time.Now().Add(again)
	}
}

// end deals with a thread that stands where its call ends.
func (v *invocation) end(where whereabout) error {
	switch where {
	case isHome:
		if err := v.take(); err != nil {
			return err
		}
		return v.putBack(nil)
	case hasFailed:
		return v.putBack(v.failure)
	case hasLeft:
		return v.left()
	}
	return v.leave()
}

// wait returns what the thread is at, isOverdue when nothing has happened until the deadline or done.
func (v *invocation) wait(done <-chan struct{}, deadline time.Time) (whereabout, error) {
	t := v.t
	for tries := 0; ; tries++ {
		r, ok, err := peek(t.TID)
		switch {
		case errors.Is(err, unix.ECHILD):
			t.stopped, t.ended = false, true
			return 0, v.gone()
		case err != nil:
			return 0, fmt.Errorf("process %d: wait for thread %d: %w", t.s.p.pid, t.TID, err)
		case ok && r.exited:
			t.markEnded()
			return 0, v.gone()
		case ok:
			where, err := v.judge(r)
			if where != underway || err != nil {
				return where, err
			}
			tries = -1
			continue
		}
		if tries&15 == 15 {
			select {
			case <-done:
				return isOverdue, nil
			default:
			}
			if time.Now().After(deadline) {
				return isOverdue, nil
			}
		}
		pause(tries)
	}
}

func (v *invocation) gone() error {
	return fmt.Errorf("process %d: thread %d: it has ended in the function", v.t.s.p.pid, v.t.TID)
}

// judge looks at a stop and sends the thread on, if it is none to end with.
func (v *invocation) judge(r report) (whereabout, error) {
	t := v.t
	switch {
	case r.event == unix.PTRACE_EVENT_STOP && v.ordered:
		t.groupStop = r.signal != int(unix.SIGTRAP)
		return v.standing()
	case r.event == unix.PTRACE_EVENT_EXEC:
		takeExec(t.TID) // kept from it above; by another name it is what the function wanted
	case r.event == 0 && r.signal == sysStop:
		return v.syscall()
	case r.event == 0:
		if v.failure = v.faulted(r.signal); v.failure != nil {
			return hasFailed, nil
		}
	}
	return v.pass(r)
}

// pass lets the thread run on from a stop. Any stop has taken an order to stop away.
func (v *invocation) pass(r report) (whereabout, error) {
	if v.ordered {
		_ = interrupt(v.t.TID)
	}
	return underway, v.t.pass(unix.PTRACE_SYSCALL, r)
}

// standing is a stop by our order.
func (v *invocation) standing() (whereabout, error) {
	v.ordered = false
	v.t.stopped, v.t.haveRegs = true, false
	regs, err := v.t.Regs()
	if err != nil {
		return 0, err
	}
	if v.outOf(regs) {
		return hasLeft, nil
	}
	return isStopped, nil
}

// outOf says whether the stack pointer is above the call's frame in the same stack: the function was left by longjmp or an exception.
// On another stack is a coroutine that it has switched to, which may switch back.
func (v *invocation) outOf(r *Regs) bool { return r.SP() > v.f.end && r.SP() < v.stackEnd }

// syscall is a stop at the beginning or the end of a system call.
func (v *invocation) syscall() (whereabout, error) {
	t := v.t
	regs, err := getRegs(t.TID)
	switch {
	case errors.Is(err, unix.ESRCH):
		return underway, nil // killed; that is seen next
	case err != nil:
		return 0, t.fail("read registers", err)
	}
	if !arch.atSyscallEntry(&regs) {
		return v.pass(report{signal: sysStop})
	}
	if arch.isHome(&regs, v.f) {
		t.stopped = true
		return isHome, nil
	}
	if v.outOf(&regs) {
		t.stopped, t.regs, t.haveRegs = true, regs, true
		return hasLeft, nil
	}
	if v.failure = v.look(&regs); v.failure != nil {
		return hasFailed, nil
	}
	return v.pass(report{signal: sysStop})
}

// look decides on a system call of the function's.
func (v *invocation) look(r *Regs) error {
	number, _ := r.Syscall()
	c := Call{Number: uintptr(number)}
	for i := range c.Args {
		c.Args[i] = r.Arg(i)
	}
	switch number {
	case unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		return fmt.Errorf("%w: system call %s", ErrFunctionEnds, syscallName(number))
	case unix.SYS_RESTART_SYSCALL, unix.SYS_RT_SIGRETURN, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP:
		v.forgets = true
	case unix.SYS_FUTEX:
		v.forgets = v.forgets || c.Args[3] != 0
	default:
		v.forgets = v.forgets || arch.forgetsTimeout(number)
	}
	if err := v.filtered(c, r.PC()); err != nil {
		return fmt.Errorf("%w: %w", ErrFunctionEnds, err)
	}
	return nil
}

// faulted returns an error for a signal that means that the function has failed.
func (v *invocation) faulted(signal int) error {
	info, err := getSigInfo(v.t.TID)
	if err != nil {
		return nil //nolint:nilerr // killed; that is seen next
	}
	const byThread = -6 // SI_TKILL: as raise and abort do
	if !(isFault(signal) && info.code > 0 || signal == int(unix.SIGABRT) && info.code == byThread) {
		return nil
	}
	e := &FunctionFaultError{Signal: signal}
	if regs, err := getRegs(v.t.TID); err == nil {
		e.PC = regs.PC()
	}
	if info.code > 0 {
		e.Address = uint64(uint32(info.pid)) | uint64(uint32(info.uid))<<32
	}
	return e
}

// overdue stops the thread and asks what to do. It returns for how long to go on waiting.
func (v *invocation) overdue() (time.Duration, error) {
	t := v.t
	v.ordered = true
	_ = interrupt(t.TID) // fails when it has ended, which wait sees
	where, err := v.wait(nil, time.Now().Add(graceHome))
	v.ordered = false
	switch {
	case err != nil:
		return 0, err
	case where == isHome && v.asks:
		return time.Millisecond, v.answered() // it is overdue at once
	case where != isStopped:
		return 0, v.end(where)
	}
	o := Overdue{}
	if v.call.Overdue != nil {
		o = v.call.Overdue(t)
	}
	switch o.Do {
	case PutBack:
		return 0, v.putBack(ErrPutBack)
	case AskAgain:
		return max(o.After, time.Millisecond), v.goOn()
	}
	return 0, v.leave()
}
