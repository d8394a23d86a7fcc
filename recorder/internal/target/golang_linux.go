package target

import (
	"errors"
	"fmt"
	"slices"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/refusal"
)

// A goroutine that the runtime has preempted by a signal goes on, some time, at the instruction at which it was: that PC is on its stack,
// above the frame of runtime.asyncPreempt. It may be one that a site is to be written over, so all goroutines are looked at before that is
// done. Theirs can't be changed as a thread's PC can: the runtime knows no code in the arena when it walks the stack.

// goThreads are those of Go's runtime.
type goThreads struct {
	program    *golang.Program
	goroutines *golang.Goroutines // from prepare on
}

// BeGo says that the process runs this Go program. It is called before memory is mapped.
func (s *Target) BeGo(program *golang.Program) {
	s.Go, s.Runtime.Go = program, &golang.Runtime{GoID: program.GoID, ProcID: program.ProcID}
	s.lang = language{traitsOf(true), &goThreads{program: program}}
}

// idInside is a thread's ID as its process sees it.
func idInside(t *process.Thread) uint64 {
	if i, err := t.Info(); err == nil {
		return uint64(i.NSTID)
	}
	return uint64(t.TID)
}

// identify makes sure that the runtime's structures are as the stubs expect them.
func (g *goThreads) identify(s *Target, st *process.Stopped) error {
	if err := g.agree(s.Process, st); err != nil {
		return fmt.Errorf("callreel: process %d: %w: %w", s.Process.Pid(), refusal.Err, err)
	}
	s.Runtime.TIDOffset = golang.ProcID
	return nil
}

func (g *goThreads) prepare(s *Target) (err error) {
	if sitesAreWhole {
		return nil
	}
	im := s.Arenas[0].Images[0] // a Go program has no other
	g.goroutines, err = g.program.Goroutines(s.Process, im.Object, im.Slide)
	return err
}

// suspended makes sure that no goroutine will go on inside a site.
func (g *goThreads) suspended(s *Target, st *process.Stopped, maps []process.Mapping, inside func(pc uint64) bool) error {
	if sitesAreWhole {
		return nil
	}
	pid, preempting := s.Process.Pid(), g.goroutines.IsPreempting
	// A handler may have read the PC and not have written yet where the goroutine is to go on.
	frames, err := interruptedPCs(st, maps, s.restorers, s.lang.handlers, func(pc uint64) bool { return inside(pc) || preempting(pc) })
	if err != nil {
		return err
	}
	if len(frames) > 0 {
		return fmt.Errorf("callreel: process %d, thread %d in a handler above %#x: %w", pid, frames[0].tid, frames[0].pc, errInTheWay)
	}
	var all []golang.Thread
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return err
		}
		if preempting(regs.PC()) {
			return fmt.Errorf("callreel: process %d, thread %d is being preempted: %w", pid, t.TID, errInTheWay)
		}
		gt, known, err := goThreadOf(s.Process, t)
		if err != nil {
			return err
		}
		if known {
			all = append(all, gt)
		}
	}
	pe := &preemptedError{pid: pid}
	err = g.goroutines.Preempted(all, func(goroutine, pc uint64) {
		if inside(pc) {
			pe.add(goroutine, pc, s.Arenas)
		}
	})
	switch {
	case errors.Is(err, golang.ErrNoList), errors.Is(err, golang.ErrTooMany):
		return fmt.Errorf("callreel: process %d: %w: %w", pid, refusal.Err, err)
	case err != nil && !errors.Is(err, golang.ErrUnlisted):
		return fmt.Errorf("callreel: process %d: %w", pid, err)
	case len(pe.ids) > 0:
		return pe
	case err != nil:
		return fmt.Errorf("callreel: process %d: %w: %w", pid, errInTheWay, err)
	}
	return nil
}

// preemptedError says in which functions goroutines are to go on inside a site.
type preemptedError struct {
	pid       int
	goroutine uint64 // one of them
	pc        uint64
	ids       []uint32
}

func (e *preemptedError) Error() string {
	return fmt.Sprintf("callreel: process %d: goroutine %d was preempted at %#x, inside a site, and so others: %d functions in all", e.pid, e.goroutine, e.pc, len(e.ids))
}

func (e *preemptedError) add(goroutine, pc uint64, arenas []*Arena) {
	e.goroutine, e.pc = goroutine, pc
	for _, a := range arenas {
		if id, in := a.Code.InsideOf(pc); in && !slices.Contains(e.ids, id) {
			e.ids = append(e.ids, id)
		}
	}
}

// goHandlers run on stacks that the runtime knows. Other memory of its heap is full of what once were stacks.
type goHandlers struct{}

func (goHandlers) elsewhere() bool { return false }

func (goHandlers) within(p *process.Process, t *process.Thread, sp uint64) (uint64, error) {
	gt, known, err := goThreadOf(p, t)
	if err != nil || !known || !gt.Signals.Has(sp) {
		return 0, err
	}
	return gt.Signals.Hi - sp&^7, nil
}
