package process

import (
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// On arm64 the kernel prepares an interrupted system call's restart before it stops for a tracer (arch/arm64/kernel/signal.c, do_signal): the
// thread seems to be in front of the call, with all its arguments, and in none. What the kernel means to do it keeps to itself: if the PC is
// still there when the thread goes on it may make it end with EINTR for a handler, or go on by restart_syscall. So nothing has to be done
// for a thread that is let go as it was, and one that has made a chain begins its call anew.

// atCall says whether a thread is in front of a system call, by its code.
func (t *Thread) atCall(r *Regs) bool { return t.s.p.holds(r.PC(), words(insnSVC)) }

func (host) waitsByBlock(r *Regs) (number uint64, ok bool) {
	number = r.Regs[8]
	return number, number == unix.SYS_RESTART_SYSCALL || goesOnByBlock[number]
}

// resumable is for a thread that goes on by restart_syscall: the chain's own sleep makes the kernel forget what with.
func (h host) resumable(t *Thread, r Regs) (back, frame Regs, err error) {
	if r.Regs[8] == unix.SYS_RESTART_SYSCALL && t.atCall(&r) {
		number, ok := t.s.p.restartedCall(t.TID, &r)
		if !ok {
			number, ok = t.s.p.callBefore(r.PC() + h.syscallSize())
		}
		if !ok {
			return r, r, errNumberUnknown
		}
		r.Regs[8] = number
	}
	return r, r, nil
}

// rank says how fit a thread is for a chain, 0 to 5: one that waits begins anew, with the whole of a timeout.
func (host) rank(t *Thread, r *Regs) int {
	switch number := r.Regs[8]; {
	case !t.atCall(r):
		return 0
	case number == unix.SYS_RESTART_SYSCALL || goesOnByBlock[number]:
		return 4
	case endsForHandlers[number], t.wasIn(r):
		return 3
	}
	return 2
}

// endsForHandlers are calls that end when a handler has run (ERESTARTNOHAND). Begun anew by a chain, they don't notice one that runs before.
var endsForHandlers = map[uint64]bool{
	unix.SYS_PPOLL: true, unix.SYS_PSELECT6: true, unix.SYS_RT_SIGSUSPEND: true,
}

// inSyscall says so of a thread that is in front of a call: as a rule it was in it.
func (host) inSyscall(t *Thread, r *Regs) (number uint64, ok bool) { return r.Regs[8], t.atCall(r) }

// beginsAnew says whether a thread with these registers begins a system call: the kernel doesn't know that it has been in it before. To stop it
// there helps no call that stops end.
func (host) beginsAnew(t *Thread, r *Regs) bool { return !t.wasIn(r) && t.atCall(r) }

// wasIn says whether a thread is in front of the call that our stop has ended.
func (t *Thread) wasIn(r *Regs) bool {
	w := &t.was
	return w.again && r.Pc == w.PC-arch.syscallSize() && r.Sp == w.SP && r.Regs[8] == w.Number
}

// endForHandler ends the call that a thread is in front of, for a handler that is about to run. Where the thread has already been in it again,
// the kernel would do the same.
func (h host) endForHandler(t *Thread, r *Regs) bool {
	if !t.wasIn(r) && !endsForHandlers[r.Regs[8]] || !t.atCall(r) {
		return false
	}
	r.SetResult(negative(int64(unix.EINTR)))
	r.Pc += h.syscallSize()
	return true
}

// leaveSleep takes a thread out of the sleep at a chain's end.
func (h host) leaveSleep(t *Thread, r *Regs) bool {
	if !isSleep(r.Regs[8]) || !t.s.p.holds(r.PC(), words(insnSVC, insnRET)) {
		return false
	}
	r.Pc += h.syscallSize()
	r.SetResult(0)
	return true
}

// keepRestartable makes a thread begin its call again that our stop has ended with EINTR. Its first argument is
// known from before. A thread to which a signal is to be delivered, or whose call may have ended for one, is left alone.
func (h host) keepRestartable(t *Thread, regs *Regs) error {
	if t.atCall(regs) {
		return h.avoidRestartSyscall(t, regs)
	}
	number := regs.Regs[8]
	if regs.Result() != negative(int64(unix.EINTR)) || !endsForStops(number) || !t.s.p.holds(regs.PC()-h.syscallSize(), words(insnSVC)) {
		return nil
	}
	if due, err := t.signalsDue(); err != nil || due {
		return nil
	}
	first, known := t.firstArgument(regs)
	if !known || !t.waitsAt(first, number) {
		return nil
	}
	regs.Regs[0] = first
	regs.Pc -= h.syscallSize()
	t.was.again = true
	return t.SetRegs(regs)
}

// endsForStops says whether a stop may end a call with EINTR.
func endsForStops(number uint64) bool { return endsWithEINTR[number] || endsWithEINTROnSockets[number] }

// noted is what is known of a thread's system call from just before a stop.
type noted struct {
	Waiting
	waits uint64 // how often the thread had waited before, see Status.Waits
	again bool   // the call begins again, though our stop has ended it
}

// noteCall notes in which call a thread is that is about to be stopped, if the stop may end it: its first argument is overwritten by the
// result then, and not every kernel tells what it was.
func (host) noteCall(t *Thread) {
	t.was = noted{}
	if w, err := t.s.p.WaitingAt(t.TID); err != nil || !w.InSyscall || !endsForStops(w.Number) {
		return
	}
	status, err := readStatus(t.s.p.pid, t.TID)
	if err != nil {
		return
	}
	if w, err := t.s.p.WaitingAt(t.TID); err == nil {
		t.was.Waiting, t.was.waits = w, status.Waits
	}
}

// firstArgument is x0 as it was when the thread called the kernel, if it was in the same call just before it was stopped. What takes another
// file's data, or another semaphore, in a loop would be the same but for that argument: there the thread must have waited for nothing else since.
func (t *Thread) firstArgument(regs *Regs) (uint64, bool) {
	w := &t.was
	if !w.InSyscall || w.Number != regs.Regs[8] || w.PC != regs.PC() || w.SP != regs.SP() || !slices.Equal(w.Args[1:], regs.Regs[1:len(w.Args)]) {
		return 0, false
	}
	switch w.Number {
	case unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_RT_SIGTIMEDWAIT:
		return w.Args[0], true
	}
	status, err := readStatus(t.s.p.pid, t.TID)
	return w.Args[0], err == nil && status.Waits == w.waits+1 // for its stop
}

// waitsAt says whether that is a file for which the call may have ended without a signal.
func (t *Thread) waitsAt(fd, number uint64) bool {
	switch number {
	case unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2:
		link, err := os.Readlink(taskPath(t.s.p.pid, t.TID, "fd/"+strconv.Itoa(int(int32(fd)))))
		return err == nil && link == "anon_inode:[eventpoll]"
	case unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_IO_GETEVENTS, unix.SYS_IO_PGETEVENTS, unix.SYS_IO_URING_ENTER:
		return true
	}
	return t.isSocket(fd)
}

// avoidRestartSyscall makes a call with a timeout start over where a seccomp filter forbids restart_syscall, by which the kernel would go on
// with the rest of it. Elsewhere than in front of the call, the kernel leaves the thread alone: it goes to the instruction that sets the
// number, or the call ends with EINTR.
func (h host) avoidRestartSyscall(t *Thread, regs *Regs) error {
	number := regs.Regs[8]
	if _, waits := h.waitsByBlock(regs); !waits {
		return nil
	}
	_, err := ptracePointer(unix.PTRACE_SECCOMP_GET_FILTER, t.TID, 0, nil)
	if errors.Is(err, unix.EINVAL) {
		return nil // no filter; and in strict mode nothing has a timeout
	}
	if allowed, err := t.SeccompAllows(unix.SYS_RESTART_SYSCALL); err == nil && allowed {
		return nil
	}
	var code [mostBeforeSyscall]byte
	if _, err := t.s.p.ReadAt(code[:], regs.PC()+h.syscallSize()-uint64(len(code))); err != nil {
		return nil
	}
	set, ok := h.syscallBefore(code[:])
	args := slices.Clone(regs.Regs[:6])
	if ok && (number == set || number == unix.SYS_RESTART_SYSCALL) {
		if allowed, err := t.SeccompAllows(uintptr(set), args...); err == nil && allowed {
			regs.Pc -= h.syscallSize()
			return t.SetRegs(regs)
		}
	}
	regs.Pc += h.syscallSize()
	regs.SetResult(negative(int64(unix.EINTR)))
	return t.SetRegs(regs)
}
