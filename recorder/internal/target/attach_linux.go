package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/text"
)

// Change is sites that are to be written in one stop.
type Change struct {
	Arenas []*Arena  // where they lead
	Fresh  []*Arena  // of these, those whose code isn't made yet
	Ranges []IDRange // of these
	Images []*mapped.Image

	patches []stub.Patch // of functions whose sites are put back; nil for all of the images

	maps   []process.Mapping // as they were before the sites' pages were read
	layers [][]text.Page
	all    []text.Page
	// restricting are the functions that have a hook since they restrict system calls, where they are.
	restricting []recovery.Span
}

// StopRetries is how often a stop is tried that found a thread where it must not be.
const StopRetries = 20

// All is the change by which recording begins.
func (s *Target) All() *Change {
	return &Change{Arenas: s.Arenas, Fresh: s.Arenas, Images: s.Images}
}

// Prepare makes the stubs and writes them, and everything else that doesn't need the process stopped. What doesn't depend on each
// other is done at the same time.
func (s *Target) Prepare(c *Change) error {
	s.writing.Lock()
	defer s.writing.Unlock()
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
		if s.Runtime.Follow {
			s.Runtime.Held = s.Arenas[0].data()
		}
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
			r := &recovery.Record{Patches: a.Code.Patches}
			for _, im := range a.Images {
				r.Semaphores = append(r.Semaphores, s.semaphoresOf(im, maps)...)
			}
			r.Slots = slotsOf(a, maps)
			noted = errors.Join(noted, s.journal.Add(r))
			s.slots = append(s.slots, r.Slots...)
			s.semaphores = append(s.semaphores, r.Semaphores...)
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
// the writing and the process would be stopped meanwhile: one byte of each page is written as it is. That is done only where
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
	if len(s.Skipped)+len(s.out) > 0 {
		for i, list := range patches {
			patches[i] = slices.DeleteFunc(slices.Clone(list), func(p stub.Patch) bool { return s.Skipped[p.ID] || s.out[p.ID] && !p.Island })
		}
	}
	if c.layers, c.all, err = text.Prepare(s.Process, patches...); err == nil {
		s.markFiled(c.all, c.maps, text.OldSide)
	}
	return err
}

// SwitchOn writes the sites while the process is stopped, and opens the gate.
func (s *Target) SwitchOn(ctx context.Context, c *Change) (stopped time.Duration, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for try := 0; ; try++ {
		d, err := s.Process.Stop(ctx, s.lang.stopOptions(), func(st *process.Stopped) error { return s.SwitchOnIn(st, c) })
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

// SwitchOnIn does SwitchOn's work in a stopped process.
func (s *Target) SwitchOnIn(st *process.Stopped, c *Change) error {
	if !s.running {
		s.mapChunks(st) // first, since a thread may run on for a moment behind it, see process.ErrLate
	}
	maps, err := s.writeSites(st, c, func(id uint32) bool { return !s.Skipped[id] && !s.out[id] })
	if err != nil {
		return err
	}
	if err := s.rebind(c, maps); err != nil {
		return err
	}
	if err := s.countUp(c.Images, maps); err != nil {
		return err
	}
	if !s.running {
		s.Memory.LetLoadsWait(s.Runtime.Loads) // who looks for libraries begins soon
		s.On = ring.Ticks()
	}
	s.running = true
	s.Memory.Beat() // the last one may be long ago on a busy machine, and threads would take us for dead
	return s.open(c.Arenas)
}

// writeSites writes the sites of a change in a stopped process: those of functions for which of says so. It returns the mappings.
func (s *Target) writeSites(st *process.Stopped, c *Change, of func(id uint32) bool) ([]process.Mapping, error) {
	maps, err := s.Process.Maps()
	if err != nil {
		return nil, err
	}
	if !s.Holds(maps) {
		return nil, fmt.Errorf("callreel: process %d: %w", s.Process.Pid(), process.ErrExec)
	}
	if s.Memory.Sandboxed() { // a hook may have gone through the list of gates already
		return nil, fmt.Errorf("callreel: process %d: %w: it restricts its own system calls", s.Process.Pid(), refusal.Err)
	}
	// A library may have been unloaded since the pages were read, and another one be in its place.
	all := text.SameMemory(c.all, c.maps, maps)
	other, err := text.Changed(s.Process, all, maps, s.doubtful())
	if err != nil {
		return nil, err
	}
	all = text.Without(all, maps, other)
	if err := s.checkSeccomp(st, c.Arenas); err != nil { // it may have restricted itself since the first stop
		return nil, err
	}
	if err := s.clearSites(st, maps, all, c, of); err != nil {
		return nil, err
	}
	for _, layer := range c.layers {
		if err := text.Write(s.Process, text.Without(text.SameMemory(layer, c.maps, maps), maps, other)); err != nil {
			return nil, err
		}
	}
	return maps, nil
}

// maxMapped bounds how much of the chunks is mapped ahead, since the process is stopped meanwhile, and has as much more memory by its own
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
