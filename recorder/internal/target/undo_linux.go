package target

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	mapkeys "maps"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/text"
)

// Undone is what one detach did.
type Undone struct {
	Stopped time.Duration
	Odd     int    // semaphores that somebody else has set to less than we have added
	foreign int    // patches that somebody else had changed, left alone
	Kept    string // why arenas stay mapped, empty if they don't
	Gone    bool   // the process has ended or replaced its program: there was nothing to undo
}

// undo restores the text of a process and unmaps what was mapped in it. Before it the gates are closed. The order is
// what makes it safe against our death at any instant and against threads inside stubs: sites first, so that no thread
// enters a stub again; then threads are let out of the stubs; then the islands, which lead there; then memory that
// nobody can come back to.
//
// shared is what is unmapped last: the recovery memory first, which goes when nothing else is left. s is nil where its recorder is dead.
func undo(ctx context.Context, p *process.Process, r *recovery.Record, shared []sharedSpan, s *Target) (Undone, error) {
	w, err := prepareUndo(p, r)
	for try := 0; (err == nil && w.torn || errors.Is(err, process.ErrNoMapping)) && try < UndoRetries; try++ { // a library went just then
		w, err = prepareUndo(p, r)
	}
	if err != nil {
		if !p.Alive() || errors.Is(err, process.ErrExec) || errors.Is(err, process.ErrNoProcess) {
			return Undone{Gone: true}, nil
		}
		return Undone{}, err
	}
	w.shared = shared
	w.judgeBy(s)
	u := Undone{foreign: w.foreign}
	// A handler returns soon, as a rule, and then nothing of ours is left.
	for try := 0; ; try++ {
		w.patient, w.last = try < patientTries, try >= UndoRetries
		options := w.stopOptions()
		options.Timeout = process.PatientStopTimeout
		d, serr := p.Stop(ctx, options, func(st *process.Stopped) (err error) {
			u.Kept, err = w.in(st)
			return err
		})
		u.Stopped += d
		err = serr
		// Another recorder may be looking at the process, only to be turned away.
		again := err == nil && u.Kept != "" && !w.forbidden && w.rebound == "" || errors.Is(err, process.ErrTraced)
		if !again || try >= UndoRetries {
			break
		}
		time.Sleep(time.Millisecond << min(try, 6))
	}
	u.Odd = w.odd
	if errors.Is(err, process.ErrNoProcess) || errors.Is(err, process.ErrExec) {
		u.Gone = true
		return u, nil
	}
	return u, err
}

// undoWork is what undo has to do while the process is stopped, made ready before.
type undoWork struct {
	traits
	p          *process.Process
	r          *recovery.Record
	shared     []sharedSpan
	maps       []process.Mapping // as they were before text was read
	unloadable func(addr uint64) bool
	doubtful   func(p *text.Page) bool
	sites      []stub.Patch
	islands    []stub.Patch      // in the order of their addresses
	hosting    []stub.Patch      // sites that are hosted islands, likewise
	upper      []stub.Patch      // sites of higher levels
	hops       map[uint64]bool   // addresses of the islands
	hosted     map[uint64]uint64 // where hosted islands lead, by their addresses
	text       *text.Undo        // nil once text was restored in another way
	torn       bool              // there is none: some can't be read
	foreign    int
	forbidden  bool // the process's seccomp filters don't let memory be unmapped
	restorers  []uint64
	late       []stub.Patch // sites that are restored last, see splitLate
	patient    bool         // it will be tried again soon
	last       bool         // it is the last try
	// semaphores are those that are counted down when text is restored, own those before, by the recorder itself.
	semaphores []recovery.Semaphore
	own        *Target
	odd        int // semaphores that somebody else has set to less
	// rebound says which slot somebody else has written, so that arenas stay; empty if none.
	rebound string
	anew    map[FileID]bool // see cameAnew
}

func prepareUndo(p *process.Process, r *recovery.Record) (*undoWork, error) {
	return prepareUndoBy(p, r, func(maps []process.Mapping) []uint64 { return findRestorers(p, maps, r.InArena) })
}

