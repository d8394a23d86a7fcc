package recorder

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/callreel/callreel/recorder/internal/glob"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Functions are switched off and on while recording by exchanging the beginnings of their events, see probe.Switch.
// docs/design/switching.md says in which order that is done, and why.

// What is known of a function that has been switched.
const (
	wasOff     = 1 << iota // ever: exits without an entry are left out
	entriesOff             // its entries are off, or are about to be
	exitsOff               // so are its exits: an entry that comes all the same is left out
)

// switches switches functions of one recording.
type switches struct {
	r        *recording
	requests sync.Mutex // guards what follows: one change at a time
	rules    []SetRequest
	version  int
	arenas   []*target.Arena
	closing  []*switched // entries are off, exits are not yet
	waits    bool        // somebody sees to closing
	behind   bool        // somebody sees to it that what was asked for is tried again
	making   *compiler   // nil before the recording's loop begins
	ended    bool

	touched atomic.Bool // any function has been switched off
	mu      sync.Mutex  // guards what follows
	state   []uint8     // by function ID

	over   chan struct{} // closed when the loop has ended
	wg     sync.WaitGroup
	rounds rounds

	left leftOut
}

// switched is a function in an arena.
type switched struct {
	a     *target.Arena
	index int
	id    uint32
	since time.Time
}

// exitsAfter is how long entries have been off, at least, when exits are switched off: threads that are inside an entry's event go on.
const exitsAfter = 250 * time.Millisecond

// maxRules bounds how many changes libraries that come later are to be matched with.
const maxRules = 1000

func newSwitches(r *recording) *switches {
	return &switches{r: r, over: make(chan struct{})}
}

// begin is called when the recording's loop is about to begin.
func (s *switches) begin(making *compiler) {
	s.requests.Lock()
	s.making = making
	s.requests.Unlock()
	making.mu.Lock()
	making.switches = s
	making.mu.Unlock()
	if s.r.isSub() {
		if _, err := s.catchUp(); err != nil {
			s.r.notice("process %d, which was started meanwhile, isn't recorded as was asked for: %v", s.r.s.Process.Pid(), err)
		}
	}
}

// end is called when it has ended.
func (s *switches) end() {
	close(s.over)
	s.wg.Wait()
	s.requests.Lock()
	s.ended = true
	s.requests.Unlock()
}

// catchUp follows what was asked of the first process's recording, of which this is one below. Where that fails for now it is tried
// again until it has been done or the recording ends. A recording that has ended has nothing to follow any more.
func (s *switches) catchUp() (a SetAnswer, err error) {
	root := s.r.tree.root.switches
	root.requests.Lock()
	rules, version := slices.Clone(root.rules), root.version
	root.requests.Unlock()
	s.requests.Lock()
	defer s.requests.Unlock()
	if version == s.version {
		return a, nil
	}
	s.rules = rules // what is loaded from now on goes by them in any case
	switch a, err = s.apply(); {
	case err == nil || errors.Is(err, errEnding):
		s.version = version
		return a, nil
	case errors.Is(err, ErrNotSettable):
		s.version = version // it can never be done
	case !s.ended && !s.behind:
		s.behind = true
		s.wg.Go(s.retry)
	}
	return SetAnswer{}, err
}

// retryAfter is how soon a change that has failed is tried again.
const retryAfter = time.Second

// retry tries to catch up until it has.
func (s *switches) retry() {
	for {
		select {
		case <-s.over:
			return
		case <-time.After(retryAfter):
		}
		if _, err := s.catchUp(); err == nil {
			break
		}
	}
	s.requests.Lock()
	s.behind = false
	s.requests.Unlock()
}

// errEnding: the recording's loop has ended, or is about to.
var errEnding = errors.New("the recording is just ending")

// errBusy: what was written before a change couldn't be drained in time.
var errBusy = errors.New("it is too busy now")

// notDone says why what was to be done in the loop has not been.
func (s *switches) notDone() error {
	select {
	case <-s.over:
		return errEnding
	default:
		return errBusy
	}
}

