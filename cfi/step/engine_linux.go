//go:build amd64 || arm64

package step

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
)

// engine runs a command and follows its calls.
type engine struct {
	opt      Options
	t        *process.Tracing
	images   images
	breaks   breakpoints
	threads  map[int]*thread
	compared comparison
	result   Result

	stepped    map[int]bool // the threads in which calls were followed
	loaderStop uint64       // where the dynamic loader says that libraries have changed
	done       bool         // nothing is followed any more
}

// loop sees to every stop until the command ends. A thread that is killed while it is seen to is no error: its end is told.
func (e *engine) loop() error {
	for {
		s, err := e.t.Wait()
		if errors.Is(err, process.ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := e.see(s); err != nil && !errors.Is(err, process.ErrReleased) {
			return err
		}
	}
}

func (e *engine) see(s process.TraceStop) error {
	switch s.Kind {
	case process.TraceEnded:
		if t := e.threads[s.TID]; t != nil {
			e.end(t)
		}
		return nil
	case process.TraceChild:
		return e.release(s.TID)
	case process.TraceExec:
		return e.replaced(s.TID)
	}
	t := e.thread(s.TID)
	if s.Kind == process.TraceGuest {
		t.guest = true
	}
	if t.lifted != 0 {
		e.breaks.putBack(t.lifted)
		t.lifted = 0
	}
	if err := e.readRegs(t); err != nil {
		return err
	}
	if s.Kind != process.TraceSignal {
		return e.goOn(t, 0) // a step that such a stop has cut short is done again, or was done
	}
	if s.Signal != int(unix.SIGTRAP) {
		return e.goOn(t, s.Signal)
	}
	switch {
	case s.Code == trapCode && e.broke(t.regs.pc-trapAhead):
		if trapAhead != 0 {
			t.raw.SetPC(t.regs.pc - trapAhead)
			t.raw.LeaveSyscall()
			if err := e.t.SetRegs(t.tid, t.raw); err != nil {
				return err
			}
			t.regs.pc -= trapAhead
		}
		return e.met(t)
	case t.step && isStep(s.Code):
		return e.moved(t)
	}
	return e.goOn(t, s.Signal) // the command's own
}

// broke says whether the breakpoint instruction at an address was ours, not the command's own.
func (e *engine) broke(addr uint64) bool {
	code, ours := e.breaks.were[addr]
	return ours && code != trapped()
}

// goOn lets a thread go on: instruction by instruction within a chosen function, else freely.
func (e *engine) goOn(t *thread, signal int) error {
	if e.done && len(t.frames) > 0 {
		e.cut(t, 0)
	}
	t.before, t.signal = t.regs, signal
	// A breakpoint that the thread has not met yet it is to meet.
	if (t.following() || t.met == t.regs.pc) && e.breaks.lift(t.regs.pc) {
		t.lifted = t.regs.pc
	}
	t.met = 0
	if t.step = t.following() || t.lifted != 0; t.step {
		return e.t.Step(t.tid, signal)
	}
	return e.t.Continue(t.tid, signal)
}

// compare compares the row of the instruction that the thread stands at with its innermost call.
func (e *engine) compare(t *thread) {
	f := t.top()
	e.result.Steps++
	if e.result.Steps >= e.opt.MaxSteps && !e.done {
		e.done, e.result.Complete = true, false
		e.breaks.clear()
		return
	}
	im := e.images.at(t.regs.pc)
	if im == nil {
		return
	}
	if !e.compared.look(&t.regs, &f.shadow) {
		e.cut(t, len(t.frames)-1)
		return
	}
	addr := t.regs.pc - im.slide
	m := im.marks[addr]
	if m == nil {
		m = &mark{}
		im.marks[addr] = m
	}
	row, err := im.row(addr)
	if err != nil {
		m.set(bitNone, im.noRow(addr, err))
		return
	}
	e.compared.compare(row, im.slide, m)
}

// release lets a new process go, whose copy of the memory has our breakpoints.
func (e *engine) release(tid int) error {
	for addr, code := range e.breaks.were {
		for k, b := range code {
			if err := e.t.PutByte(tid, addr+uint64(k), b); err != nil && !errors.Is(err, unix.EIO) { // EIO: it was unmapped
				return err
			}
		}
	}
	return e.t.Detach(tid)
}

// replaced lets a process go that has executed another program. Its threads are gone but one, which has the process's ID.
func (e *engine) replaced(tid int) error {
	if t := e.threads[tid]; t != nil && t.guest {
		e.end(t)
		return e.t.Detach(tid)
	}
	if tid == e.t.Process().Pid() {
		e.result.Problems = append(e.result.Problems, ErrOtherProgram)
		e.done = true
		clear(e.breaks.at)
		clear(e.breaks.were)
		clear(e.threads)
	}
	return e.t.Detach(tid)
}
