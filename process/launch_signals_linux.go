package process

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// settleSignals has the child, which dies with us anyway until it is handed over, call
// prctl(PR_SET_PDEATHSIG, 0) and, for each signal to be ignored, rt_sigaction(2), on
// bytes of its own code. That it inherits them from us would take that we ignore them.
func (t *Thread) settleSignals(ignored []syscall.Signal) error {
	regs, err := t.Regs()
	if err != nil {
		return err
	}
	undo, err := t.s.p.overwrite(regs.PC(), arch.syscallCode())
	if err != nil {
		return err
	}
	calls := []Call{{Number: unix.SYS_PRCTL, Args: [6]uint64{unix.PR_SET_PDEATHSIG}}}
	// A struct kernel_sigaction below the stack, where a new program has nothing yet.
	action := make([]byte, 32)
	action[0] = 1 // SIG_IGN
	at := regs.SP() - 2*arch.redZone() - uint64(len(action))
	if _, err := t.s.p.WriteAt(action, at); err != nil {
		return err
	}
	for _, sig := range ignored {
		const maskSize = 8
		calls = append(calls, Call{Number: unix.SYS_RT_SIGACTION, Args: [6]uint64{uint64(sig), at, 0, maskSize}})
	}
	for _, c := range calls {
		result, err := t.unsafeCall(regs.PC(), *regs, c)
		if err == nil {
			err = resultOf(result).Err()
		}
		if err != nil {
			return fmt.Errorf("process %d: %s: %w", t.TID, syscallName(uint64(c.Number)), err)
		}
	}
	if _, err := t.s.p.WriteAt(make([]byte, len(action)), at); err != nil {
		return err
	}
	if err := undo(); err != nil {
		return err
	}
	if err := t.settleFromTrap(); err != nil {
		return err
	}
	return t.SetRegs(regs)
}
