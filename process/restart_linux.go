package process

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What an interrupted system call leaves as its result for the kernel's own signal
// code (include/linux/errno.h).
const (
	restartSys     = 512 // ERESTARTSYS: restart, after a handler only with SA_RESTART
	restartNoIntr  = 513 // ERESTARTNOINTR: always restart
	restartNoHand  = 514 // ERESTARTNOHAND: restart unless a handler ran
	restartByBlock = 516 // ERESTART_RESTARTBLOCK: go on with what is left of a timeout
)

func negative(errno int64) uint64 { return uint64(-errno) }

// restartCode returns the restart code in r, 0 when no call waits to be restarted.
func restartCode(r *Regs) int64 {
	if _, in := r.Syscall(); !in {
		return 0
	}
	switch code := -int64(r.Result()); code {
	case restartSys, restartNoIntr, restartNoHand, restartByBlock:
		return code
	}
	return 0
}

// endsWithEINTR are calls that the kernel ends with EINTR, instead of
// restarting them, when a thread is merely stopped (signal(7), "Interruption of
// system calls and library functions by stop signals"), and that have done
// nothing when they do. Socket calls do so when a timeout is set (SO_RCVTIMEO,
// SO_SNDTIMEO). So does connect(2), but it has begun to connect then.
var endsWithEINTR = map[uint64]bool{
	unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
	unix.SYS_SEMOP: true, unix.SYS_SEMTIMEDOP: true, unix.SYS_RT_SIGTIMEDWAIT: true,
	unix.SYS_IO_GETEVENTS: true, unix.SYS_IO_PGETEVENTS: true, unix.SYS_IO_URING_ENTER: true,
	unix.SYS_RECVFROM: true, unix.SYS_RECVMSG: true, unix.SYS_RECVMMSG: true,
	unix.SYS_SENDTO: true, unix.SYS_SENDMSG: true, unix.SYS_SENDMMSG: true,
	unix.SYS_ACCEPT: true, unix.SYS_ACCEPT4: true,
}

// endsWithEINTROnSockets are calls for which the same holds when their first argument
// is a socket; of other files nobody knows what they have done.
var endsWithEINTROnSockets = map[uint64]bool{
	unix.SYS_READ: true, unix.SYS_READV: true, unix.SYS_WRITE: true, unix.SYS_WRITEV: true,
}

// keepRestartable turns an EINTR that our stop has caused into "restart unless
// a signal handler runs": if a signal is what ended the call, its handler runs
// next and the program sees the EINTR it is owed.
func (t *Thread) keepRestartable() error {
	regs, err := t.Regs()
	if err != nil {
		return err
	}
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

func (t *Thread) isSocket(fd uint64) bool {
	link, err := os.Readlink(taskPath(t.s.p.pid, t.TID, "fd/"+strconv.Itoa(int(int32(fd)))))
	return err == nil && strings.HasPrefix(link, "socket:")
}

// resumable returns the registers to put back after a remote system call, and
// the same in a form that needs no help from the kernel, for the signal frame:
// there the interrupted call is entered anew.
//
// The remote call uses up what the kernel remembers of a timeout, so a call
// that would go on with the rest of it starts over with the whole. That takes
// its number, which is no longer in the registers when it was interrupted
// before.
func (t *Thread) resumable(r Regs) (back, frame Regs, err error) {
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

// goesOnByBlock are the calls that the kernel continues through restart_syscall(2).
var goesOnByBlock = map[uint64]bool{
	unix.SYS_NANOSLEEP: true, unix.SYS_CLOCK_NANOSLEEP: true, unix.SYS_FUTEX: true,
}

// callInProgress returns the number of the system call that r was stopped in,
// which was restart_syscall if it had been interrupted before.
func (t *Thread) callInProgress(r *Regs) (uint64, error) {
	if number, _ := r.Syscall(); number != unix.SYS_RESTART_SYSCALL {
		return number, nil
	}
	if number, ok := t.s.p.restarted[t.TID]; ok && number.site == siteOf(r) {
		return number.call, nil
	}
	// Most C code sets the number right before the call.
	var code [mostBeforeSyscall]byte
	if _, err := t.s.p.ReadAt(code[:], r.PC()-uint64(len(code))); err == nil {
		if number, ok := arch.syscallBefore(code[:]); ok && (goesOnByBlock[number] || slices.Contains(arch.goesOnByBlock(), number)) {
			return number, nil
		}
	}
	return 0, errors.New("it waits in a call whose number is no longer known")
}

// mostBeforeSyscall is how much of the code up to the end of a system call is looked at, in bytes.
const mostBeforeSyscall = 8

// A restartSite tells one waiting system call from the thread's next.
type restartSite struct {
	pc, sp uint64
	args   [4]uint64
}

type restartedCall struct {
	site restartSite
	call uint64
}

func siteOf(r *Regs) restartSite {
	return restartSite{r.PC(), r.SP(), [4]uint64{r.Arg(0), r.Arg(1), r.Arg(2), r.Arg(3)}}
}

// rememberRestarts keeps the numbers of the calls that our stop makes the
// kernel continue through restart_syscall, for the next stop.
func (s *Stopped) rememberRestarts() {
	now := map[int]restartedCall{}
	for _, t := range s.threads {
		r := &t.regs
		if !t.haveRegs {
			if before, ok := s.p.restarted[t.TID]; ok {
				now[t.TID] = before // it has not stopped
			}
			continue
		}
		if restartCode(r) != restartByBlock {
			continue
		}
		if call, _ := r.Syscall(); call != unix.SYS_RESTART_SYSCALL {
			now[t.TID] = restartedCall{siteOf(r), call}
		} else if before, ok := s.p.restarted[t.TID]; ok && before.site == siteOf(r) {
			now[t.TID] = before
		}
	}
	s.p.restarted = now
}
