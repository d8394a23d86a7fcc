package probes

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// What is known of a function that has been switched.
const (
	wasOff     = 1 << iota // ever: exits without an entry are left out
	entriesOff             // its entries are off, or are about to be
	exitsOff               // so are its exits: an entry that comes all the same is left out
	cameBack               // exits are on again: an entry from when they were off is left out
)

// Config says whose functions are switched, and how.
type Config struct {
	// Target is the process.
	Target *target.Target
	// EntriesOnly leaves exits on: for recordings of which calls are accepted that the drain doesn't see at once.
	EntriesOnly bool
	// Late says that events are read long after they were written, in an armed recording: an entry that is read when exits are off may be of a
	// call from before.
	Late bool
	// Elsewhere says that a glob that matches nothing may match in another recording.
	Elsewhere bool
	// MayCome says of a glob that matches nothing whether it may match in a library that is loaded later. names are those that are there.
	// nil if none may.
	MayCome func(missed *glob.NoMatchError, names []string) bool
	// Lead, if not nil, are the switches of the recording that this one follows: what is asked of them is done here, too.
	Lead *Switches
	// Keeps says which functions are never to be rejected besides those that have triggers; nil for none.
	Keeps func(fn *stub.Probe) bool
	// Notice tells what the user should know.
	Notice func(format string, args ...any)
}

// Switches switches functions of one recording off and on.
type Switches struct {
	c Config

	requests  sync.Mutex // guards what follows: one change at a time. The Maker's lock, and mu, may be taken while it is held.
	rules     []Rule
	version   int
	arenas    []*target.Arena
	closing   []*switched // entries are off, exits are not yet
	waits     bool        // somebody sees to closing
	behind    bool        // somebody sees to it that what was asked for is tried again
	making    *Maker      // nil before the recording's loop begins
	loop      Loop        // the same
	ended     bool
	followers map[*Switches]bool // those that this one leads, which are on
	rejected  map[uint32]bool    // functions that are off for what they cost, by their IDs
	shut      map[uint32]bool    // whose exits are off though what is read of them still counts
	places    map[uint32]place   // of those that can be switched, by their IDs
	keeps     map[uint32]bool    // what Kept has found

	touched     atomic.Bool     // any function has been switched off
	entriesOnly atomic.Bool     // no exits are switched off any more
	mu          sync.Mutex      // guards what follows
	state       []uint8         // by function ID
	back        map[uint32]gone // when exits were off last, of those that came back
	lost        map[uint32]lostEnds

	over   chan struct{} // closed when the loop has ended
	wg     sync.WaitGroup
	Rounds Rounds // of the loop

	omitted omitted
}

// Loop is what drains the rings.
type Loop interface {
	// OpenFunctions are those of which calls are open, as far as events have been drained. It is called in the loop.
	OpenFunctions() (map[uint32]bool, error)
}

// Rule says which functions are to be recorded. All is for all that were chosen when recording began, Functions only for those of them that
// match one of these globs; without either it is for those that are recorded now. Of these, Exclude leaves out those that match.
type Rule struct {
	All                bool
	Functions, Exclude []string
}

// Count is how many functions are as they are.
type Count struct {
	On      int // are recorded now
	Off     int // could be, and are not
	Changed int // were on and are off, or the other way round
	Kept    int // of those that are on: they don't match, but have triggers, or are named by --inside
	// Waiting says which globs match nothing yet.
	Waiting []string
}

// switched is a function in an arena.
type switched struct {
	a     *target.Arena
	index int
	id    uint32
	since time.Time
}

// place is where a function is: in an arena, and at which place there.
type place struct {
	a     *target.Arena
	index int
}

// function is the function there, nil for no place.
func (p place) function() *stub.Probe {
	if p.a == nil {
		return nil
	}
	return &p.a.Fns[p.index]
}

// maxRules bounds how many changes libraries that come later are to be matched with.
const maxRules = 1000

// New returns the switches of a recording. They are as they were asked to be in the recording that leads, once Begin was called.
func New(c Config) *Switches {
	s := &Switches{c: c, over: make(chan struct{}), followers: map[*Switches]bool{}, rejected: map[uint32]bool{}, shut: map[uint32]bool{}, places: map[uint32]place{}, keeps: map[uint32]bool{}, lost: map[uint32]lostEnds{}, back: map[uint32]gone{}}
	s.entriesOnly.Store(c.EntriesOnly)
	return s
}