// come takes over an arena whose code is made and whose gate isn't open yet.
func (s *switches) come(a *target.Arena) error {
	if a.Mem == nil {
		return nil
	}
	s.requests.Lock()
	defer s.requests.Unlock()
	s.arenas = append(s.arenas, a)
	if len(s.rules) == 0 {
		return nil
	}
	for i := range a.Fns {
		fn := &a.Fns[i]
		if fn.ID == 0 || keepsOn(fn) || s.wanted(fn, nil) {
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
func (s *switches) switchesExits() bool {
	return s.r.opt.Armed == nil && !s.r.s.Runtime.Min && !s.r.filtered.Load() && s.r.s.Runtime.Areas == 0
}

// keepsOn says whether a function is never switched off.
func keepsOn(fn *stub.Probe) bool { return fn.Predicates.Count > 0 || fn.Inside }

// wanted says whether a function is to be recorded by the changes so far. hit, if not nil, notes which globs of the last have matched.
func (s *switches) wanted(fn *stub.Probe, hit *hits) bool {
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

// change follows a request. It returns when calls that begin from then on are recorded, or not, as was asked for.
func (s *switches) change(q SetRequest) (a SetAnswer, err error) {
	s.requests.Lock()
	defer s.requests.Unlock()
	rules := s.rules
	if q.All || len(q.Functions) > 0 {
		s.rules = []SetRequest{q}
	} else {
		s.rules = append(slices.Clip(rules), q)
	}
	if len(s.rules) > maxRules {
		s.rules = rules
		return a, fmt.Errorf("%w: %d changes have been asked for since --all or -f", ErrNotSettable, maxRules)
	}
	if a, err = s.apply(); err != nil {
		s.rules = rules
		return a, err
	}
	s.version++
	return a, nil
}

// unmatched returns an error for the first glob of the last change that has matched nothing.
func (s *switches) unmatched(hit *hits) error {
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
					if a.Fns[f].ID != 0 {
						names = append(names, glob.Spellings(a.Fns[f].Names())...)
					}
				}
			}
			return glob.NoMatch(k.flag, g, names)
		}
	}
	return nil
}

