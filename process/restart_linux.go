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

// order tells a thread to stop. The only failure is that it has ended, and who waits for the stop sees that.
func (t *Thread) order() {
	arch.noteCall(t)
	t.ordered = true
	_ = interrupt(t.TID)
}

// keepRestartable turns an EINTR that our stop has caused into "restart unless
// a signal handler runs": if a signal is what ended the call, its handler runs
// next and the program sees the EINTR it is owed.
func (t *Thread) keepRestartable() error {
	regs, err := t.Regs()
	if err != nil {
		return err
	}
	return arch.keepRestartable(t, regs)
}

// endIfDue ends a call with EINTR that would begin again, if a signal has come since: its handler runs next, and would not end the call.
func (t *Thread) endIfDue() {
	if !t.was.again {
		return
	}
	if due, err := t.signalsDue(); err != nil || !due {
		return
	}
	if regs, err := getRegs(t.TID); err == nil && arch.endForHandler(t, &regs) {
		_ = setRegs(t.TID, regs)
	}
}

// signalsDue says whether a signal waits that the program handles and the thread doesn't block: in a call such as epoll_pwait by what is
// blocked for the call.
func (t *Thread) signalsDue() (bool, error) {
	status, err := readStatus(t.s.p.pid, t.TID)
	return (status.SigPending|status.SigWaiting)&^status.SigBlocked&status.SigCaught != 0, err
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
	return arch.resumable(t, r)
}

// goesOnByBlock are the calls that the kernel continues through restart_syscall(2).
var goesOnByBlock = map[uint64]bool{
	unix.SYS_NANOSLEEP: true, unix.SYS_CLOCK_NANOSLEEP: true, unix.SYS_FUTEX: true,
}

var errNumberUnknown = errors.New("it waits in a call whose number is no longer known")

// restartedCall is the number that the last stop has remembered of the call that a thread waits in.
func (p *Process) restartedCall(tid int, r *Regs) (uint64, bool) {
	before, ok := p.restarted[tid]
	return before.call, ok && before.site == siteOf(r)
}

// callBefore reads the number of a call with a timeout out of the code in front of its end: most C code sets it right before the call.
func (p *Process) callBefore(end uint64) (uint64, bool) {
	var code [mostBeforeSyscall]byte
	if _, err := p.ReadAt(code[:], end-uint64(len(code))); err != nil {
		return 0, false
	}
	number, ok := arch.syscallBefore(code[:])
	return number, ok && (goesOnByBlock[number] || slices.Contains(arch.goesOnByBlock(), number))
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
		call, waits := arch.waitsByBlock(r)
		if !waits {
			continue
		}
		if call != unix.SYS_RESTART_SYSCALL {
			now[t.TID] = restartedCall{siteOf(r), call}
		} else if before, ok := s.p.restarted[t.TID]; ok && before.site == siteOf(r) {
			now[t.TID] = before
		}
	}
	s.p.restarted = now
}