// Begin is called when the recording's loop is about to begin.
func (s *Switches) Begin(making *Maker, loop Loop) {
	s.requests.Lock()
	s.making, s.loop = making, loop
	s.requests.Unlock()
	making.setOff(s.isOff)
	lead := s.c.Lead
	if lead == nil {
		return
	}
	lead.requests.Lock()
	lead.followers[s] = true
	lead.requests.Unlock()
	if _, err := s.catchUp(); err != nil {
		s.c.Notice("process %d, which was started meanwhile, isn't recorded as was asked for: %v", s.c.Target.PID(), err)
	}
}

// End is called when it has ended.
func (s *Switches) End() {
	close(s.over)
	s.wg.Wait()
	s.requests.Lock()
	s.ended = true
	s.requests.Unlock()
	if lead := s.c.Lead; lead != nil {
		lead.requests.Lock()
		delete(lead.followers, s)
		lead.requests.Unlock()
	}
}

// LeaveExits switches no exits off from now on, as calls may be accepted that the drain doesn't see at once.
func (s *Switches) LeaveExits() { s.entriesOnly.Store(true) }

// InLoop calls f in the loop, behind a round in which all has been drained that was written before. It doesn't if the loop ends, or is too
// busy.
func (s *Switches) InLoop(f func()) error {
	if !s.Rounds.after(s.over, roundPatience, false, f) {
		return s.notDone()
	}
	return nil
}

// Soon is InLoop where it doesn't matter whether all has been read: a loop that can't keep up never has.
func (s *Switches) Soon(f func()) error {
	if !s.Rounds.after(s.over, roundPatience, true, f) {
		return s.notDone()
	}
	return nil
}

// retryAfter is how soon a change that has failed is tried again.
const retryAfter = time.Second

// errEnding: the recording's loop has ended, or is about to.
var errEnding = errors.New("the recording is just ending")

// errBusy: what was written before a change couldn't be drained in time.
var errBusy = errors.New("it is too busy now")

// notDone says why what was to be done in the loop has not been.
func (s *Switches) notDone() error {
	select {
	case <-s.over:
		return errEnding
	default:
		return errBusy
	}
}

