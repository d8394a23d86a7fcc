package recorder

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// watching says which functions are watched for which triggers. Functions that are about the same triggers share the watches of these.
type watching struct {
	triggers []Trigger // without those that are about no function

	mu       sync.Mutex // guards what follows
	hit      []bool     // by trigger: a function of the name was seen
	refused  []string   // by trigger: why the last one of the name can't be probed
	traced   []bool     // by trigger: one is
	groups   map[string]probe.Watched
	triggOf  []int // by watch: the trigger
	watched  map[uint32]probe.Watched
	overflow bool // there were more combinations than watches
}

func newWatching(a *Arming) *watching {
	w := &watching{groups: map[string]probe.Watched{}, watched: map[uint32]probe.Watched{}}
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
	all := namesOf(names)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.triggers {
		for _, n := range all {
			if n == w.triggers[i].Function || glob(w.triggers[i].Function, n) {
				list = append(list, i)
				w.hit[i] = true
				break
			}
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

// watch gives the function with an ID the watches of the triggers that are about it.
func (w *watching) watch(id uint32, about []int) probe.Watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	var key []byte
	for _, i := range about {
		w.traced[i] = true
		key = binary.AppendUvarint(key, uint64(i))
	}
	g, found := w.groups[string(key)]
	if !found {
		if len(w.triggOf)+len(about) > ring.MaxWatches {
			w.overflow = true
			return probe.Watched{}
		}
		g = probe.Watched{First: uint8(len(w.triggOf)), Count: uint8(len(about))}
		w.triggOf = append(w.triggOf, about...)
		w.groups[string(key)] = g
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
			return &NoMatchError{Flag: "--when", Glob: t.Function, Near: near(t.Function, sample)}
		}
	}
	return nil
}

// set writes the watches down.
func (w *watching) set(to *ring.Watches, ticksPerSecond uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range w.triggOf {
		to.Set(i, w.triggers[t].watch(ticksPerSecond))
	}
}

// of returns the trigger of a watch; nil if there is none.
func (w *watching) of(watch int) *Trigger {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watch < 0 || watch >= len(w.triggOf) {
		return nil
	}
	return &w.triggers[w.triggOf[watch]]
}

// ofFunction returns the triggers that a function is watched for.
func (w *watching) ofFunction(id uint32) []*Trigger {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.watched[id]
	var list []*Trigger
	for _, t := range w.triggOf[g.First : g.First+g.Count] {
		list = append(list, &w.triggers[t])
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
		w.Kind, w.Bits, w.Signed = ring.WatchResult, 32, true
		if v > math.MaxInt32 || v < math.MinInt32 {
			w.Bits = 64
		}
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
