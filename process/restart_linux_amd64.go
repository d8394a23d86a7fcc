package process

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What an interrupted system call leaves in rax for the kernel's own signal
// code (include/linux/errno.h).
const (
	restartSys     = 512 // ERESTARTSYS: restart, after a handler only with SA_RESTART
	restartNoIntr  = 513 // ERESTARTNOINTR: always restart
	restartNoHand  = 514 // ERESTARTNOHAND: restart unless a handler ran
	restartByBlock = 516 // ERESTART_RESTARTBLOCK: go on with what is left of a timeout
)

func negative(errno int64) uint64 { return uint64(-errno) }

// restartCode returns the restart code in r, 0 when no call waits to be restarted.
func restartCode(r Regs) int64 {
	if !inSyscall(r) {
		return 0
	}
	switch code := -int64(r.Rax); code {
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
	unix.SYS_EPOLL_WAIT: true, unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
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
	if restartCode(*regs) == restartByBlock {
		return t.avoidRestartSyscall(regs)
	}
	if !inSyscall(*regs) || regs.Rax != negative(int64(unix.EINTR)) {
		return nil
	}
	if !endsWithEINTR[regs.Orig_rax] && !(endsWithEINTROnSockets[regs.Orig_rax] && t.isSocket(regs.Rdi)) {
		return nil
	}
	regs.Rax = negative(restartNoHand)
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
	number, err := t.callInProgress(*regs)
	if err != nil {
		return nil // as the kernel has it
	}
	regs.Orig_rax, regs.Rax = number, negative(restartNoHand)
	allowed, err := t.SeccompAllows(uintptr(number), regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9)
	if err == nil && !allowed {
		regs.Rax = negative(int64(unix.EINTR))
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
	code := restartCode(r)
	if code == 0 {
		return back, frame, nil
	}
	if code == restartByBlock {
		back.Rax = negative(restartNoHand)
		if back.Orig_rax, err = t.callInProgress(r); err != nil {
			return back, frame, err
		}
	}
	frame.Rax = back.Orig_rax
	frame.Rip -= 2 // the length of SYSCALL
	frame.Orig_rax = ^uint64(0)
	return back, frame, nil
}

// goesOnByBlock are the calls that the kernel continues through restart_syscall(2).
var goesOnByBlock = map[uint64]bool{
	unix.SYS_NANOSLEEP: true, unix.SYS_CLOCK_NANOSLEEP: true, unix.SYS_POLL: true, unix.SYS_FUTEX: true,
}

// callInProgress returns the number of the system call that r was stopped in,
// which was restart_syscall if it had been interrupted before.
func (t *Thread) callInProgress(r Regs) (uint64, error) {
	if r.Orig_rax != unix.SYS_RESTART_SYSCALL {
		return r.Orig_rax, nil
	}
	if number, ok := t.s.p.restarted[t.TID]; ok && number.site == siteOf(r) {
		return number.call, nil
	}
	// Most C code has "mov $number, %eax" right before the SYSCALL.
	var code [7]byte
	if _, err := t.s.p.ReadAt(code[:], r.Rip-uint64(len(code))); err == nil && code[0] == 0xb8 && code[5] == 0x0f && code[6] == 0x05 {
		if number := uint64(binary.LittleEndian.Uint32(code[1:])); goesOnByBlock[number] {
			return number, nil
		}
	}
	return 0, errors.New("it waits in a call whose number is no longer known")
}

// A restartSite tells one waiting system call from the thread's next.
type restartSite struct{ rip, rsp, rdi, rsi, rdx, r10 uint64 }

type restartedCall struct {
	site restartSite
	call uint64
}

func siteOf(r Regs) restartSite { return restartSite{r.Rip, r.Rsp, r.Rdi, r.Rsi, r.Rdx, r.R10} }

// rememberRestarts keeps the numbers of the calls that our stop makes the
// kernel continue through restart_syscall, for the next stop.
func (s *Stopped) rememberRestarts() {
	now := map[int]restartedCall{}
	for _, t := range s.threads {
		r := t.regs
		if !t.haveRegs {
			if before, ok := s.p.restarted[t.TID]; ok {
				now[t.TID] = before // it has not stopped
			}
			continue
		}
		if restartCode(r) != restartByBlock {
			continue
		}
		if r.Orig_rax != unix.SYS_RESTART_SYSCALL {
			now[t.TID] = restartedCall{siteOf(r), r.Orig_rax}
		} else if before, ok := s.p.restarted[t.TID]; ok && before.site == siteOf(r) {
			now[t.TID] = before
		}
	}
	s.p.restarted = now
}
