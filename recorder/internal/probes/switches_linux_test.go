package probes

import (
	"errors"
	"reflect"
	"testing"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
)

// unshared is the recording of a program that was started below another, whose probes' memory isn't shared with the recorder.
func unshared(names ...string) *Switches {
	a := &target.Arena{}
	for i, name := range names {
		a.Fns = append(a.Fns, stub.Probe{Function: &plan.Function{Name: name}, ID: uint32(i + 1)})
	}
	lead := New(Config{Target: &target.Target{}, Elsewhere: true})
	return New(Config{Target: &target.Target{Arenas: []*target.Arena{a}}, Elsewhere: true, Lead: lead})
}

// TestWhatCantBeSwitchedFollowsWhereNothingIsToChange: it is no success where something is, and never will be.
func TestWhatCantBeSwitchedFollowsWhereNothingIsToChange(t *testing.T) {
	s := unshared("parse", "print")
	lead := s.c.Lead
	ask := func(q Rule) (Count, error) {
		lead.rules, lead.version = []Rule{q}, lead.version+1
		return s.catchUp()
	}
	for _, q := range []Rule{{All: true}, {All: true, Exclude: []string{"scan*"}}, {Functions: []string{"p*"}}} {
		if a, err := ask(q); err != nil || !reflect.DeepEqual(a, Count{On: 2}) {
			t.Errorf("%+v: %+v, %v", q, a, err)
		}
	}
	for _, q := range []Rule{{Exclude: []string{"print"}}, {Functions: []string{"parse"}}} {
		if a, err := ask(q); !errors.Is(err, ErrNotSettable) || !reflect.DeepEqual(a, Count{}) {
			t.Errorf("%+v: %+v, %v", q, a, err)
		}
	}
	if s.behind {
		t.Error("it is tried again, for nothing")
	}
}
