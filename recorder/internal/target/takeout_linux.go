package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/text"
)

// Sites of some functions can be taken out while recording goes on, and put back. All that a function's sites rely on, and all that relies on
// them, is the function's own: jumps that are led to copies are of the same function, and a site that hosts an island for another is in the
// list of the function whose site needs it, wherever it lies (see plan). So its sites can go while those of others stay. What isn't touched is
// the arena, with islands in padding: threads that are in stubs go on there and come out behind the site, where the same instruction is as
// before. So nobody need be let out, and the stop lasts as long as it takes to write the pages.

// TakenOut is what became of functions whose sites were to be taken out or put back.
type TakenOut struct {
	Functions []uint32 // those for which it was done
	Sites     int      // bytes changed at so many places
	Stops     int
	Stopped   time.Duration // all stops together
	Longest   time.Duration // of them
}

// CanTakeOut says whether a function's sites may be taken out. A hook must see what it is there for, and a marker's event is written where the
// site is.
func CanTakeOut(fn *stub.Probe) bool {
	return fn.ID != 0 && !fn.IsMark() && fn.Hook == plan.HookNone && len(fn.Marks) == 0 && fn.Import == nil && len(fn.Sites) > 0
}

// A stop is to be short: what is done in it takes writeGoal, and to halt the threads takes time on top. How many sites that is for is seen from
// stop to stop. It depends on how many lie on a page, and on how long the kernel takes to list the process's mappings.
const (
	writeGoal                         = 3 * time.Millisecond
	firstTaken, leastTaken, mostTaken = 2_000, 250, 10_000
)

// partSize is how many sites are written in one stop.
type partSize int

func (t partSize) sites() int {
	if t == 0 {
		return firstTaken
	}
	return int(t)
}

// took notes how long it took in a stop to write so many sites. Of few it says nothing, unless that was too long.
func (t *partSize) took(sites int, d time.Duration) {
	if sites == 0 || d < writeGoal && sites < t.sites()/2 {
		return
	}
	*t = partSize(min(max(int64(sites)*int64(writeGoal)/max(int64(d), 1), leastTaken), mostTaken))
}

// TakeOut restores the text of functions, by their IDs, in stops of some milliseconds. Of a call that is open the exit doesn't come any more:
// where that matters their events are switched off before, and calls awaited. A function stays whose text isn't what was written, or on whose
// island a thread stands, and one whose sites can't go, see CanTakeOut.
func (s *Target) TakeOut(ctx context.Context, ids map[uint32]bool) (done TakenOut, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	defer s.taken.Add(1)
	for id := range ids {
		if s.out[id] {
			done.Functions = append(done.Functions, id)
		}
	}
	err = s.inParts(ids, func(id uint32) bool { return !s.out[id] }, func(p part) error { return s.takeOut(ctx, p, &done) })
	return done, err
}

// PutBack writes the sites again that TakeOut has taken out.
func (s *Target) PutBack(ctx context.Context, ids map[uint32]bool) (done TakenOut, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	defer s.taken.Add(1)
	err = s.inParts(ids, func(id uint32) bool { return s.out[id] }, func(p part) error { return s.putBack(ctx, p, &done) })
	return done, err
}

// Undisturbed calls f while no sites are written, and says whether it could.
func (s *Target) Undisturbed(f func()) bool {
	if !s.writing.TryLock() {
		return false
	}
	defer s.writing.Unlock()
	f()
	return true
}

// WhenUndisturbed calls f as soon as no sites are written.
func (s *Target) WhenUndisturbed(f func()) {
	s.writing.Lock()
	defer s.writing.Unlock()
	f()
}

// IsWritten says whether a site is in the text now, unless somebody else has changed that. It is called while no sites are written: within
// Undisturbed or WhenUndisturbed.
func (s *Target) IsWritten(p *stub.Patch) bool { return p.ID == 0 || !s.out[p.ID] && !s.Skipped[p.ID] }

// Taken is another number each time that sites were taken out, or put back.
func (s *Target) Taken() uint64 { return s.taken.Load() }

// part is functions whose sites are written in one stop.
type part struct {
	ids     map[uint32]bool
	patches []stub.Patch // but for islands in padding
}

// inParts calls f for the patches of functions for which is says so, in the order of their addresses, in parts for one stop each. The caller
// holds writing.
func (s *Target) inParts(ids map[uint32]bool, is func(id uint32) bool, f func(part) error) error {
	s.Mu.Lock()
	arenas := slices.Clone(s.Arenas)
	s.Mu.Unlock()
	now := part{ids: map[uint32]bool{}}
	for _, a := range arenas {
		if a.Code == nil {
			continue
		}
		of := s.patchesOf(a)
		var order []uint32
		for id, asked := range ids {
			if asked && len(of.of(id)) > 0 && is(id) {
				order = append(order, id)
			}
		}
		slices.SortFunc(order, func(x, y uint32) int { return cmp.Compare(of.of(x)[0], of.of(y)[0]) })
		for _, id := range order {
			if len(now.patches)+len(of.of(id)) > s.partSize.sites() && len(now.patches) > 0 {
				if err := f(now); err != nil {
					return err
				}
				now = part{ids: map[uint32]bool{}}
			}
			now.ids[id] = true
			for _, i := range of.of(id) {
				now.patches = append(now.patches, a.Code.Patches[i])
			}
		}
	}
	if len(now.patches) == 0 {
		return nil
	}
	return f(now)
}

// errMoved: the text isn't what was prepared.
var errMoved = errors.New("the text has been changed by somebody else")

