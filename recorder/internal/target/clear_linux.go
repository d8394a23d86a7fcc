package target

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/text"
)

// errInTheWay: a thread is inside a site.
var errInTheWay = errors.New("a thread is inside a site")

// clearSites moves threads that are inside a site to the same instruction in its stub, where they go on as if they
// had come by the site; and the same for PCs that signal handlers will return to. Only the mappings of pages matter:
// where sites are not written, another library's code may be. Only sites of functions for which of says so count.
func (s *Target) clearSites(st *process.Stopped, maps []process.Mapping, pages []text.Page, c *Change, of func(id uint32) bool) error {
	written := map[uint64]bool{} // starts of mappings
	var last *process.Mapping
	for i := range pages {
		if last != nil && last.Contains(pages[i].Addr) {
			continue
		}
		if last = process.FindMapping(maps, pages[i].Addr); last != nil {
			written[last.Start] = true
		}
	}
	inside := func(pc uint64) *stub.Code {
		m := process.FindMapping(maps, pc)
		if m == nil || !written[m.Start] {
			return nil
		}
		for _, a := range c.Arenas {
			if id, in := a.Code.InsideOf(pc); in && of(id) {
				return a.Code
			}
		}
		return nil
	}
	if err := s.lang.suspended(s, st, maps, func(pc uint64) bool { return inside(pc) != nil }); err != nil {
		return err
	}
	// Nothing is moved before it is certain that the sites will be written now: a thread that is let go in a stub may throw there, and
	// nothing leads unwinders to the stub's information yet.
	moves, err := s.threadMoves(st, c.restricting, inside)
	if err != nil {
		return err
	}
	frames, err := s.frameMoves(st, maps, inside)
	if err != nil {
		return err
	}
	for _, m := range moves {
		if err := m.t.SetRegs(m.regs); err != nil {
			return err
		}
	}
	for _, f := range frames {
		if err := s.WriteWord(f.at, f.pc); err != nil {
			return err
		}
	}
	return nil
}

// move is a thread that is to go on elsewhere.
type move struct {
	t    *process.Thread
	regs *process.Regs
}

// threadMoves returns where threads inside sites are to go on.
func (s *Target) threadMoves(st *process.Stopped, restricting []recovery.Span, inside func(pc uint64) *stub.Code) (moves []move, err error) {
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return nil, err
		}
		if insideRestricting(regs, restricting) && s.hookTries < hookRetries {
			s.hookTries++
			return nil, fmt.Errorf("callreel: process %d, thread %d at %#x, where it may be about to restrict its system calls: %w", s.Process.Pid(), t.TID, regs.PC(), errInTheWay)
		}
		code := inside(regs.PC())
		if code == nil {
			continue
		}
		to, ok := code.StubFor(regs.PC())
		if !ok {
			return nil, fmt.Errorf("callreel: process %d, thread %d at %#x: %w", s.Process.Pid(), t.TID, regs.PC(), errInTheWay)
		}
		if _, in, err := t.InSyscall(); err != nil || in {
			// A restart would take two bytes off the new PC. No site holds a system call, so this is only a stop on its way.
			return nil, fmt.Errorf("callreel: process %d, thread %d at %#x: %w", s.Process.Pid(), t.TID, regs.PC(), errInTheWay)
		}
		moved := *regs
		moved.SetPC(to)
		moves = append(moves, move{t, &moved})
	}
	return moves, nil
}

// frameMoves returns where signal handlers are to return to that would return into sites.
func (s *Target) frameMoves(st *process.Stopped, maps []process.Mapping, inside func(pc uint64) *stub.Code) ([]interrupted, error) {
	frames, err := interruptedPCs(st, maps, s.restorers, s.lang.handlers, func(pc uint64) bool { return inside(pc) != nil })
	if err != nil {
		return nil, err
	}
	if len(frames) > 0 && (s.handlerTries < handlerRetries || s.hasUnwinder(maps)) {
		// An unwinder that is at work there would meet another PC than before. Mostly the handler is over soon.
		s.handlerTries++
		return nil, fmt.Errorf("callreel: process %d, thread %d in a handler above %#x, from which an exception may be on its way; try again later: %w",
			s.Process.Pid(), frames[0].tid, frames[0].pc, errInTheWay)
	}
	for i := range frames {
		f := &frames[i]
		to, ok := inside(f.pc).StubFor(f.pc)
		if !ok {
			return nil, fmt.Errorf("callreel: process %d, thread %d in a handler above %#x: %w", s.Process.Pid(), f.tid, f.pc, errInTheWay)
		}
		f.pc = to
	}
	return frames, nil
}

// hasUnwinder says whether a process has code mapped that unwinds for exceptions: a library, or a static program's own.
func (s *Target) hasUnwinder(maps []process.Mapping) bool {
	files := map[string]bool{}
	for _, m := range maps {
		name := filepath.Base(m.Path)
		if strings.HasPrefix(name, "libgcc_s.") || strings.HasPrefix(name, "libunwind.") {
			return true
		}
		if m.Perm&process.PermExec != 0 && m.Inode != 0 && !m.IsRecorders() {
			files[m.Path] = true
		}
	}
	return len(files) == 1 && slices.ContainsFunc(s.Images, func(im *mapped.Image) bool {
		return files[im.Path] && im.Object != nil && im.Object.Section(".gcc_except_table") != nil
	})
}

// hookRetries is how often a stop is tried again for a thread that has passed where a hook will be. It is there for some
// nanoseconds; but a thread may do nothing else than call syscall. handlerRetries is the same for a signal handler above a site, for
// half a second in all: one that takes longer isn't about to throw.
const (
	hookRetries    = 8
	handlerRetries = StopRetries - 2
)

// insideRestricting says whether a thread is behind the entry of a function that is to have a hook, and so may go on from there
// to restrict its system calls with nobody to notice. One that is in a system call has made it.
func insideRestricting(regs *process.Regs, restricting []recovery.Span) bool {
	if _, in := regs.Syscall(); in {
		return false
	}
	return slices.ContainsFunc(restricting, func(f recovery.Span) bool { return regs.PC() > f.Base && regs.PC()-f.Base < f.Size })
}

// restricting lists the functions of arenas that have a hook for that. They are few, of very many.
func restricting(arenas []*Arena) (found []recovery.Span) {
	for _, a := range arenas {
		for i := range a.Fns {
			if f := &a.Fns[i]; f.Hook.Restricts() {
				found = append(found, recovery.Span{Base: f.Addr + f.Slide, Size: f.Size})
			}
		}
	}
	return found
}