// apply makes all functions what the changes so far say.
func (s *switches) apply() (a SetAnswer, err error) {
	if s.ended {
		return a, errEnding
	}
	if err := s.canSwitch(); err != nil {
		if on := s.allOn(); s.r.isSub() && on > 0 {
			return SetAnswer{On: on}, nil // it is as was asked for
		}
		return a, err
	}
	last := &s.rules[len(s.rules)-1]
	hit := &hits{make([]bool, len(last.Functions)), make([]bool, len(last.Exclude))}
	var on, off []*switched
	for _, ar := range s.arenas {
		for i := range ar.Fns {
			fn := &ar.Fns[i]
			if fn.ID == 0 {
				continue
			}
			want, is := s.wanted(fn, hit), s.stateOf(fn.ID)&entriesOff == 0
			if !want && keepsOn(fn) {
				want = true
				a.Kept++
			}
			w := &switched{a: ar, index: i, id: fn.ID}
			switch {
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
	if !s.r.isSub() && s.r.tree == nil { // elsewhere it may match in another program
		if err := s.unmatched(hit); err != nil {
			return SetAnswer{}, err
		}
	}
	a.Changed = len(on) + len(off)
	return a, errors.Join(s.switchOff(off), s.switchOn(on))
}

// canSwitch says why no function of this recording can be switched.
func (s *switches) canSwitch() error {
	switch {
	case s.r.s.Go != nil:
		return fmt.Errorf("%w: probes in Go programs can't be switched off", ErrNotSettable)
	case len(s.arenas) == 0:
		return fmt.Errorf("%w: the memory of its probes could not be shared with it", ErrNotSettable)
	}
	return nil
}

// allOn returns how many functions there are if the changes so far want all of them recorded, and 0 otherwise.
func (s *switches) allOn() int {
	s.r.s.Mu.Lock()
	arenas := slices.Clone(s.r.s.Arenas)
	s.r.s.Mu.Unlock()
	n := 0
	for _, a := range arenas {
		for i := range a.Fns {
			fn := &a.Fns[i]
			switch {
			case fn.ID == 0:
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
func (s *switches) switchOff(list []*switched) error {
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

// close switches exits off when no call is open any more.
func (s *switches) close() {
	const soon, late = 50 * time.Millisecond, time.Second
	for rest := soon; ; {
		select {
		case <-s.over:
			return
		case <-time.After(rest):
		}
		s.requests.Lock()
		n := len(s.closing)
		s.closeSome()
		left := len(s.closing)
		s.waits = left > 0
		s.requests.Unlock()
		switch {
		case left == 0:
			return
		case left < n:
			rest = soon
		default:
			rest = min(2*rest, late)
		}
	}
}

// closeSome switches those exits off of which no call is open.
func (s *switches) closeSome() {
	now := time.Now()
	var due []*switched
	for _, w := range s.closing {
		if now.Sub(w.since) >= exitsAfter {
			due = append(due, w)
		}
	}
	if len(due) == 0 {
		return
	}
	if !s.switchesExits() { // any more
		s.closing = nil
		return
	}
	var closed []*switched
	if !s.rounds.after(s.over, func(d *drain) {
		open := d.openFunctions()
		for _, w := range due {
			if !open[w.id] && s.switchesExits() {
				s.update(w.id, exitsOff, 0)
				closed = append(closed, w)
			}
		}
	}) {
		return
	}
	is := map[*switched]bool{}
	for _, w := range closed {
		is[w] = true
		if err := s.exchange(w, true, false); err != nil {
			s.r.notice("%v", err)
		}
	}
	s.closing = slices.DeleteFunc(s.closing, func(w *switched) bool { return is[w] })
}

// switchOn switches exits on, then entries.
func (s *switches) switchOn(list []*switched) error {
	if len(list) == 0 {
		return nil
	}
	ids := map[uint32]bool{}
	for _, w := range list {
		ids[w.id] = true
	}
	s.closing = slices.DeleteFunc(s.closing, func(w *switched) bool { return ids[w.id] })
	var exits []*switched
	for _, w := range list {
		if s.stateOf(w.id)&exitsOff == 0 {
			continue
		}
		exits = append(exits, w)
		if err := s.exchange(w, true, true); err != nil {
			return err
		}
	}
	if len(exits) > 0 {
		// What was written while they were off is to be left out.
		if !s.rounds.after(s.over, func(*drain) {
			for _, w := range exits {
				s.update(w.id, 0, exitsOff)
			}
		}) {
			return s.notDone()
		}
	}
	for _, w := range list {
		s.update(w.id, 0, entriesOff)
		if err := s.exchange(w, false, true); err != nil {
			return err
		}
	}
	return nil
}

// exchange switches the entry, or the exits, of a function.
func (s *switches) exchange(w *switched, exits, on bool) error {
	list, err := w.a.Code.Switches(w.index)
	if err != nil {
		return err
	}
	made := true
	if s.making != nil {
		s.making.mu.Lock()
		defer s.making.mu.Unlock()
		made = s.making.isMade(w.id)
	} else if s.r.s.Runtime.Lazy {
		made = false
	}
	for i := range list {
		sw := &list[i]
		if sw.Exit != exits {
			continue
		}
		word := (*uint64)(unsafe.Pointer(&w.a.Mem[sw.At]))
		atomic.StoreUint64(word, sw.In(atomic.LoadUint64(word), on, made))
	}
	return nil
}

// stateOf returns what is known of a function.
func (s *switches) stateOf(id uint32) uint8 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(id) < len(s.state) {
		return s.state[id]
	}
	return 0
}

// update changes it.
func (s *switches) update(id uint32, set, clear uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := int(id) + 1 - len(s.state); n > 0 {
		s.state = append(s.state, make([]uint8, n)...)
	}
	s.state[id] = s.state[id]&^clear | set
}

// holds says whether a slot is not to be exchanged now, as what would change is off: it is made when the function is switched on.
func (s *switches) holds(slot *stub.Slot, ranges []target.IDRange) bool {
	if s == nil || !s.touched.Load() || s.stateOf(slot.ID)&entriesOff == 0 {
		return false
	}
	g, k := target.FindRange(ranges, slot.ID)
	if g == nil {
		return true
	}
	list, err := g.Arena.Code.Switches(g.At + int(k))
	return err != nil || slices.ContainsFunc(list, func(w stub.Switch) bool { return !w.Exit && w.At == slot.At&^7 })
}
