package process

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// waitsByBlock says so of a call that the kernel goes on with through restart_syscall(2).
func (host) waitsByBlock(r *Regs) (number uint64, ok bool) {
	number, _ = r.Syscall()
	return number, restartCode(r) == restartByBlock
}

func (host) inSyscall(_ *Thread, r *Regs) (number uint64, ok bool) { return r.Syscall() }

// rank goes by what the kernel has as the result of an interrupted call.
func (host) rank(_ *Thread, r *Regs) int {
	switch restartCode(r) {
	case restartSys, restartNoIntr:
		return 2
	case restartNoHand:
		return 3
	case restartByBlock:
		return 4
	}
	if _, in := r.Syscall(); in {
		return 1
	}
	return 0
}

// beginsAnew: the kernel is told to restart calls, and what for.
func (host) beginsAnew(*Thread, *Regs) bool    { return false }
func (host) endForHandler(*Thread, *Regs) bool { return false }

func (host) leaveSleep(_ *Thread, r *Regs) bool {
	if call, _ := r.Syscall(); restartCode(r) == 0 || !isSleep(call) {
		return false
	}
	r.LeaveSyscall()
	r.SetResult(0)
	return true
}

// noted: nothing has to be, the arguments stay in their registers, and the kernel is told to restart.
type noted struct {
	again bool
}

func (host) noteCall(t *Thread) { t.was = noted{} }

func (host) keepRestartable(t *Thread, regs *Regs) error {
	if restartCode(regs) == restartByBlock {
		return t.avoidRestartSyscall(regs)
	}
	call, in := regs.Syscall()
	if !in || regs.Result() != negative(int64(unix.EINTR)) {
		return nil
	}
	ends := endsWithEINTR[call] || slices.Contains(arch.endsWithEINTR(), call)
	if !ends && !(endsWithEINTROnSockets[call] && t.isSocket(regs.Arg(0))) {
		return nil
	}
	regs.SetResult(negative(restartNoHand))
	return t.SetRegs(regs)
}

func (host) resumable(t *Thread, r Regs) (back, frame Regs, err error) {
	back, frame = r, r
	code := restartCode(&r)
	if code == 0 {
		return back, frame, nil
	}
	number, _ := r.Syscall()
	if code == restartByBlock {
		if number, err = t.callInProgress(&r); err != nil {
			return back, frame, err
		}
		back.SetSyscall(number)
		back.SetResult(negative(restartNoHand))
	}
	frame.EnterSyscall(number)
	return back, frame, nil
}

// avoidRestartSyscall makes a call with a timeout start over where a seccomp filter
// forbids restart_syscall, by which the kernel would go on with the rest of it: it is
// for the stop alone that the thread would be killed there. Where the filter has come
// since and forbids the call itself, it ends with EINTR.
func (t *Thread) avoidRestartSyscall(regs *Regs) error {
	_, err := ptracePointer(unix.PTRACE_SECCOMP_GET_FILTER, t.TID, 0, nil)
	if errors.Is(err, unix.EINVAL) {
		return nil // no filter; and in strict mode nothing has a timeout
	}
	if allowed, err := t.SeccompAllows(unix.SYS_RESTART_SYSCALL); err == nil && allowed {
		return nil
	}
	number, err := t.callInProgress(regs)
	if err != nil {
		return nil // as the kernel has it
	}
	var args [6]uint64
	for i := range args {
		args[i] = regs.Arg(i)
	}
	regs.SetSyscall(number)
	regs.SetResult(negative(restartNoHand))
	if allowed, err := t.SeccompAllows(uintptr(number), args[:]...); err == nil && !allowed {
		regs.SetResult(negative(int64(unix.EINTR)))
	}
	return t.SetRegs(regs)
}

// callInProgress returns the number of the system call that r was stopped in,
// which was restart_syscall if it had been interrupted before.
func (t *Thread) callInProgress(r *Regs) (uint64, error) {
	if number, _ := r.Syscall(); number != unix.SYS_RESTART_SYSCALL {
		return number, nil
	}
	if number, ok := t.s.p.restartedCall(t.TID, r); ok {
		return number, nil
	}
	if number, ok := t.s.p.callBefore(r.PC()); ok {
		return number, nil
	}
	return 0, errNumberUnknown
}
