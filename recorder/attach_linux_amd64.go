package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// session is one recording's hold on a process.
type session struct {
	p        *process.Process
	images   []*image
	arenas   []*arena
	ranges   []idRange // sorted by first
	rt       probe.Runtime
	memory   *ring.Memory
	fd       int // of the ring memory, -1 when there is none
	size     uint64
	chunks   int             // of the pool
	golang   *probe.GoImage  // the program, if it is one in Go
	async    *asyncFrame     // of a Go program
	leftOut  map[uint32]bool // functions that goroutines were preempted in, inside a site
	goStacks uint64          // where in the ring memory the stacks for its threads begin

	maps       []process.Mapping // as they were before the sites' pages were read
	restorers  []uint64          // see findRestorers
	patches    []probe.Patch
	patched    bool
	guardTries int           // see guardRetries
	stopped    time.Duration // that the process stood still for attaching
}

// stopRetries is how often a stop is tried that found a thread where it must not be.
const stopRetries = 20

// openSession checks that recording can begin at all.
func openSession(pid int) (*session, error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	s := &session{p: p, fd: -1}
	st, err := p.Status()
	if err == nil && st.Seccomp == 1 {
		err = fmt.Errorf("callreel: process %d: %w: it runs in strict seccomp mode, which kills on any system call that setting up would need", pid, ErrRefused)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close lets go of everything on our side.
func (s *session) close() {
	for _, im := range s.images {
		im.close()
	}
	s.images = nil
	s.closeMemory()
	s.p.Close()
}

// prepare makes the stubs and writes them, and everything else that doesn't need the process to stand.
func (s *session) prepare() (layers [][]page, all []page, err error) {
	for i, a := range s.arenas {
		s.rt.Gates[i] = a.gate()
	}
	for _, a := range s.arenas {
		if err := a.compile(s.rt); err != nil {
			return nil, nil, err
		}
		if err := s.writeWord(a.gate()+probe.GateOwn, s.rt.Ring); err != nil {
			return nil, nil, err
		}
		if a.mem == nil { // else it is there already
			if _, err := s.p.WriteAt(a.code.Bytes, a.base); err != nil {
				return nil, nil, err
			}
		}
		a.code.Bytes = nil
		if s.patches == nil {
			s.patches = slices.Clip(a.code.Patches)
		} else {
			s.patches = append(s.patches, a.code.Patches...)
		}
	}
	if err := s.memory.Populate(); err != nil {
		return nil, nil, err
	}
	if s.golang != nil {
		if err := s.prepareGo(); err != nil {
			return nil, nil, err
		}
	}
	rec := recovery{arenas: s.arenaSpans(), patches: s.patches}
	if err := rec.put(s.memory.Recovery()); err != nil {
		return nil, nil, err
	}
	for try := 0; ; try++ {
		layers, all, err = s.prepareText(try >= leftRetries)
		if libraryWent(err) && try < leftRetries {
			time.Sleep(time.Millisecond)
			continue
		}
		if err == nil {
			s.own(all)
		}
		s.restorers = findRestorers(s.p, s.maps, rec.inArena)
		return layers, all, err
	}
}

// own makes the kernel give the process its own copies of the pages that are going to be written, since that takes most of
// the writing and the process would stand meanwhile: one byte of each page is written as it is. That is done only where
// nothing else can have been mapped since the page was read, and with a byte that is going to change anyway. It
// isn't needed, so nothing comes of its failing.
func (s *session) own(pages []page) {
	for i := range pages {
		p := &pages[i]
		if s.loose(p.addr) {
			continue
		}
		for k := range p.old {
			if p.old[k] != p.new[k] {
				_, _ = s.p.WriteAt(p.old[k:k+1], p.addr+uint64(k))
				break
			}
		}
	}
}

// libraryWent says whether an error is what comes of a library's going while its text is read.
func libraryWent(err error) bool {
	return errors.Is(err, ErrText) || errors.Is(err, process.ErrNoMapping)
}

// prepareText makes the pages of text. Images that are no longer where they were when they were planned are left out; at the
// last try also those that may be unloaded and can't be read as they were planned: another may be in their place.
func (s *session) prepareText(last bool) (layers [][]page, all []page, err error) {
	if s.maps, err = s.p.Maps(); err != nil {
		return nil, nil, err
	}
	patches := s.patches
	for _, im := range s.images {
		if !im.loose {
			continue
		}
		away := slices.ContainsFunc(im.text, func(m process.Mapping) bool { return !sameMapping(im.text, s.maps, m.Start) })
		if !away && last {
			_, _, err := prepareLayers(s.p, patchesOf(patches, im, true))
			away = libraryWent(err)
		}
		if away {
			patches = patchesOf(patches, im, false)
		}
	}
	if len(s.leftOut) > 0 {
		patches = slices.DeleteFunc(slices.Clone(patches), func(p probe.Patch) bool { return s.leftOut[p.ID] })
	}
	return prepareLayers(s.p, patches)
}

// patchesOf returns those patches that are in the image, or those that are not.
func patchesOf(patches []probe.Patch, im *image, in bool) []probe.Patch {
	return slices.DeleteFunc(slices.Clone(patches), func(p probe.Patch) bool { return (p.Addr >= im.lo && p.Addr < im.hi) != in })
}

// errInTheWay: a thread stood inside a site.
var errInTheWay = errors.New("a thread stands inside a site")

// switchOn writes the sites while the process stands, and opens the gate.
func (s *session) switchOn(ctx context.Context, layers [][]page, all []page) error {
	for try := 0; ; try++ {
		d, err := s.p.Stop(ctx, process.StopOptions{}, func(st *process.Stopped) error { return s.onIn(st, layers, all) })
		s.stopped += d
		// Goroutines may not run again for long: functions that they are to go on in are left out.
		if pe := (*preemptedError)(nil); errors.As(err, &pe) && try < stopRetries {
			for _, id := range pe.ids {
				s.leftOut[id] = true
			}
			if layers, all, err = s.prepareText(false); err != nil {
				return err
			}
			continue
		}
		// Another recorder may be looking at the process, only to be turned away.
		if (errors.Is(err, errInTheWay) || errors.Is(err, process.ErrTraced)) && try < stopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return err
	}
}

// onIn does switchOn's work in a process that stands.
func (s *session) onIn(st *process.Stopped, layers [][]page, all []page) error {
	maps, err := s.p.Maps()
	if err != nil {
		return err
	}
	if m := ringMapping(maps); m == nil || m.Start != s.rt.Ring {
		return fmt.Errorf("callreel: process %d: %w", s.p.Pid(), process.ErrExec)
	}
	// A library may have been unloaded since the pages were read, and another one be in its place.
	all = sameMemory(all, s.maps, maps)
	other, err := changed(s.p, all, maps, s.loose)
	if err != nil {
		return err
	}
	all = without(all, maps, other)
	if err := checkSeccomp(st); err != nil { // it may have restricted itself since the first stop
		return err
	}
	s.mapChunks(st)
	if err := s.clearSites(st, maps, all); err != nil {
		return err
	}
	s.patched = true
	for _, layer := range layers {
		if err := writePages(s.p, without(sameMemory(layer, s.maps, maps), maps, other), newSide); err != nil {
			return err
		}
	}
	return s.gate(s.rt.Ring + ring.SlotsOff)
}

// maxMapped bounds how much of the chunks is mapped ahead, since the process stands meanwhile: 16 MiB are some 2 ms. The
// chunk that was freed last is used next, so with a recorder that keeps up few more are ever used.
const maxMapped = 16 << 20

// mapChunks makes the target's page tables ready for the chunks, whose pages exist already: otherwise its threads take
// a page fault for every 256 events at first, which is a fifth of a call's cost. Reading maps 16 pages a fault, and
// writable, since nobody wants to know of writes to a memfd's pages. It is not needed, so nothing comes of its failing.
func (s *session) mapChunks(st *process.Stopped) {
	const populateRead = 22 // MADV_POPULATE_READ, Linux 5.14
	size := min(uint64(s.chunks)*ring.ChunkSize, maxMapped)
	_, _ = st.SyscallBatch([]process.Call{{Number: unix.SYS_MADVISE, Args: [6]uint64{s.rt.Ring + ring.ChunksOff, size, populateRead}}})
}

// clearSites moves threads that stand inside a site to the same instruction in its stub, where they go on as if they
// had come by the site; and the same for PCs that signal handlers will return to. Only the mappings of pages matter:
// where sites are not written, another library's code may stand.
func (s *session) clearSites(st *process.Stopped, maps []process.Mapping, pages []page) error {
	written := map[uint64]bool{} // starts of mappings
	for i := range pages {
		if m := mappingAt(maps, pages[i].addr); m != nil {
			written[m.Start] = true
		}
	}
	inside := func(pc uint64) *probe.Code {
		m := mappingAt(maps, pc)
		if m == nil || !written[m.Start] {
			return nil
		}
		for _, a := range s.arenas {
			if id, in := a.code.InsideOf(pc); in && !s.leftOut[id] {
				return a.code
			}
		}
		return nil
	}
	if s.async != nil {
		if err := s.preempted(st, maps, func(pc uint64) bool { return inside(pc) != nil }); err != nil {
			return err
		}
	}
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return err
		}
		if s.insideGuarded(regs) && s.guardTries < guardRetries {
			s.guardTries++
			return fmt.Errorf("callreel: process %d, thread %d at %#x, where it may be about to restrict its system calls: %w", s.p.Pid(), t.TID, regs.Rip, errInTheWay)
		}
		code := inside(regs.Rip)
		if code == nil {
			continue
		}
		to, ok := code.StubFor(regs.Rip)
		if !ok {
			return fmt.Errorf("callreel: process %d, thread %d at %#x: %w", s.p.Pid(), t.TID, regs.Rip, errInTheWay)
		}
		if _, in, err := t.InSyscall(); err != nil || in {
			// A restart would take two bytes off the new PC. No site holds a system call, so this is only a stop on its way.
			return fmt.Errorf("callreel: process %d, thread %d at %#x: %w", s.p.Pid(), t.TID, regs.Rip, errInTheWay)
		}
		regs.Rip = to
		if err := t.SetRegs(regs); err != nil {
			return err
		}
	}
	frames, err := interruptedPCs(st, maps, s.restorers, s.golang != nil, func(pc uint64) bool { return inside(pc) != nil })
	if err != nil {
		return err
	}
	for _, f := range frames {
		to, ok := inside(f.pc).StubFor(f.pc)
		if !ok {
			return fmt.Errorf("callreel: process %d, thread %d in a handler above %#x: %w", s.p.Pid(), f.tid, f.pc, errInTheWay)
		}
		if err := s.writeWord(f.at, to); err != nil {
			return err
		}
	}
	return nil
}

