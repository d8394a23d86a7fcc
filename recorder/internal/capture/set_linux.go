package capture

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/arguments"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// MaxFunctions is of how many functions values are recorded at most: each has code of its own.
const MaxFunctions = 1024

// Set is what is recorded of arguments and results. Decode and DescribeAll may be called by any goroutine, the other methods by one at a
// time.
type Set struct {
	values     []*valueSpec
	conditions []*conditionSpec
	table      map[uint32]*stub.Captures
	refused    []refused           // of those asked for
	taken      map[uint32][]string // all names of functions that are to be planned, by ID
	noticed    int                 // see few

	mu    sync.Mutex // guards plans, which grow as libraries are loaded
	plans map[uint32]*plans
}

// valueSpec is one --args, or --ret.
type valueSpec struct {
	arguments.Spec
	flag     string
	atReturn bool
	hit      bool // a function of the name was planned
}

// conditionSpec is one --if. Without a function it is of those that other options name.
type conditionSpec struct {
	text, function string
	list           []arguments.Condition
	hit            bool
}

// refused is a function that can't be probed.
type refused struct {
	names []string
	why   string
}

// plans are what is recorded of a function: at its entry, and at its return; nil for nothing.
type plans struct{ entry, atReturn *arguments.Plan }

func (p *plans) of(atReturn bool) *arguments.Plan {
	if atReturn {
		return p.atReturn
	}
	return p.entry
}

// New reads what is asked for. An error is an *Error.
func New(o Options) (*Set, error) {
	s := &Set{table: map[uint32]*stub.Captures{}, plans: map[uint32]*plans{}, taken: map[uint32][]string{}}
	for _, k := range []struct {
		flag     string
		list     []string
		atReturn bool
	}{{"--args", o.Args, false}, {"--ret", o.Returns, true}} {
		for _, text := range k.list {
			spec, err := arguments.Parse(text)
			if err != nil {
				return nil, &Error{k.flag, text, err}
			}
			s.values = append(s.values, &valueSpec{Spec: spec, flag: k.flag, atReturn: k.atReturn})
		}
	}
	for _, text := range o.Conditions {
		function, list, err := arguments.ParseConditions(text)
		if err != nil {
			return nil, &Error{"--if", text, err}
		}
		if function == "" && len(s.values) == 0 {
			return nil, &Error{"--if", text, errors.New("say of which function: --if 'F: size > 4096', or --args F")}
		}
		s.conditions = append(s.conditions, &conditionSpec{text: text, function: function, list: list})
	}
	return s, nil
}

// Empty says whether nothing is asked for.
func (s *Set) Empty() bool { return len(s.values)+len(s.conditions) == 0 }

// Table is what stubs are asked for, by the target's function IDs. It doesn't change any more, since stubs may be made at any time: Plan and
// PlanLate make another one, with what was there before.
func (s *Set) Table() map[uint32]*stub.Captures { return s.table }

// hasValues says whether values of a function are asked for.
func (s *Set) hasValues(names []string) bool {
	return slices.ContainsFunc(s.values, func(v *valueSpec) bool { return glob.MatchAny(v.Function, names) })
}

// on says whether a condition is on calls of a function.
func (s *Set) on(c *conditionSpec, names []string) bool {
	if c.function == "" {
		return s.hasValues(names)
	}
	return glob.MatchAny(c.function, names)
}

// Wants says whether anything is asked for of a function of these names, which are all of its spellings.
func (s *Set) Wants(names []string) bool {
	return s.hasValues(names) || slices.ContainsFunc(s.conditions, func(c *conditionSpec) bool { return s.on(c, names) })
}

// Take notes that a function of which something is asked for is to be probed under an ID. Plan plans it.
func (s *Set) Take(id uint32, names []string) { s.taken[id] = names }

// Refuse notes why a function of which something is asked for can't be probed.
func (s *Set) Refuse(names []string, why string) { s.refused = append(s.refused, refused{names, why}) }

// refusal says why the functions of a name can't be probed, nil if there are none.
func (s *Set) refusal(flag, function string) error {
	for _, r := range s.refused {
		if glob.MatchAny(function, r.names) {
			return &Error{flag, function, fmt.Errorf("%s can't be probed: %s", r.names[0], r.why)}
		}
	}
	return nil
}

// Check returns an error for the first option that is about no function that was planned, unless wait, which may be nil, says of it that such
// a function may come. names are those that it could have been about.
func (s *Set) Check(names []string, wait func(*glob.NoMatchError) bool) error {
	for _, v := range s.values {
		if v.hit {
			continue
		}
		if err := s.refusal(v.flag, v.Function); err != nil {
			return err
		}
		if err := glob.NoMatch(v.flag, v.Function, names); wait == nil || !wait(err) {
			return err
		}
	}
	for _, c := range s.conditions {
		if c.hit {
			continue
		}
		if err := s.refusal("--if", c.function); err != nil {
			return err
		}
		err := &glob.NoMatchError{Flag: "--if", Glob: cmp.Or(c.function, c.text), Near: glob.Near(c.function, names)}
		if wait == nil || !wait(err) {
			return err
		}
	}
	return nil
}
