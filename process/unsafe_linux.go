package process

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// unsafeBatch makes system calls by setting registers and waiting for the
// system-call stops: what debuggers do. If we die in the middle the target is
// left with our registers, or gets a SIGTRAP for a stop nobody waited for.
// StopOptions.UnsafeSyscall allows it.
func (s *Stopped) unsafeBatch(g *gadgets, calls []Call) ([]SyscallResult, error) {
	for _, c := range calls {
		if len(c.Data) > 0 {
			return nil, fmt.Errorf("process %d: %w: call data needs the kill-safe way", s.p.pid, ErrNoGadget)
		}
	}
	var reasons []error
	for _, t := range s.candidates() {
		_, err := t.allowsChain(g, calls)
		if err == nil {
			err = t.leaveRestartableSequence()
		}
		if err != nil {
			reasons = append(reasons, err)
			continue
		}
		return t.unsafeCalls(g, calls)
	}
	return nil, s.noThread(reasons)
}

func (t *Thread) unsafeCalls(g *gadgets, calls []Call) (results []SyscallResult, err error) {
	regs, err := t.Regs()
	if err != nil {
		return nil, err
	}
	mask, err := t.SigMask()
	if err != nil {
		return nil, err
	}
	if err := setOptions(t.TID, attachOptions|unix.PTRACE_O_TRACESYSGOOD); err != nil {
		return nil, t.fail("trace system calls", err)
	}
	if err := setSigMask(t.TID, allBlocks); err != nil {
		return nil, t.fail("block signals", err)
	}
	defer func() {
		err = errors.Join(err, t.unsafeRestore(*regs, mask))
	}()
	for _, c := range calls {
		r, err := t.unsafeCall(g.syscall, *regs, c)
		if err != nil {
			return nil, err
		}
		results = append(results, resultOf(r))
	}
	return results, nil
}

// unsafeCall goes to the call's entry and on to its exit.
func (t *Thread) unsafeCall(gadget uint64, regs Regs, c Call) (uint64, error) {
	regs.SetCall(gadget, c)
	if err := setRegs(t.TID, regs); err != nil {
		return 0, t.fail("write registers", err)
	}
	for range 2 {
		if err := t.toSyscallStop(); err != nil {
			return 0, err
		}
	}
	now, err := getRegs(t.TID)
	if err != nil {
		return 0, t.fail("read registers", err)
	}
	return now.Result(), nil
}

const sysStop = int(unix.SIGTRAP) | 0x80

func (t *Thread) toSyscallStop() error {
	goOn := func(signal int) error {
		if err := ptrace(unix.PTRACE_SYSCALL, t.TID, 0, uintptr(signal)); err != nil {
			return t.fail("continue", err)
		}
		return nil
	}
	if err := goOn(0); err != nil {
		return err
	}
	deadline := time.Now().Add(t.s.opts.timeout())
	err := t.s.await(t, deadline, func(r report) (bool, error) {
		switch {
		case r.event == 0 && r.signal == sysStop:
			return true, nil
		case r.event == 0:
			return false, goOn(r.signal)
		}
		return false, goOn(0)
	})
	if err == nil && t.ended {
		return t.fail("remote system call", unix.ESRCH)
	}
	return err
}

func (t *Thread) unsafeRestore(back Regs, mask uint64) error {
	if t.ended {
		return nil
	}
	t.stopped = false
	_ = interrupt(t.TID)
	if err := resume(t.TID, 0); err != nil {
		return t.fail("continue", err)
	}
	if err := t.s.settle(t, time.Now().Add(t.s.opts.timeout())); err != nil || t.ended {
		return err
	}
	if err := setOptions(t.TID, attachOptions); err != nil {
		return t.fail("restore options", err)
	}
	if err := t.SetSigMask(mask); err != nil {
		return err
	}
	return t.SetRegs(&back)
}
