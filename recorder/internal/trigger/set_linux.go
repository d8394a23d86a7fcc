package trigger

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Set is the triggers of a recording, and which functions have them. Those that are about no function are not in it. Its methods may be
// called by several goroutines.
type Set struct {
	mu         sync.Mutex // guards what follows
	list       []asked
	predicates []predicate                // as the stubs have them
	groups     map[string]stub.Predicates // those that functions with the same triggers share
	taken      map[uint32][]int           // by function: its triggers, until Plan gives it its predicates
	functions  map[uint32]stub.Predicates // those that have triggers
	spans      map[[2]string]uint32       // see keyOf
	overflow   bool                       // there were more groups than predicates
}

// asked is a trigger, and what became of it.
type asked struct {
	Trigger
	seen    bool   // a function of the name is there
	has     bool   // one has it
	refused string // why the last one that hasn't can't have it
}

// NewSet returns the triggers of list, which no function has yet.
func NewSet(list []Trigger) *Set {
	s := &Set{groups: map[string]stub.Predicates{}, functions: map[uint32]stub.Predicates{}, taken: map[uint32][]int{}}
	for _, t := range list {
		if t.Kind != OnStall {
			s.list = append(s.list, asked{Trigger: t})
		}
	}
	return s
}

// Empty says whether there is no trigger that is about functions.
func (s *Set) Empty() bool { return len(s.list) == 0 }

// about are the triggers that are about a function of these names. The caller holds mu.
func (s *Set) about(names []string) (list []int) {
	for i := range s.list {
		if !s.list[i].isMark() && glob.MatchAny(s.list[i].Function, names) {
			list = append(list, i)
		}
	}
	return list
}

// Wants says whether a trigger is about a function of these names, which are all of its spellings.
func (s *Set) Wants(names []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	about := s.about(names)
	for _, i := range about {
		s.list[i].seen = true
	}
	return len(about) > 0
}

// Take notes that a function of these names, which a trigger is about, is to be probed under an ID. Plan gives it its predicates.
func (s *Set) Take(id uint32, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if about := s.about(names); len(about) > 0 {
		s.taken[id] = about
	}
}

// Refuse notes why a function of these names can't be probed.
func (s *Set) Refuse(names []string, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.about(names) {
		s.list[i].refused = why
	}
}

// Check returns an error for the first trigger that no function has, unless wait, which may be nil, says of it that such a function may come.
// names are those that it could have been about.
func (s *Set) Check(names []string, wait func(*glob.NoMatchError) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkSize(); err != nil {
		return err
	}
	for i := range s.list {
		t := &s.list[i]
		if err := t.check(); err != nil {
			return err
		}
		if t.isMissed() {
			if err := glob.NoMatch("--when", t.Function, names); wait == nil || !wait(err) {
				return err
			}
		}
	}
	return nil
}

// CheckAll is Check for sets with the same triggers, of several processes: each trigger must be about something in one of them. names are
// those that they could have been about.
func CheckAll(sets []*Set, names []string) error {
	var all []asked // of each trigger the best that became of it
	for _, s := range sets {
		s.mu.Lock()
		err := s.checkSize()
		for i, t := range s.list {
			switch {
			case i == len(all):
				all = append(all, t)
			case t.has || !all[i].has && all[i].isMissed():
				all[i] = t
			}
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	for i := range all {
		t := &all[i]
		if err := t.check(); err != nil {
			return err
		}
		if t.isMissed() {
			return glob.NoMatch("--when", t.Function, names)
		}
	}
	return nil
}

func (s *Set) checkSize() error {
	if s.overflow {
		return fmt.Errorf("callreel: more than %d combinations of triggers and functions: name fewer functions in each", ring.MaxPredicates)
	}
	return nil
}

// check is why the trigger can't come true though what it is about is there.
func (t *asked) check() error {
	switch {
	case t.has:
	case t.isMark():
		return fmt.Errorf("callreel: --when %q: no such marker is recorded%s", t.Text, t.hint())
	case t.seen: // without a reason it was only seen in an image that isn't recorded
		return fmt.Errorf("callreel: --when %q: %w to watch %s: %s", t.Text, refusal.Err, t.Function, cmp.Or(t.refused, "-m leaves its module out"))
	}
	return nil
}

// isMissed says whether what it is about isn't there.
func (t *asked) isMissed() bool { return !t.has && !t.isMark() && !t.seen }

// Like finds the trigger that is the same as t but for the number that is compared with; why says why there is none.
func (s *Set) Like(t *Trigger) (at int, why string) {
	if t.Kind != OnDuration && t.Kind != OnResult || t.Op == "==" || t.Op == "!=" {
		return 0, "only conditions with > >= < or <= can be changed"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var have []string
	for i := range s.list {
		h := &s.list[i]
		if h.Kind == t.Kind && h.Function == t.Function && h.Span == t.Span && h.Op == t.Op {
			return i, ""
		}
		have = append(have, h.Text)
	}
	return 0, "it must be as one that the recording was armed with, but for the number: " + strings.Join(have, ", ")
}

// Replace replaces triggers, by the places that Like has found. Stubs go by them after the next WriteTo.
func (s *Set) Replace(by map[int]Trigger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range by {
		s.list[i].Trigger = t
	}
}

// grace is for how long a call that is over its time is given to return: a dump of all of it says more.
const grace = time.Second

// Interval is how often to look for overdue calls, at most being the longest time between two looks.
func (s *Set) Interval(most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if t := &s.list[i]; t.Kind == OnDuration {
			most = min(most, max(t.Duration/2, grace/10))
		}
	}
	return most
}

// Least is the shortest duration of a call that is a reason for a dump; 0 if there is none.
func (s *Set) Least() (least time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if t := &s.list[i]; t.Kind == OnDuration && (t.Op == ">" || t.Op == ">=") && (least == 0 || t.Duration < least) {
			least = t.Duration
		}
	}
	return least
}

// Overdue returns the first trigger for which a call that has not returned by now, in ticks, is a reason for a dump.
func (s *Set) Overdue(c *ring.OpenCall, now, ticksPerSecond uint64) (t Trigger, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.functions[c.Word>>1]
	for _, p := range s.predicates[g.First : g.First+g.Count] {
		t = s.list[p.trigger].Trigger
		if after, ok := t.overdue(c.Number, ticksPerSecond); ok && now-c.From > after {
			return t, true
		}
	}
	return Trigger{}, false
}

// overdue is after how many ticks an open call is a reason for a dump although it hasn't returned; ok is false if it never is. number is
// the call's.
func (t *Trigger) overdue(number uint64, ticksPerSecond uint64) (ticks uint64, ok bool) {
	switch {
	case t.Kind == OnDuration && (t.Op == ">" || t.Op == ">="):
		return ring.TicksOf(t.Duration+grace, ticksPerSecond), true
	case t.Kind == OnCall && (t.Value == 0 || uint64(t.Value) == number):
		return ring.TicksOf(grace, ticksPerSecond), true // it may never return
	}
	return 0, false
}