// prepareUndoBy is prepareUndo where it is known by which code signal handlers return.
func prepareUndoBy(p *process.Process, r *recovery.Record, restorers func([]process.Mapping) []uint64) (*undoWork, error) {
	w := &undoWork{traits: traitsOf(r.Golang), p: p, r: r}
	w.semaphores = inPlace(p, r)
	w.islands, w.sites = text.Split(r.Patches)
	w.islands = text.ByAddress(w.islands)
	if w.unwound {
		w.sites, w.late = splitLate(p, r, w.sites)
	}
	for i := range w.sites {
		s := &w.sites[i]
		if s.Hosted {
			if _, jumps := generator().JumpOf(s); jumps {
				w.hosting = append(w.hosting, *s)
			}
		}
		if s.Level > 1 {
			w.upper = append(w.upper, *s)
		}
	}
	w.hosting = text.ByAddress(w.hosting)
	var err error
	if w.maps, err = p.Maps(); err != nil {
		return nil, err
	}
	w.anew = cameAnew(p, r, w.maps)
	// A library that goes just now is looked at again; if its file was truncated it stays as it is.
	w.text, err = text.PrepareUndo(p, w.maps, slices.Concat(w.islands, w.sites))
	if w.torn = errors.Is(err, process.ErrNoMapping); err != nil && !w.torn {
		return nil, err
	}
	if w.text != nil {
		w.foreign = w.text.Foreign
	}
	w.restorers = restorers(w.maps)
	return w, nil
}

// judgeBy has a target tell what may have gone, if there is one.
func (w *undoWork) judgeBy(s *Target) {
	w.unloadable, w.doubtful = func(uint64) bool { return true }, func(*text.Page) bool { return true }
	if s != nil {
		w.own, w.semaphores = s, nil
		if w.text != nil {
			s.markFiled(w.text.Pages, w.maps, text.NewSide)
		}
		w.unloadable, w.doubtful = s.unloadable, s.doubtful()
	}
}

// findIslands finds out which islands are there. Where a library was may be code of another by now.
func (w *undoWork) findIslands(maps []process.Mapping) error {
	w.hops, w.hosted = map[uint64]bool{}, map[uint64]uint64{}
	there, err := w.there(maps, w.islands)
	for _, i := range there {
		w.hops[i.Addr] = true
	}
	if err != nil {
		return err
	}
	hosted, err := w.there(maps, w.hosting)
	for i := range hosted {
		s := &hosted[i]
		w.hosted[s.Addr], _ = generator().JumpOf(s)
	}
	return err
}

// there omits patches of libraries that may have gone, where they are not in place.
func (w *undoWork) there(maps []process.Mapping, patches []stub.Patch) ([]stub.Patch, error) {
	at := map[uint64]*text.Page{}
	var pages []text.Page
	for i := range patches {
		addr := patches[i].Addr &^ (text.PageSize - 1)
		if m := process.FindMapping(maps, addr); at[addr] == nil && w.unloadable(addr) && m != nil && m.Perm&process.PermExec != 0 {
			at[addr] = &text.Page{}
			pages = append(pages, text.Page{Addr: addr, Old: make([]byte, text.PageSize)})
		}
	}
	slices.SortFunc(pages, func(a, b text.Page) int { return cmp.Compare(a.Addr, b.Addr) })
	pages, err := text.ReadThere(w.p, pages)
	if err != nil {
		return nil, err
	}
	clear(at)
	for i := range pages {
		at[pages[i].Addr] = &pages[i]
	}
	return slices.DeleteFunc(slices.Clone(patches), func(p stub.Patch) bool {
		if !w.unloadable(p.Addr) {
			return false
		}
		pg, off := at[p.Addr&^(text.PageSize-1)], p.Addr&(text.PageSize-1)
		return pg == nil || pg.Old == nil || text.Crosses(&p) || !bytes.Equal(pg.Old[off:][:len(p.New())], p.New())
	}), nil
}

