package target

import (
	"fmt"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// goThreadOf reads what the runtime says of a thread; known is false for one that is only being set up. The goroutine is in a register: that of a new
// thread's parent for some instructions, so what counts is that the runtime has the thread's own ID for it. Where it has that depends on the version,
// which isn't known of a program whose recorder is dead.
func goThreadOf(p *process.Process, t *process.Thread) (gt golang.Thread, known bool, err error) {
	regs, err := t.Regs()
	if err != nil {
		return gt, false, err
	}
	tid := idInside(t)
	for _, at := range golang.ProcIDs() {
		if gt, known := golang.ReadThreadOf(p, regs.Regs[golang.ARM64G], at); known && gt.ID == tid {
			return gt, true, nil
		}
	}
	return gt, false, nil
}

// agree makes sure that the runtime has the threads' IDs where stubs look for them. A program that has just begun has no thread with one.
func (g *goThreads) agree(p *process.Process, st *process.Stopped) error {
	var strange *process.Thread
	some := false
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return err
		}
		switch gt, known := golang.ReadThreadOf(p, regs.Regs[golang.ARM64G], g.program.ProcID); {
		case known && gt.ID == idInside(t):
			some = true
		case known:
			strange = t
		}
	}
	if strange != nil && !some {
		return fmt.Errorf("thread %d: %w: it has another number for the thread's ID", strange.TID, golang.ErrUnexpected)
	}
	return nil
}

// goStacks is traits.ownsStack, by the bounds of the goroutine that runs on the thread. Those of most goroutines are too near: it is the runtime's own,
// of each thread, that have the room.
func goStacks() func(*process.Process, *process.Thread, uint64) bool { return ownsGoStack }

func ownsGoStack(p *process.Process, t *process.Thread, base uint64) bool {
	gt, known, err := goThreadOf(p, t)
	if err != nil || !known {
		return false
	}
	regs, err := t.Regs()
	if err != nil {
		return false
	}
	stack, err := golang.StackOf(p, gt.G)
	return err == nil && stack.Has(regs.SP()) && stack.Has(base)
}
