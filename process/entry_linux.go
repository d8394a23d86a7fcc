package process

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// passageOptions are those of a thread on its way to its program's entry point. With
// TRACESYSGOOD the kernel drops a system-call stop whose tracer has died: 0x85 is no
// signal, while the plain SIGTRAP would end the program. Threads that a library's
// constructor makes are left alone until the entry point.
const passageOptions = unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESYSGOOD

// maxPrograms bounds how many programs a process may go through before one reaches its entry.
const maxPrograms = 16

// errNewProgram: a constructor has replaced the program on the way to its entry point.
var errNewProgram = errors.New("it has replaced its program again")

// toReadiness runs a program that stands at its very first instruction to its entry point,
// and further if it is static. atEntry is Command.GoAtEntry. However it is left, also by
// our death, the program goes on as if nothing had been.
func (t *Thread) toReadiness(atEntry bool) error {
	for range maxPrograms {
		err := t.towardsReadiness(atEntry)
		if !errors.Is(err, errNewProgram) {
			return err
		}
		if err := t.settleFromTrap(); err != nil {
			return err
		}
		if err := t.s.p.reopen(); err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d: %w: %w", t.TID, ErrNotReady, errNewProgram)
}

// reopen makes p that of the program by which it has replaced its own. Nobody else may use it meanwhile.
func (p *Process) reopen() error {
	f, err := p.openFile("mem", os.O_RDWR)
	if err != nil {
		return p.gone(err)
	}
	_ = p.mem.Close()
	p.mem, p.gadgets = f, nil
	return p.checkArch()
}

func (t *Thread) towardsReadiness(atEntry bool) error {
	auxv, err := t.s.p.Auxv()
	if err != nil {
		return err
	}
	if auxv.Base != 0 {
		return t.runToEntry(auxv) // the loader sets the thread up
	}
	if static, err := t.s.p.isGo(); err == nil && static {
		if atEntry {
			return t.leaveExec()
		}
		return fmt.Errorf("process %d: %w: it is a static Go program", t.TID, ErrNotReady)
	}
	return t.runToThreadID()
}

// isGo says whether the program has Go's build information.
func (p *Process) isGo() (bool, error) {
	f, err := p.openProgram()
	if err != nil {
		return false, err
	}
	defer f.Close()
	return f.Section(".go.buildinfo") != nil || f.Section(".note.go.buildid") != nil, nil
}

// leaveExec makes a thread at its first instruction one that is in no system call.
func (t *Thread) leaveExec() error {
	regs, err := t.Regs()
	if err != nil {
		return err
	}
	regs.LeaveSyscall()
	return t.SetRegs(regs)
}

// gatherThreads ends the passage: threads that constructors have made are stopped as well.
func (t *Thread) gatherThreads() error {
	if err := setOptions(t.TID, attachOptions); err != nil {
		return t.fail("set options", err)
	}
	tids, err := taskIDs(t.s.p.pid)
	if err != nil || len(tids) <= 1 {
		return err
	}
	return t.s.stopAll(time.Now().Add(t.s.opts.timeout()))
}

// settleFromTrap leads from a stop of our own making to an event stop.
func (t *Thread) settleFromTrap() error {
	t.stopped = false
	if err := t.s.sendOn(t, report{event: -1}); err != nil {
		return err
	}
	if err := t.s.settle(t, time.Now().Add(t.s.opts.timeout())); err != nil {
		return err
	}
	if t.ended {
		return fmt.Errorf("process %d: %w", t.TID, ErrEnded)
	}
	return nil
}

// run lets a thread run, by PTRACE_CONT or PTRACE_SYSCALL, until judge accepts one of its signal-delivery
// or system-call stops.
func (t *Thread) run(request int, judge func(report, *Regs) bool) error {
	t.stopped = false
	if err := t.pass(request, report{event: -1}); err != nil {
		return err
	}
	err := t.s.await(t, time.Now().Add(t.s.opts.timeout()), func(r report) (bool, error) {
		switch r.event {
		case unix.PTRACE_EVENT_EXEC:
			takeExec(t.TID)
			return false, errNewProgram
		case 0:
			regs, err := getRegs(t.TID)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return false, t.fail("read registers", err)
			}
			if err == nil && judge(r, &regs) {
				return true, nil
			}
		}
		return false, t.pass(request, r)
	})
	if err == nil && t.ended {
		return fmt.Errorf("process %d: %w", t.TID, ErrEnded)
	}
	return err
}

// pass lets a thread run on from what it reported, with the signal that it stopped for; if it was
// stopped by one such as SIGSTOP it stays so until SIGCONT.
func (t *Thread) pass(request int, r report) error {
	signal := 0
	switch {
	case r.event == unix.PTRACE_EVENT_STOP && r.signal != int(unix.SIGTRAP):
		request = unix.PTRACE_LISTEN
	case r.event == 0 && r.signal != sysStop:
		signal = r.signal
	}
	if err := ptrace(request, t.TID, 0, uintptr(signal)); err != nil && !errors.Is(err, unix.ESRCH) {
		return t.fail("continue", err)
	}
	return nil
}