// takeOut takes a part's sites out. The caller holds writing.
func (s *Target) takeOut(ctx context.Context, p part, done *TakenOut) error {
	for try := 0; ; try++ {
		s.Mu.Lock()
		arenas := spansOf(s.Arenas)
		s.Mu.Unlock()
		w, err := prepareUndoBy(s.Process, &recovery.Record{Arenas: arenas, Patches: p.patches, Golang: s.lang.golang}, func(maps []process.Mapping) []uint64 {
			s.findRestorers(maps)
			return s.restorers
		})
		if err != nil {
			return err
		}
		p.drop(w.late) // by which unwinders are led to what is known of stubs
		if len(w.late) > 0 {
			continue
		}
		if err = errMoved; !w.torn && w.foreign == 0 {
			w.judgeBy(s)
			var d time.Duration
			d, err = s.Process.Stop(ctx, s.lang.stopOptions(), func(st *process.Stopped) error {
				defer s.timed(len(p.patches))()
				return s.takeOutIn(st, w)
			})
			done.count(d)
		}
		switch {
		case err == nil:
			if s.out == nil {
				s.out = map[uint32]bool{}
			}
			for id := range p.ids {
				s.out[id] = true
				done.Functions = append(done.Functions, id)
			}
			done.Sites += len(p.patches)
			return nil
		case !(errors.Is(err, errInTheWay) || errors.Is(err, errMoved) || errors.Is(err, process.ErrTraced)):
			return err
		case try >= StopRetries:
			if errors.Is(err, errMoved) {
				return nil // a library has gone, or somebody else's jumps are there: they stay as they are
			}
			return fmt.Errorf("callreel: sites could not be taken out: %w", err)
		}
		time.Sleep(time.Millisecond << min(try, 5))
	}
}

// drop leaves out the functions of patches.
func (p *part) drop(patches []stub.Patch) {
	for _, x := range patches {
		delete(p.ids, x.ID)
	}
	p.patches = slices.DeleteFunc(p.patches, func(x stub.Patch) bool { return !p.ids[x.ID] })
}

// count counts a stop.
func (t *TakenOut) count(d time.Duration) {
	if d > 0 {
		t.Stops++
		t.Stopped += d
		t.Longest = max(t.Longest, d)
	}
}

// timed notes, when what it returns is called, how long it took to write so many sites. The caller holds writing.
func (s *Target) timed(sites int) func() {
	began := time.Now()
	return func() { s.partSize.took(sites, time.Since(began)) }
}

// takeOutIn restores prepared text in a stopped process.
func (s *Target) takeOutIn(st *process.Stopped, w *undoWork) error {
	maps, err := s.Process.Maps()
	if err != nil {
		return err
	}
	if !s.Holds(maps) {
		return fmt.Errorf("callreel: process %d: %w", s.Process.Pid(), process.ErrExec)
	}
	pages := text.SameMemory(w.text.Pages, w.maps, maps)
	other, err := text.Changed(s.Process, pages, maps, w.doubtful)
	if err != nil {
		return err
	}
	if len(other) > 0 || len(pages) < len(w.text.Pages) {
		return errMoved
	}
	if err := w.findIslands(maps); err != nil {
		return err
	}
	if kept, err := w.leaveHosted(st, maps); err != nil || kept != "" {
		return errors.Join(err, fmt.Errorf("%w: %s", errInTheWay, kept))
	}
	for _, layer := range slices.Backward(w.text.Layers) {
		if err := text.WriteThere(s.Process, layer); err != nil {
			return err
		}
	}
	return nil
}

// putBack puts a part's sites back. The caller holds writing.
func (s *Target) putBack(ctx context.Context, p part, done *TakenOut) error {
	c := &Change{patches: p.patches}
	s.Mu.Lock()
	c.Arenas = slices.Clone(s.Arenas)
	s.Mu.Unlock()
	for try := 0; ; try++ {
		err := s.preparePart(c)
		if err == nil {
			var d time.Duration
			d, err = s.Process.Stop(ctx, s.lang.stopOptions(), func(st *process.Stopped) error {
				defer s.timed(len(p.patches))()
				_, err := s.writeSites(st, c, func(id uint32) bool { return p.ids[id] })
				return err
			})
			done.count(d)
		}
		var pre *preemptedError
		switch {
		case err == nil:
			for id := range p.ids {
				delete(s.out, id)
				done.Functions = append(done.Functions, id)
			}
			done.Sites += len(p.patches)
			return nil
		case errors.As(err, &pre): // goroutines are to go on inside of them: another time
			for _, id := range pre.ids {
				delete(p.ids, id)
			}
			p.patches = slices.DeleteFunc(p.patches, func(x stub.Patch) bool { return !p.ids[x.ID] })
			c.patches = p.patches
			continue
		case libraryWent(err): // or came back, with other bytes
			if try >= StopRetries {
				return nil
			}
		case !(errors.Is(err, errInTheWay) || errors.Is(err, process.ErrTraced)):
			return err
		case try >= StopRetries:
			return fmt.Errorf("callreel: sites could not be put back: %w", err)
		}
		time.Sleep(time.Millisecond << min(try, 5))
	}
}

// preparePart makes the pages of a change that has its patches. What is of libraries that have gone is left.
func (s *Target) preparePart(c *Change) (err error) {
	if c.maps, err = s.Process.Maps(); err != nil {
		return err
	}
	gone := map[*mapped.Image]bool{}
	for _, im := range s.Images {
		if im.Unloadable && !im.IsThere(c.maps) {
			gone[im] = true
		}
	}
	there := slices.DeleteFunc(slices.Clone(c.patches), func(p stub.Patch) bool { return gone[s.imageAt(p.Addr)] })
	if c.layers, c.all, err = text.Prepare(s.Process, there); err == nil {
		s.markFiled(c.all, c.maps, text.OldSide)
	}
	return err
}
