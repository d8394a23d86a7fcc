package recorder

import (
	"errors"
	"testing"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
)

// unshared is the recording of a program that was started below another, whose probes' memory isn't shared with the recorder.
func unshared(names ...string) *switches {
	a := &target.Arena{}
	for i, name := range names {
		a.Fns = append(a.Fns, stub.Probe{Function: &plan.Function{Name: name}, ID: uint32(i + 1)})
	}
	root := &recording{s: &target.Target{}}
	root.tree = &tree{root: root}
	root.switches = newSwitches(root)
	r := &recording{tree: root.tree, s: &target.Target{Arenas: []*target.Arena{a}}}
	r.switches = newSwitches(r)
	return r.switches
}

// TestWhatCantBeSwitchedFollowsWhereNothingIsToChange: it is no success where something is, and never will be.
func TestWhatCantBeSwitchedFollowsWhereNothingIsToChange(t *testing.T) {
	s := unshared("parse", "print")
	root := s.r.tree.root.switches
	ask := func(q SetRequest) (SetAnswer, error) {
		root.rules, root.version = []SetRequest{q}, root.version+1
		return s.catchUp()
	}
	for _, q := range []SetRequest{{All: true}, {All: true, Exclude: []string{"scan*"}}, {Functions: []string{"p*"}}} {
		if a, err := ask(q); err != nil || a != (SetAnswer{On: 2}) {
			t.Errorf("%+v: %+v, %v", q, a, err)
		}
	}
	for _, q := range []SetRequest{{Exclude: []string{"print"}}, {Functions: []string{"parse"}}} {
		if a, err := ask(q); !errors.Is(err, ErrNotSettable) || a != (SetAnswer{}) {
			t.Errorf("%+v: %+v, %v", q, a, err)
		}
	}
	if s.behind {
		t.Error("it is tried again, for nothing")
	}
}
