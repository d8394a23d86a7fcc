package target

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/owner"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/text"
	"github.com/callreel/callreel/reel"
)

// Target is one process that is recorded, and what has been put into it. New makes one.
type Target struct {
	Process    *process.Process
	Images     []*mapped.Image
	Loader     *mapped.Image // of these, that with the loader, if any
	Arenas     []*Arena
	Ranges     []IDRange // sorted by first
	Runtime    stub.Config
	FirstStack process.FirstStack // with Runtime.NoTLS
	Memory     *ring.Memory
	FD         int              // of the ring memory, -1 when there is none
	RingFile   process.Memfd    // what that is
	rec        *recovery.Memory // nil when there is none
	Owner      *owner.Owner     // says in it that we live
	Size       uint64           // of the ring memory
	Records    uint64           // bytes for recovery records
	chunks     int              // of the pool
	Go         *golang.Program  // the program, if it is one in Go, see BeGo
	Skipped    map[uint32]bool  // functions that goroutines were preempted in, inside a site
	GoStacks   uint64           // where in the ring memory the stacks for its threads begin
	Reads      bool             // values in memory are recorded
	ArgBuffers uint64           // where in the ring memory the buffers for arguments begin; 0 if none are recorded
	Counts     uint64           // where in the ring memory calls are counted; 0 if they are not
	Areas      uint64           // where in the ring memory the threads' areas begin; 0 if none are needed
	Watches    uint64           // and where the watches are

	lang       language
	ownsOwner  bool            // Owner is of this one alone
	privileged bool            // the process may do more than others of its user
	began      time.Time       // when its memory began to be mapped
	made       []process.Memfd // all memfds that it was made to open
	Unsigned   func(error)     // is told why the recovery memory isn't signed; may be nil
	journal    recovery.Journal
	// GatesClosed is when detach began to close the gates, 0 until then.
	GatesClosed    reel.ClockPair
	SearchedImages []process.Mapping  // in which images were looked for
	restorers      []uint64           // see findRestorers
	searched       []process.Mapping  // in which they were looked for
	patched        bool               // the journal says of sites that may have been written
	running        bool               // recording is on
	guardTries     int                // see guardRetries
	handTries      int                // see handlerRetries
	Stopped        time.Duration      // that the process was stopped for attaching
	ArenaMade      func(*Arena) error // is told of each arena whose code is made, before its gate opens; may be nil

	// Mu guards Arenas, what images say of themselves, and which gates are open, against who reads them, or opens and closes gates, while
	// libraries are added. Who adds arenas, in the goroutine that looks for libraries, may read them without it.
	Mu sync.Mutex
}

// Change is sites that are to be written in one stop.
type Change struct {
	Arenas []*Arena  // where they lead
	Fresh  []*Arena  // of these, those whose code isn't made yet
	Ranges []IDRange // of these
	Images []*mapped.Image

	maps   []process.Mapping // as they were before the sites' pages were read
	layers [][]text.Page
	all    []text.Page
	// restricting are the functions that are guarded since they restrict system calls, where they are.
	restricting []recovery.Span
}

// StopRetries is how often a stop is tried that found a thread where it must not be.
const StopRetries = 20

// All is the change by which recording begins.
func (s *Target) All() *Change {
	return &Change{Arenas: s.Arenas, Fresh: s.Arenas, Images: s.Images}
}

// New is for a process that nothing has been put into yet. Its program isn't one in Go, unless BeGo says so.
func New(p *process.Process) *Target {
	return &Target{Process: p, FD: -1, lang: native()}
}

