package target

import (
	"fmt"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// goThreadOf reads what the runtime says of a thread; known is false for one that is only being set up.
func goThreadOf(p *process.Process, t *process.Thread) (gt golang.Thread, known bool, err error) {
	base, err := t.ThreadPointer()
	if err != nil {
		return gt, false, err
	}
	gt, known, err = golang.ReadThread(p, base)
	if err != nil {
		return gt, false, fmt.Errorf("thread %d: %w", t.TID, err)
	}
	if !known {
		return gt, false, nil
	}
	if tid := idInside(t); gt.ID != tid {
		return gt, false, fmt.Errorf("thread %d: %w: it has %d for the thread's ID", t.TID, golang.ErrUnexpected, gt.ID)
	}
	return gt, true, nil
}

// agree makes sure that the runtime says of each thread what stubs expect.
func (*goThreads) agree(p *process.Process, st *process.Stopped) error {
	for _, t := range st.Threads() {
		if _, _, err := goThreadOf(p, t); err != nil {
			return err
		}
	}
	return nil
}

// goStacks is traits.ownsStack: what threads keep behind the thread pointer is behind their stacks, too, if they are the right ones.
func goStacks() func(*process.Process, *process.Thread, uint64) bool { return nil }
