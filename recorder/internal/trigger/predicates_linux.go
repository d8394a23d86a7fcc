package trigger

import (
	"context"
	"fmt"
	"math"

	"github.com/callreel/callreel/recorder/internal/arguments"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// predicate is a trigger as stubs test it, for functions that return the same, if that is what the trigger is about.
type predicate struct {
	trigger int
	bits    int // of the result's type
	signed  bool
}

// Plan gives the functions of an image that have triggers their predicates. It must be done before an arena takes the functions over.
// What the user should know is told to notice.
func (s *Set) Plan(ctx context.Context, im *mapped.Image, notice func(format string, args ...any)) {
	taken := s.takeAll()
	if len(taken) == 0 {
		return
	}
	results := results{ctx: ctx, im: im}
	defer results.close()
	for i := range im.Traced {
		fn := &im.Traced[i]
		var list []predicate
		for _, at := range taken[fn.ID] {
			p, err := results.predicate(at, s.trigger(at), fn, notice)
			if err != nil {
				s.refuse(at, err.Error())
				continue
			}
			list = append(list, p)
		}
		if len(list) > 0 {
			fn.Predicates = s.give(fn.ID, list)
		}
	}
}

// takeAll returns the functions that wait for their predicates, with the places of their triggers, and forgets them.
func (s *Set) takeAll() map[uint32][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.taken
	s.taken = map[uint32][]int{}
	return taken
}

func (s *Set) trigger(at int) Trigger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[at].Trigger
}

func (s *Set) refuse(at int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list[at].refused = why
}

// give gives the function with an ID its predicates, which it may share with others.
func (s *Set) give(id uint32, list []predicate) stub.Predicates {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(list)
	for _, p := range list {
		s.list[p.trigger].has = true
	}
	g, found := s.groups[key]
	if !found {
		if len(s.predicates)+len(list) > ring.MaxPredicates {
			s.overflow = true
			return stub.Predicates{}
		}
		g = stub.Predicates{First: uint8(len(s.predicates)), Count: uint8(len(list))}
		s.predicates = append(s.predicates, list...)
		s.groups[key] = g
	}
	s.functions[id] = g
	return g
}

// results finds out what functions of an image return.
type results struct {
	ctx    context.Context
	im     *mapped.Image
	opened bool
	debug  *arguments.Debug // nil without debug information: results are taken for ints, then
}

func (r *results) close() {
	if r.debug != nil {
		r.debug.Close()
	}
}

// predicate is the predicate of a function for the trigger t, which is at that place.
func (r *results) predicate(at int, t Trigger, fn *stub.Probe, notice func(format string, args ...any)) (predicate, error) {
	p := predicate{trigger: at}
	if t.Kind != OnResult {
		return p, nil
	}
	if !r.opened {
		r.opened = true
		r.debug, _ = arguments.Open(r.ctx, r.im.Object, r.im.DebugFiles)
	}
	sig, err := r.debug.Function(fn.Addr, fn.Names(), r.im.Probe.Go != nil)
	if err != nil {
		return p, err
	}
	known := false
	if p.bits, p.signed, known, err = sig.IntegerResult(); err != nil {
		return p, err
	}
	if !known {
		notice("--when %q: what %s returns is not known without debug information, and taken for an int", t.Text, fn.Name)
		if t.Value != int64(int32(t.Value)) {
			p.bits = 64
		}
	}
	return p, nil
}

// WriteTo writes the predicates down where stubs read them.
func (s *Set) WriteTo(to *ring.Predicates, ticksPerSecond uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.predicates {
		v := s.list[p.trigger].predicate(ticksPerSecond)
		v.Bits, v.Signed = p.bits, p.signed
		to.Set(i, v)
	}
}

// Fired returns the trigger that a firing is of, and what there is to say besides, if anything; ok is false if there is none.
func (s *Set) Fired(f *ring.Firing) (t Trigger, detail string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Predicate < 0 || f.Predicate >= len(s.predicates) {
		return Trigger{}, "", false
	}
	p := s.predicates[f.Predicate]
	if t = s.list[p.trigger].Trigger; t.Kind == OnResult {
		detail = "returned " + p.text(f.Result)
	}
	return t, detail, true
}

// text is a result as it is compared.
func (p predicate) text(result uint64) string {
	shift := 64 - p.bits
	if p.signed {
		return fmt.Sprint(int64(result) << shift >> shift)
	}
	return fmt.Sprint(result << shift >> shift)
}

// predicate is what stubs compare.
func (t *Trigger) predicate(ticksPerSecond uint64) ring.Predicate {
	w := ring.Predicate{Low: math.MinInt64, High: math.MaxInt64}
	v := t.Value
	switch t.Kind {
	case OnDuration:
		w.Kind, v = ring.PredicateDuration, int64(ring.TicksOf(t.Duration, ticksPerSecond))
	case OnResult:
		w.Kind = ring.PredicateResult
	case OnCall:
		w.Kind, w.Low = ring.PredicateNumber, 1
		if v > 0 {
			w.Low, w.High = v, v
		}
		return w
	}
	switch t.Op {
	case ">=", "<":
		w.Low, w.Not = v, t.Op == "<"
	case "<=", ">":
		w.High, w.Not = v, t.Op == ">"
	case "==", "!=":
		w.Low, w.High, w.Not = v, v, t.Op == "!="
	}
	return w
}
