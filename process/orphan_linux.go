package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// chainMark is the upper half of the numbers that stand in registers of a thread that
// is in a chain. It tells a later tracer that one is at work.
const chainMark = 0xca11_3ee1

func newCookie() uint64 { return chainMark<<32 | uint64(rand.Uint32()) }

var errOrphan = errors.New("a remote system call of a tracer that died does not end")

// finishOrphan runs a thread out of the chain that a tracer has left it in when
// it was killed: until then its own registers are hidden in a frame. The sleep
// at the chain's end is cut short. Out of it, the thread may end before it is
// stopped again; that is no error.
func (t *Thread) finishOrphan() error {
	const tries = 200
	for i := range tries {
		regs, err := t.Regs()
		if err != nil {
			return err
		}
		if _, ok := arch.cookie(regs); !ok {
			return nil
		}
		if arch.leaveSleep(t, regs) {
			if err := t.SetRegs(regs); err != nil {
				return err
			}
		}
		if err := t.runBriefly(min(time.Duration(i)*time.Microsecond, 50*time.Microsecond)); t.ended {
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d: thread %d: %w", t.s.p.pid, t.TID, errOrphan)
}

func isSleep(number uint64) bool {
	for _, c := range arch.sleepCalls() {
		if uint64(c.number) == number {
			return true
		}
	}
	return false
}
