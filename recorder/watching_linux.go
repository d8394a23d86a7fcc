package recorder

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/callreel/callreel/recorder/internal/arguments"
	"github.com/callreel/callreel/recorder/internal/glob"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// watching says which functions are watched for which triggers. Functions that are about the same triggers share the watches of these.
type watching struct {
	triggers []Trigger // without those that are about no function

	mu       sync.Mutex // guards what follows
	hit      []bool     // by trigger: a function of the name was seen
	refused  []string   // by trigger: why the last one of the name can't be probed
	traced   []bool     // by trigger: one is
	groups   map[string]stub.Predicates
	watches  []watchOf
	pending  map[uint32][]int // by function: the triggers that are about it, until it has its watches
	watched  map[uint32]stub.Predicates
	overflow bool // there were more combinations than watches
}

// watchOf is a watch's trigger, and what the functions return that it is for, if the trigger is about that.
type watchOf struct {
	trigger int
	bits    int
	signed  bool
}

func newWatching(a *Arming) *watching {
	w := &watching{groups: map[string]stub.Predicates{}, watched: map[uint32]stub.Predicates{}, pending: map[uint32][]int{}}
	for _, t := range a.Triggers {
		if t.Kind != OnStall {
			w.triggers = append(w.triggers, t)
		}
	}
	n := len(w.triggers)
	w.hit, w.refused, w.traced = make([]bool, n), make([]string, n), make([]bool, n)
	return w
}

// about returns the triggers that are about a function of these names.
func (w *watching) about(names []string) []int {
	if w == nil || len(w.triggers) == 0 {
		return nil
	}
	var list []int
	all := glob.Spellings(names)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.triggers {
		if glob.MatchAny(w.triggers[i].Function, all) {
			list = append(list, i)
			w.hit[i] = true
		}
	}
	return list
}

// refuse notes why a function can't be watched.
func (w *watching) refuse(about []int, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range about {
		w.refused[i] = reason
	}
}

// want notes that the function with an ID is to be watched.
func (w *watching) want(id uint32, about []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[id] = about
}

// plan gives the functions of an image that are to be watched their watches. It must be done before an arena takes them over.
func (w *watching) plan(ctx context.Context, im *mapped.Image, notice func(format string, args ...any)) {
	if w == nil || len(w.pending) == 0 {
		return
	}
	var debug *arguments.Debug
	opened := false
	for i := range im.Traced {
		fn := &im.Traced[i]
		about, wanted := w.pending[fn.ID]
		if !wanted {
			continue
		}
		var list []watchOf
		for _, t := range about {
			of := watchOf{trigger: t}
			if w.triggers[t].Kind == OnResult {
				if !opened {
					opened = true
					debug, _ = arguments.Open(ctx, im.Object) // without it results are taken for ints
				}
				if err := w.result(&of, debug, fn, im, notice); err != nil {
					w.refuse([]int{t}, err.Error())
					continue
				}
			}
			list = append(list, of)
		}
		if len(list) > 0 {
			fn.Predicates = w.watch(fn.ID, list)
		}
	}
	clear(w.pending)
	if debug != nil {
		debug.Close()
	}
}

// result finds out what a function returns.
func (w *watching) result(of *watchOf, debug *arguments.Debug, fn *stub.Probe, im *mapped.Image, notice func(format string, args ...any)) error {
	sig, err := debug.Function(fn.Addr, fn.Names(), im.Probe.Go != nil)
	if err != nil {
		return err
	}
	known := false
	if of.bits, of.signed, known, err = sig.IntegerResult(); err != nil {
		return err
	}
	if !known {
		notice("--when %q: what %s returns is not known without debug information, and taken for an int", w.triggers[of.trigger].Text, fn.Name)
		if v := w.triggers[of.trigger].Value; v != int64(int32(v)) {
			of.bits = 64
		}
	}
	return nil
}