// guardRetries is how often a stop is tried again for a thread that has passed where a guard will be. It is there for some
// nanoseconds; but a thread may do nothing else than call syscall.
const guardRetries = 8

// insideGuarded says whether a thread stands behind the entry of a function that is to be guarded, and so may go on from there
// to restrict its system calls with nobody to notice. One that stands in a system call has made it.
func (s *session) insideGuarded(regs *process.Regs) bool {
	if int64(regs.Orig_rax) >= 0 {
		return false
	}
	for _, a := range s.arenas {
		for i := range a.fns {
			f := &a.fns[i]
			if at := f.Addr + f.Slide; f.Guard != probe.GuardNone && regs.Rip > at && regs.Rip-at < f.Size {
				return true
			}
		}
	}
	return false
}

// gate opens all gates with the address of the slots, or closes them with 0.
func (s *session) gate(v uint64) error {
	for _, a := range s.arenas {
		if err := s.writeWord(a.gate(), v); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) writeWord(addr, v uint64) error {
	b := [8]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)}
	_, err := s.p.WriteAt(b[:], addr)
	return err
}

// ringMapping finds a recorder's ring memory in a process.
func ringMapping(maps []process.Mapping) *process.Mapping {
	for i := range maps {
		if maps[i].Path == ring.MappingName {
			return &maps[i]
		}
	}
	return nil
}