// in does the work in a stopped process, and returns why memory had to stay mapped, empty if it wasn't. It can be
// done again.
func (w *undoWork) in(st *process.Stopped) (kept string, err error) {
	if err := w.unbind(); err != nil {
		return "", err
	}
	if w.own != nil && len(w.own.semaphores) > 0 {
		maps, err := w.p.Maps()
		if err != nil {
			return "", err
		}
		if !w.shared[0].isIn(maps) {
			return "", process.ErrExec
		}
		odd, err := countDown(w.p, w.own.semaphores, maps, false)
		w.odd += odd
		if err != nil {
			return "", err
		}
	}
	kept, done, err := w.atOnce(st)
	if done || err != nil {
		return kept, err
	}
	return w.stepwise(st)
}

func inHandler(frames []interrupted) string {
	return fmt.Sprintf("thread %d is in a signal handler that will return into a stub", frames[0].tid)
}

// stepwise does it where threads may be in stubs, or the text isn't what was prepared: with what is there now.
func (w *undoWork) stepwise(st *process.Stopped) (kept string, err error) {
	maps, err := w.p.Maps()
	if err != nil {
		return "", err
	}
	if !w.shared[0].isIn(maps) {
		return "", process.ErrExec
	}
	w.text = nil
	// A library may have been unloaded since the text was read, and another one be in its place.
	pages, _, err := text.Restore(w.p, maps, w.sites)
	if err != nil {
		return "", err
	}
	if err := w.findIslands(maps); err != nil {
		return "", err
	}
	if kept, err := w.leaveHosted(st, maps); err != nil || kept != "" {
		return kept, err
	}
	if err := w.restoreUpper(maps); err != nil {
		return "", err
	}
	if err := text.WriteThere(w.p, pages); err != nil {
		return "", err
	}
	inside := func(pc uint64) bool { return w.r.InArena(pc) || w.hops[pc] }
	stuck, err := letOut(st, inside, nudges)
	if err != nil {
		return "", err
	}
	frames, err := interruptedPCs(st, maps, w.restorers, w.handlers, inside)
	if err != nil {
		return "", err
	}
	if len(frames) > 0 && len(w.late) > 0 && !w.last {
		// An unwinder may be at work there.
		return inHandler(frames), nil
	}
	if err := w.restoreLate(maps); err != nil {
		return "", err
	}
	onIsland := false
	switch {
	case stuck != 0:
		kept = fmt.Sprintf("thread %d did not leave a stub", stuck)
		onIsland = true // for all we know
	case len(frames) > 0:
		kept = inHandler(frames)
		onIsland = slices.ContainsFunc(frames, func(f interrupted) bool { return w.hops[f.pc] })
	}
	if onIsland {
		return kept, nil // islands are in padding, where nothing else comes
	}
	pages, _, err = text.Restore(w.p, maps, w.islands)
	if err != nil {
		return kept, err
	}
	if err := text.WriteThere(w.p, pages); err != nil || kept != "" {
		return kept, err
	}
	return w.unmap(st, maps)
}

// restoreLate restores the sites that are restored last. Behind that semaphores are counted down, once.
func (w *undoWork) restoreLate(maps []process.Mapping) error {
	pages, _, err := text.Restore(w.p, maps, w.late)
	if err == nil {
		err = text.WriteThere(w.p, pages)
	}
	if err != nil {
		return err
	}
	list := w.semaphores
	w.semaphores = nil
	odd, err := countDown(w.p, list, maps, w.r.Forked)
	w.odd += odd
	return err
}