// watch gives the function with an ID its watches, which it may share with others.
func (w *watching) watch(id uint32, list []watchOf) stub.Predicates {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(list)
	for _, of := range list {
		w.traced[of.trigger] = true
	}
	g, found := w.groups[key]
	if !found {
		if len(w.watches)+len(list) > ring.MaxWatches {
			w.overflow = true
			return stub.Predicates{}
		}
		g = stub.Predicates{First: uint8(len(w.watches)), Count: uint8(len(list))}
		w.watches = append(w.watches, list...)
		w.groups[key] = g
	}
	w.watched[id] = g
	return g
}

// check returns an error for the first trigger that no function is watched for.
func (w *watching) check(sample []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.overflow {
		return fmt.Errorf("callreel: more than %d combinations of triggers and functions: name fewer functions in each", ring.MaxWatches)
	}
	for i := range w.triggers {
		t := &w.triggers[i]
		switch {
		case w.traced[i]:
		case w.hit[i]:
			return fmt.Errorf("callreel: --when %q: %w to watch %s: %s", t.Text, ErrRefused, t.Function, w.refused[i])
		default:
			return glob.NoMatch("--when", t.Function, sample)
		}
	}
	return nil
}

// set writes the watches down.
func (w *watching) set(to *ring.Watches, ticksPerSecond uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, of := range w.watches {
		v := w.triggers[of.trigger].watch(ticksPerSecond)
		v.Bits, v.Signed = of.bits, of.signed
		to.Set(i, v)
	}
}

// of returns the trigger of a watch, and the watch; nil if there is none.
func (w *watching) of(watch int) (*Trigger, watchOf) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watch < 0 || watch >= len(w.watches) {
		return nil, watchOf{}
	}
	return &w.triggers[w.watches[watch].trigger], w.watches[watch]
}

// ofFunction returns the triggers that a function is watched for.
func (w *watching) ofFunction(id uint32) []*Trigger {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.watched[id]
	var list []*Trigger
	for _, of := range w.watches[g.First : g.First+g.Count] {
		list = append(list, &w.triggers[of.trigger])
	}
	return list
}

// ticksOf is a duration in ticks.
func ticksOf(d time.Duration, ticksPerSecond uint64) uint64 {
	return uint64(d.Seconds() * float64(ticksPerSecond))
}

// watch is what stubs look at.
func (t *Trigger) watch(ticksPerSecond uint64) ring.Watch {
	w := ring.Watch{Low: math.MinInt64, High: math.MaxInt64}
	v := t.Value
	switch t.Kind {
	case OnDuration:
		w.Kind, v = ring.WatchDuration, int64(ticksOf(t.Duration, ticksPerSecond))
	case OnResult:
		w.Kind = ring.WatchResult
	case OnCall:
		w.Kind, w.Low = ring.WatchNumber, 1
		if v > 0 {
			w.Low, w.High = v, v
		}
		return w
	}
	switch t.Op {
	case ">":
		w.Low = v + 1
	case ">=":
		w.Low = v
	case "<":
		w.High = v - 1
	case "<=":
		w.High = v
	case "==", "!=":
		w.Low, w.High, w.Not = v, v, t.Op == "!="
	}
	return w
}

// grace is for how long a call that is over its time is given to return: a dump of all of it says more.
const grace = time.Second

// overdue is after how many ticks an open call is a reason for a dump although it hasn't returned; ok is false if it never is. number is
// the call's.
func (t *Trigger) overdue(number uint64, ticksPerSecond uint64) (ticks uint64, ok bool) {
	switch {
	case t.Kind == OnDuration && (t.Op == ">" || t.Op == ">="):
		return ticksOf(t.Duration+grace, ticksPerSecond), true
	case t.Kind == OnCall && (t.Value == 0 || uint64(t.Value) == number):
		return ticksOf(grace, ticksPerSecond), true // it may never return
	}
	return 0, false
}

// text is a result as it is compared.
func (of watchOf) text(result uint64) string {
	shift := 64 - of.bits
	if of.signed {
		return fmt.Sprint(int64(result) << shift >> shift)
	}
	return fmt.Sprint(result << shift >> shift)
}