// Open checks that recording can begin at all.
func Open(pid int) (*Target, error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	s := New(p)
	st, err := p.Status()
	if err == nil && st.Seccomp == 1 {
		err = fmt.Errorf("callreel: process %d: %w: it runs in strict seccomp mode, which kills on any system call that setting up would need", pid, refusal.Err)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close lets go of everything on our side.
func (s *Target) Close() {
	for _, im := range s.Images {
		im.Close()
	}
	s.Images = nil
	s.closeMemory()
	if s.ownsOwner {
		s.Owner.Close()
		s.Owner, s.ownsOwner = nil, false
	}
	if s.Process != nil {
		s.Process.Close()
	}
}

// Prepare makes the stubs and writes them, and everything else that doesn't need the process to stand. What doesn't depend on each
// other is done at the same time.
func (s *Target) Prepare(c *Change) error {
	var populated error
	var wg sync.WaitGroup
	if !s.running {
		s.Memory.SetFollow(s.Runtime.Follow)
		wg.Go(func() { populated = s.Memory.Populate() })
	}
	err := s.makeStubs(c)
	if err == nil {
		err = s.prepareSites(c)
	}
	wg.Wait()
	return errors.Join(err, populated)
}

// makeStubs makes the stubs of fresh arenas, and writes them.
func (s *Target) makeStubs(c *Change) error {
	if len(s.Arenas) > 0 {
		s.Runtime.Anchor = s.Arenas[0].Gate()
	}
	for _, a := range c.Fresh {
		if err := a.Compile(s.Runtime); err != nil {
			return err
		}
		if err := s.WriteWord(a.Gate()+stub.GateOwn, s.Runtime.Ring); err != nil {
			return err
		}
		if err := s.writeFirstStack(a); err != nil {
			return err
		}
		if a.Mem == nil { // else it is there already
			if _, err := s.Process.WriteAt(a.Code.Bytes, a.Base); err != nil {
				return err
			}
		}
		a.Code.Bytes = nil
		a.share()
		if s.ArenaMade != nil {
			if err := s.ArenaMade(a); err != nil {
				return err
			}
		}
	}
	return s.listFrames()
}

// prepareSites notes what is going to be written, and makes the pages of text for that.
func (s *Target) prepareSites(c *Change) error {
	maps, err := s.Process.Maps()
	if err != nil {
		return err
	}
	var noted error
	var wg sync.WaitGroup
	wg.Go(func() {
		s.findRestorers(maps)
		for _, a := range c.Fresh {
			noted = errors.Join(noted, s.journal.Add(&recovery.Record{Patches: a.Code.Patches}))
		}
	})
	err = s.prepareTextOnce(c)
	wg.Wait()
	if err := errors.Join(noted, err); err != nil {
		return err
	}
	s.patched = true
	c.restricting = restricting(c.Arenas)
	half := len(c.all) / 2
	wg.Go(func() { s.own(c.all[:half]) })
	s.own(c.all[half:])
	wg.Wait()
	s.findRestorers(c.maps) // in what has come meanwhile
	return nil
}

// prepareTextOnce is prepareText until no library has gone meanwhile.
func (s *Target) prepareTextOnce(c *Change) error {
	if !s.running {
		if err := s.lang.prepare(s); err != nil {
			return err
		}
	}
	for try := 0; ; try++ {
		err := s.prepareText(c, try >= UndoRetries)
		if !libraryWent(err) || try >= UndoRetries {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// findRestorers looks for them where they have not been looked for before.
func (s *Target) findRestorers(maps []process.Mapping) {
	var fresh []process.Mapping
	for _, m := range maps {
		if !process.SameMapping(s.searched, maps, m.Start) {
			fresh = append(fresh, m)
		}
	}
	s.searched = maps
	s.restorers = append(s.restorers, findRestorers(s.Process, fresh, (&recovery.Record{Arenas: spansOf(s.Arenas)}).InArena)...)
	slices.Sort(s.restorers)
	s.restorers = slices.Compact(s.restorers)
}

// own makes the kernel give the process its own copies of the pages that are going to be written, since that takes most of
// the writing and the process would stand meanwhile: one byte of each page is written as it is. That is done only where
// nothing else can have been mapped since the page was read, and with a byte that is going to change anyway. It
// isn't needed, so nothing comes of its failing.
func (s *Target) own(pages []text.Page) {
	for i := range pages {
		p := &pages[i]
		if s.unloadable(p.Addr) {
			continue
		}
		for k := range p.Old {
			if p.Old[k] != p.New[k] {
				_, _ = s.Process.WriteAt(p.Old[k:k+1], p.Addr+uint64(k))
				break
			}
		}
	}
}

// libraryWent says whether an error is what comes of a library's going while its text is read.
func libraryWent(err error) bool {
	return errors.Is(err, text.Err) || errors.Is(err, process.ErrNoMapping)
}

// prepareText makes the pages of text. Images that are no longer where they were when they were planned are skipped; at the
// last try also those that may be unloaded and can't be read as they were planned: another may be in their place.
func (s *Target) prepareText(c *Change, last bool) (err error) {
	if c.maps, err = s.Process.Maps(); err != nil {
		return err
	}
	var patches [][]stub.Patch
	for i, a := range c.Arenas {
		if slices.Contains(c.Arenas[:i], a) {
			continue
		}
		var there []*mapped.Image
		for _, im := range a.Images {
			if !slices.Contains(c.Images, im) || im.Unloadable && !im.IsThere(c.maps) {
				continue
			}
			if im.Unloadable && last {
				if _, _, err := text.Prepare(s.Process, im.Islands, im.Sites); libraryWent(err) {
					continue
				}
			}
			there = append(there, im)
		}
		if len(there) == len(a.Images) {
			patches = append(patches, a.Code.Patches)
			continue
		}
		for _, im := range there {
			patches = append(patches, im.Islands, im.Sites)
		}
	}
	if len(s.Skipped) > 0 {
		for i, list := range patches {
			patches[i] = slices.DeleteFunc(slices.Clone(list), func(p stub.Patch) bool { return s.Skipped[p.ID] })
		}
	}
	if c.layers, c.all, err = text.Prepare(s.Process, patches...); err == nil {
		s.markFiled(c.all, c.maps, text.OldSide)
	}
	return err
}

// errInTheWay: a thread is inside a site.
var errInTheWay = errors.New("a thread stands inside a site")

// SwitchOn writes the sites while the process stands, and opens the gate.
func (s *Target) SwitchOn(ctx context.Context, c *Change) (stopped time.Duration, err error) {
	for try := 0; ; try++ {
		d, err := s.Process.Stop(ctx, process.StopOptions{}, func(st *process.Stopped) error { return s.SwitchOnIn(st, c) })
		stopped += d
		// Goroutines may not run again for long: functions that they are to go on in are skipped.
		if pe := (*preemptedError)(nil); errors.As(err, &pe) && try < StopRetries {
			if s.Skipped == nil {
				s.Skipped = map[uint32]bool{}
			}
			for _, id := range pe.ids {
				s.Skipped[id] = true
			}
			if err := s.prepareText(c, false); err != nil {
				return stopped, err
			}
			continue
		}
		// Another recorder may be looking at the process, only to be turned away.
		if (errors.Is(err, errInTheWay) || errors.Is(err, process.ErrTraced)) && try < StopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return stopped, err
	}
}

// SwitchOnIn does SwitchOn's work in a process that stands.
func (s *Target) SwitchOnIn(st *process.Stopped, c *Change) error {
	if !s.running {
		s.mapChunks(st) // first, since a thread may run on for a moment behind it, see process.ErrLate
	}
	maps, err := s.Process.Maps()
	if err != nil {
		return err
	}
	if !s.Holds(maps) {
		return fmt.Errorf("callreel: process %d: %w", s.Process.Pid(), process.ErrExec)
	}
	if s.Memory.Sandboxed() { // a guard may have gone through the list of gates already
		return fmt.Errorf("callreel: process %d: %w: it restricts its own system calls", s.Process.Pid(), refusal.Err)
	}
	// A library may have been unloaded since the pages were read, and another one be in its place.
	all := text.SameMemory(c.all, c.maps, maps)
	other, err := text.Changed(s.Process, all, maps, s.doubtful())
	if err != nil {
		return err
	}
	all = text.Without(all, maps, other)
	if err := s.checkSeccomp(st); err != nil { // it may have restricted itself since the first stop
		return err
	}
	if err := s.clearSites(st, maps, all, c); err != nil {
		return err
	}
	for _, layer := range c.layers {
		if err := text.Write(s.Process, text.Without(text.SameMemory(layer, c.maps, maps), maps, other)); err != nil {
			return err
		}
	}
	if !s.running {
		s.Memory.LetLoadsWait(s.Runtime.Loads) // who looks for libraries begins soon
	}
	s.running = true
	s.Memory.Beat() // the last one may be long ago on a busy machine, and threads would take us for dead
	return s.open(c.Arenas)
}

// maxMapped bounds how much of the chunks is mapped ahead, since the process stands meanwhile, and has as much more memory by its own
// count: 64 MiB took 10 ms. Chunks that are freed are used again first, so few programs use more.
const maxMapped = 8 << 20

// mapChunks makes the target's page tables ready for the chunks, whose pages exist already: otherwise its threads take
// a page fault for every 256 events at first, which is a fifth of a call's cost. Reading maps 16 pages a fault, and
// writable, since nobody wants to know of writes to a memfd's pages. It is not needed, so nothing comes of its failing.
func (s *Target) mapChunks(st *process.Stopped) {
	const populateRead = 22 // MADV_POPULATE_READ, Linux 5.14
	var calls []process.Call
	for _, r := range s.Memory.FirstTaken(maxMapped) {
		calls = append(calls, process.Call{Number: unix.SYS_MADVISE, Args: [6]uint64{s.Runtime.Ring + r.From, r.To - r.From, populateRead}})
	}
	_, _ = st.SyscallBatch(calls)
}

// clearSites moves threads that stand inside a site to the same instruction in its stub, where they go on as if they
// had come by the site; and the same for PCs that signal handlers will return to. Only the mappings of pages matter:
// where sites are not written, another library's code may stand.
func (s *Target) clearSites(st *process.Stopped, maps []process.Mapping, pages []text.Page, c *Change) error {
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
			if id, in := a.Code.InsideOf(pc); in && !s.Skipped[id] {
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
		if insideGuarded(regs, restricting) && s.guardTries < guardRetries {
			s.guardTries++
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
	if len(frames) > 0 && (s.handTries < handlerRetries || s.hasUnwinder(maps)) {
		// An unwinder that is at work there would meet another PC than before. Mostly the handler is over soon.
		s.handTries++
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
		if m.Perm&process.PermExec != 0 && m.Inode != 0 {
			files[m.Path] = true
		}
	}
	return len(files) == 1 && slices.ContainsFunc(s.Images, func(im *mapped.Image) bool {
		return files[im.Path] && im.Object != nil && im.Object.Section(".gcc_except_table") != nil
	})
}

// guardRetries is how often a stop is tried again for a thread that has passed where a guard will be. It is there for some
// nanoseconds; but a thread may do nothing else than call syscall. handlerRetries is the same for a signal handler above a site, for
// half a second in all: one that takes longer isn't about to throw.
const (
	guardRetries   = 8
	handlerRetries = StopRetries - 2
)

// insideGuarded says whether a thread stands behind the entry of a function that is to be guarded, and so may go on from there
// to restrict its system calls with nobody to notice. One that stands in a system call has made it.
func insideGuarded(regs *process.Regs, restricting []recovery.Span) bool {
	if _, in := regs.Syscall(); in {
		return false
	}
	return slices.ContainsFunc(restricting, func(f recovery.Span) bool { return regs.PC() > f.Base && regs.PC()-f.Base < f.Size })
}

// restricting lists the functions of arenas that are guarded for that. They are few, of very many.
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

// ReopenGates opens the gates that are closed, CloseGates closes all.
func (s *Target) ReopenGates() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var closed []*Arena
	for _, a := range s.Arenas {
		var word [8]byte
		if _, err := s.Process.ReadAt(word[:], a.Gate()); err != nil {
			return err
		}
		if !stub.IsOpen(word) {
			closed = append(closed, a)
		}
	}
	return s.open(closed)
}

func (s *Target) open(arenas []*Arena) error {
	for _, a := range arenas {
		if err := stub.OpenGate(s.Process, a.Gate(), s.Runtime.Ring+ring.SlotsOff); err != nil {
			return err
		}
	}
	return nil
}

func (s *Target) CloseGates() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, a := range s.Arenas {
		if err := stub.CloseGate(s.Process, a.Gate()); err != nil {
			return err
		}
	}
	return nil
}

// writeFirstStack tells an arena's code where the first stack is, and whose, if it goes by that.
func (s *Target) writeFirstStack(a *Arena) error {
	if !s.Runtime.NoTLS {
		return nil
	}
	return errors.Join(s.WriteWord(a.Gate()+stub.GateThread, uint64(s.FirstStack.TID)),
		s.WriteWord(a.Gate()+stub.GateStack, s.FirstStack.Start), s.WriteWord(a.Gate()+stub.GateStackSize, s.FirstStack.Size))
}

func (s *Target) WriteWord(addr, v uint64) error {
	b := [8]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)}
	_, err := s.Process.WriteAt(b[:], addr)
	return err
}