// Come takes over an arena whose code is made and whose gate isn't open yet.
func (s *Switches) Come(a *target.Arena) error {
	if !s.c.Target.CanExchange(a) {
		return nil
	}
	s.requests.Lock()
	defer s.requests.Unlock()
	s.arenas = append(s.arenas, a)
	for i := range a.Fns {
		if fn := &a.Fns[i]; isSwitched(fn) {
			s.places[fn.ID] = place{a, i}
		}
	}
	if len(s.rules) == 0 {
		return nil
	}
	for i := range a.Fns {
		fn := &a.Fns[i]
		if !isSwitched(fn) || keepsOn(fn) || s.wanted(fn, nil) {
			continue
		}
		off := uint8(wasOff | entriesOff)
		if s.switchesExits() {
			off |= exitsOff
		}
		s.update(fn.ID, off, 0)
		s.touched.Store(true)
		w := &switched{a: a, index: i, id: fn.ID}
		err := s.exchange(w, false, false)
		if s.switchesExits() {
			err = errors.Join(err, s.exchange(w, true, false))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// switchesExits says whether exits are switched off as well. Not where calls may be accepted that the drain doesn't see at once, or the
// thread keeps a record of.
func (s *Switches) switchesExits() bool {
	config := s.config()
	return !s.entriesOnly.Load() && !config.Min && config.Areas == 0
}

// config is what the target's stubs are told.
func (s *Switches) config() *stub.Config {
	target := s.c.Target
	return &target.Runtime
}

// isSwitched says whether it is a function that may be switched.
func isSwitched(fn *stub.Probe) bool { return fn.ID != 0 && !fn.IsMark() }

// keepsOn says whether a function is never switched off.
func keepsOn(fn *stub.Probe) bool { return fn.Predicates.Count > 0 || fn.Inside }

// wanted says whether a function is to be recorded by the changes so far. hit, if not nil, notes which globs of the last have matched.
func (s *Switches) wanted(fn *stub.Probe, hit *hits) bool {
	var names []string
	on := true
	for i := range s.rules {
		q := &s.rules[i]
		if names == nil && len(q.Functions)+len(q.Exclude) > 0 {
			names = glob.Spellings(fn.Names())
		}
		fnHit, xHit := make([]bool, len(q.Functions)), make([]bool, len(q.Exclude))
		if hit != nil && i == len(s.rules)-1 {
			fnHit, xHit = hit.fn, hit.x
		}
		in, out := glob.Any(q.Functions, fnHit, names), glob.Any(q.Exclude, xHit, names)
		switch {
		case len(q.Functions) > 0:
			on = in
		case q.All:
			on = true
		}
		on = on && !out
	}
	return on
}

// hits notes which globs have matched.
type hits struct{ fn, x []bool }

// unmatched says which globs of the last change have matched nothing yet. The error is that of the first for which nothing may come.
func (s *Switches) unmatched(hit *hits) (waiting []string, err error) {
	q := &s.rules[len(s.rules)-1]
	for _, k := range []struct {
		flag  string
		globs []string
		hit   []bool
	}{{"-f", q.Functions, hit.fn}, {"-x", q.Exclude, hit.x}} {
		for i, g := range k.globs {
			if k.hit[i] {
				continue
			}
			var names []string
			for _, a := range s.arenas {
				for f := range a.Fns {
					if isSwitched(&a.Fns[f]) {
						names = append(names, glob.Spellings(a.Fns[f].Names())...)
					}
				}
			}
			missed := glob.NoMatch(k.flag, g, names)
			if s.c.MayCome == nil || !s.c.MayCome(missed, names) {
				return nil, missed
			}
			waiting = append(waiting, missed.Error())
		}
	}
	return waiting, nil
}

// apply makes all functions what the changes so far say.
func (s *Switches) apply() (a Count, err error) {
	if s.ended {
		return a, errEnding
	}
	if err := s.canSwitch(); err != nil {
		if on := s.allOn(); s.c.Lead != nil && on > 0 {
			return Count{On: on}, nil // it is as was asked for
		}
		return a, err
	}
	last := &s.rules[len(s.rules)-1]
	hit := &hits{make([]bool, len(last.Functions)), make([]bool, len(last.Exclude))}
	var on, off []*switched
	for _, ar := range s.arenas {
		for i := range ar.Fns {
			fn := &ar.Fns[i]
			if !isSwitched(fn) {
				continue
			}
			want, is := s.wanted(fn, hit), s.stateOf(fn.ID)&entriesOff == 0
			if !want && keepsOn(fn) {
				want = true
				a.Kept++
			}
			w := &switched{a: ar, index: i, id: fn.ID}
			switch {
			case want && s.rejected[fn.ID]:
			case want && !is:
				on = append(on, w)
			case !want && is:
				off = append(off, w)
			}
			if want {
				a.On++
			} else {
				a.Off++
			}
		}
	}
	if !s.c.Elsewhere {
		if a.Waiting, err = s.unmatched(hit); err != nil {
			return Count{}, err
		}
	}
	a.Changed = len(on) + len(off)
	return a, errors.Join(s.switchOff(off), s.switchOn(on))
}

// canSwitch says why no function of this recording can be switched.
func (s *Switches) canSwitch() error {
	target := s.c.Target
	switch {
	case target.Go != nil:
		return fmt.Errorf("%w: probes in Go programs can't be switched off", ErrNotSettable)
	case len(s.arenas) == 0:
		return fmt.Errorf("%w: the memory of its probes could not be shared with it", ErrNotSettable)
	}
	return nil
}

// allOn returns how many functions there are if the changes so far want all of them recorded, and 0 otherwise.
func (s *Switches) allOn() int {
	target := s.c.Target
	target.Mu.Lock()
	arenas := slices.Clone(target.Arenas)
	target.Mu.Unlock()
	n := 0
	for _, a := range arenas {
		for i := range a.Fns {
			fn := &a.Fns[i]
			switch {
			case !isSwitched(fn):
			case !keepsOn(fn) && !s.wanted(fn, nil):
				return 0
			default:
				n++
			}
		}
	}
	return n
}

// switchOff switches entries off, and sees to it that exits follow.
func (s *Switches) switchOff(list []*switched) error {
	if len(list) == 0 {
		return nil
	}
	for _, w := range list {
		s.update(w.id, wasOff|entriesOff, 0)
	}
	s.touched.Store(true)
	var err error
	for i, w := range list {
		if err = s.exchange(w, false, false); err != nil {
			for _, on := range list[i:] { // which they still are, to be tried again
				s.update(on.id, 0, entriesOff)
			}
			list = list[:i]
			break
		}
		w.since = time.Now()
	}
	if len(list) == 0 || !s.switchesExits() {
		return err
	}
	s.closing = append(s.closing, list...)
	if !s.waits {
		s.waits = true
		s.wg.Go(s.close)
	}
	return err
}

// gone is when exits of a function were off last, in ticks: entries from then have no exits. What was written before has, and may be read yet.
type gone struct{ from, to uint64 }

// switchOn switches exits on, then entries.
func (s *Switches) switchOn(list []*switched) error {
	if len(list) == 0 {
		return nil
	}
	ids := map[uint32]bool{}
	for _, w := range list {
		ids[w.id] = true
	}
	s.closing = slices.DeleteFunc(s.closing, func(w *switched) bool { return ids[w.id] })
	if err := s.switchExitsOn(list); err != nil {
		return err
	}
	for _, w := range list {
		s.update(w.id, 0, entriesOff)
		if err := s.exchange(w, false, true); err != nil {
			return err
		}
	}
	return nil
}

// switchExitsOn switches those exits on that are off. What was written while they were off is left out.
func (s *Switches) switchExitsOn(list []*switched) error {
	var exits []*switched
	from := map[uint32]uint64{}
	for _, w := range list {
		shut := s.shut[w.id]
		if s.stateOf(w.id)&exitsOff == 0 && !shut {
			continue
		}
		if err := s.exchange(w, true, true); err != nil {
			return err
		}
		if shut {
			from[w.id] = s.endsLostSince(w.id)
		}
		delete(s.shut, w.id)
		s.endsComeAgain(w.id)
		exits = append(exits, w)
	}
	cameOn := func() {
		for _, w := range exits {
			s.update(w.id, 0, exitsOff)
		}
	}
	switch {
	case len(exits) == 0:
	case s.c.Late: // what was written before they were off is read yet
		cameOn()
	case s.config().Clock == stub.ClockFull:
		s.comeBack(exits, from, ring.Ticks())
	case !s.Rounds.after(s.over, roundPatience, false, cameOn): // entries have no time
		return s.notDone()
	}
	return nil
}

// comeBack takes entries again that were written since a tick, at which exits were on, or before they were off: by from, 0 where all of these have
// been read.
func (s *Switches) comeBack(list []*switched, from map[uint32]uint64, tick uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range list {
		s.back[w.id] = gone{from[w.id], tick}
		s.set(w.id, cameBack, exitsOff)
	}
}

// isGone says whether an entry was written while its function's exits were off. The caller holds mu.
func (s *Switches) isGone(e *reel.Event) bool {
	g := s.back[e.ID()]
	return g.from <= e.Time && e.Time < g.to
}

// exchange switches the entry, or the exits, of a function.
func (s *Switches) exchange(w *switched, exits, on bool) error {
	code := w.a.Code
	list, err := code.Switches(w.index)
	if err != nil {
		return err
	}
	made := true
	if making := s.making; making != nil {
		making.mu.Lock()
		defer making.mu.Unlock()
		made = making.isMade(w.id)
	} else if s.config().Lazy {
		made = false
	}
	for i := range list {
		sw := &list[i]
		if sw.Exit != exits || sw.Mark != 0 {
			continue
		}
		if err := s.c.Target.Exchange(w.a, sw.At, func(v uint64) uint64 { return sw.In(v, on, made) }); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns what is known of a function.
func (s *Switches) stateOf(id uint32) uint8 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(id) < len(s.state) {
		return s.state[id]
	}
	return 0
}

// update changes it.
func (s *Switches) update(id uint32, set, clear uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(id, set, clear)
}

// set is update. The caller holds mu.
func (s *Switches) set(id uint32, set, clear uint8) {
	if n := int(id) + 1 - len(s.state); n > 0 {
		s.state = append(s.state, make([]uint8, n)...)
	}
	s.state[id] = s.state[id]&^clear | set
}

// isOff says whether what a slot would change is off: it isn't exchanged now, then, but made when the function is switched on.
func (s *Switches) isOff(slot *stub.Slot, ranges []target.IDRange) bool {
	if !s.touched.Load() || s.stateOf(slot.ID)&entriesOff == 0 {
		return false
	}
	g, k := target.FindRange(ranges, slot.ID)
	if g == nil {
		return true
	}
	list, err := g.Arena.Code.Switches(g.At + int(k))
	return err != nil || slices.ContainsFunc(list, func(w stub.Switch) bool { return !w.Exit && w.Mark == 0 && w.At == slot.At&^7 })
}