// unmap unmaps what nobody can come back to, and returns why something had to stay.
func (w *undoWork) unmap(st *process.Stopped, maps []process.Mapping) (kept string, err error) {
	if w.rebound != "" {
		return w.rebound, nil
	}
	err = unmap(st, w.r, w.shared, maps)
	if errors.Is(err, process.ErrSeccomp) {
		w.forbidden = true
	}
	if w.forbidden || errors.Is(err, process.ErrNoSafeThread) {
		return err.Error(), nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}

// restoreUpper restores the sites of higher levels, the highest first, before the others.
func (w *undoWork) restoreUpper(maps []process.Mapping) error {
	byLevel := map[uint8][]stub.Patch{}
	for _, s := range w.upper {
		byLevel[s.Level] = append(byLevel[s.Level], s)
	}
	for _, level := range slices.Backward(slices.Sorted(mapkeys.Keys(byLevel))) {
		pages, _, err := text.Restore(w.p, maps, byLevel[level])
		if err != nil {
			return err
		}
		if err := text.WriteThere(w.p, pages); err != nil {
			return err
		}
	}
	return nil
}

// leaveHosted moves threads that are on a hosted island to where it leads, and PCs likewise that signal handlers will return
// to: once the text is restored there may be the middle of an instruction.
func (w *undoWork) leaveHosted(st *process.Stopped, maps []process.Mapping) (kept string, err error) {
	if len(w.hosted) == 0 {
		return "", nil
	}
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return "", err
		}
		to, on := w.hosted[regs.PC()]
		if !on {
			continue
		}
		if _, in, err := t.InSyscall(); err != nil || in {
			return fmt.Sprintf("thread %d is on its way out of a system call", t.TID), err
		}
		regs.SetPC(to)
		if err := t.SetRegs(regs); err != nil {
			return "", err
		}
	}
	frames, err := interruptedPCs(st, maps, w.restorers, w.handlers, func(pc uint64) bool { return w.hosted[pc] != 0 })
	if err != nil {
		return "", err
	}
	for _, f := range frames {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], w.hosted[f.pc])
		if _, err := w.p.WriteAt(b[:], f.at); err != nil {
			return "", err
		}
	}
	return "", nil
}

// UndoRetries is how often threads are looked at again that can come back into a stub: for half a second in all.
const UndoRetries = 12

// nudges is how often a thread is let run on for some microseconds to get out of the stubs; fewNudges is the same while the sites are
// still there, so that it may come to another one.
const (
	nudges    = 1000
	fewNudges = 64
)

// letOut lets threads run on until they are out of the arenas, and returns one that didn't get out.
func letOut(st *process.Stopped, inside func(pc uint64) bool, tries int) (stuck int, err error) {
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return 0, err
		}
		if !isInside(regs, inside) {
			continue
		}
		out, err := t.Nudge(tries, func(r *process.Regs) bool { return !isInside(r, inside) })
		if err != nil && !errors.Is(err, process.ErrReleased) {
			return 0, err
		}
		if !out && err == nil {
			stuck = t.TID
		}
	}
	return stuck, nil
}

// Detach closes the gates, restores the text and unmaps what was mapped.
func (s *Target) Detach(ctx context.Context) (Undone, error) {
	if !s.Process.Alive() {
		return Undone{Gone: true}, nil
	}
	var word [8]byte
	if _, err := s.Process.ReadAt(word[:], s.Runtime.Ring); errors.Is(err, process.ErrExec) {
		return Undone{Gone: true}, nil // what it runs now may be another's to record
	}
	// Before: what is written while they are being closed is no part of the recording, see ring.Drainer.EndsAt.
	s.GatesClosed = ring.ClockPair()
	if err := s.CloseGates(); err != nil && !s.Process.Alive() {
		return Undone{Gone: true}, nil
	}
	return undo(ctx, s.Process, s.Record(), s.Shared(), s)
}

// Shared is what the process has mapped of the memory that it shares with us.
func (s *Target) Shared() []sharedSpan {
	rec := s.rec
	return []sharedSpan{
		{recovery.Span{Base: rec.At, Size: rec.Size()}, rec.File.Dev, rec.File.Inode},
		{recovery.Span{Base: s.Runtime.Ring, Size: s.Size}, s.RingFile.Dev, s.RingFile.Inode},
	}
}

func (s *Target) Record() *recovery.Record {
	r := &recovery.Record{Arenas: spansOf(s.Arenas), Semaphores: s.semaphores, Slots: s.slots, Golang: s.lang.golang}
	if !s.patched {
		return r
	}
	for _, a := range s.Arenas {
		switch {
		case a.Code == nil: // it came to nothing
		case r.Patches == nil:
			r.Patches = slices.Clip(a.Code.Patches)
		default:
			r.Patches = append(r.Patches, a.Code.Patches...)
		}
	}
	return r
}
