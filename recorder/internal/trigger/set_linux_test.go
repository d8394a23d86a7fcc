package trigger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

const perSecond = 1e9

func setOf(t *testing.T, conditions ...string) *Set {
	t.Helper()
	var list []Trigger
	for _, text := range conditions {
		one, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	return NewSet(list)
}

// take lets the set have functions of an image, their IDs from 1 on, as a recording does.
func take(t *testing.T, s *Set, functions ...string) *mapped.Image {
	t.Helper()
	im := &mapped.Image{}
	for i, name := range functions {
		id := uint32(i + 1)
		if s.Wants([]string{name}) {
			s.Take(id, []string{name})
		}
		im.Traced = append(im.Traced, stub.Probe{Function: &plan.Function{Name: name}, ID: id})
	}
	s.Plan(context.Background(), im, t.Errorf)
	return im
}

func TestFunctionsWithTheSameTriggersShareTheirPredicates(t *testing.T) {
	s := setOf(t, "a* > 5ms", "*b #3", "stall:1s")
	im := take(t, s, "a1", "ab", "a2", "b", "c")
	want := []stub.Predicates{{First: 0, Count: 1}, {First: 1, Count: 2}, {First: 0, Count: 1}, {First: 3, Count: 1}, {}}
	for i := range im.Traced {
		if got := im.Traced[i].Predicates; got != want[i] {
			t.Errorf("%s has %+v, and not %+v", im.Traced[i].Name, got, want[i])
		}
	}
	if err := s.Check(nil, nil); err != nil {
		t.Error(err)
	}
	for i, want := range []string{"a* > 5ms", "a* > 5ms", "*b #3", "*b #3"} {
		if got, detail, ok := s.Fired(&ring.Firing{Predicate: i}); !ok || got.Text != want || detail != "" {
			t.Errorf("predicate %d is of %q (%q), and not of %q", i, got.Text, detail, want)
		}
	}
	for _, i := range []int{-1, 4} {
		if got, _, ok := s.Fired(&ring.Firing{Predicate: i}); ok { // the target writes what it likes
			t.Errorf("predicate %d is of %q", i, got.Text)
		}
	}
}

func TestATriggerThatNoFunctionHasIsAnError(t *testing.T) {
	s := setOf(t, "main > 5ms")
	s.Wants([]string{"mian"})
	var none *glob.NoMatchError
	if err := s.Check([]string{"mian"}, nil); !errors.As(err, &none) || none.Flag != "--when" || none.Glob != "main" || !slices.Equal(none.Near, []string{"mian"}) {
		t.Error(err)
	}
	s.Wants([]string{"main"}) // in an image that isn't chosen
	if err := s.Check(nil, nil); !errors.Is(err, refusal.Err) || !strings.HasSuffix(err.Error(), "to watch main: -m leaves its module out") {
		t.Error(err)
	}
	s.Refuse([]string{"main"}, "too-short")
	if err := s.Check(nil, nil); !errors.Is(err, refusal.Err) || !strings.HasSuffix(err.Error(), "to watch main: too-short") {
		t.Error(err)
	}
	take(t, s, "main")
	if err := s.Check(nil, nil); err != nil {
		t.Error(err)
	}
}

func TestTooManyGroupsAreRefused(t *testing.T) {
	var conditions, functions []string
	for i := range ring.MaxPredicates + 1 {
		name := fmt.Sprintf("f%d", i)
		conditions, functions = append(conditions, name), append(functions, name)
	}
	s := setOf(t, conditions...)
	im := take(t, s, functions[:ring.MaxPredicates]...)
	if last := im.Traced[ring.MaxPredicates-1].Predicates; last.First != ring.MaxPredicates-1 || last.Count != 1 {
		t.Errorf("%+v", last)
	}
	if im = take(t, s, functions[ring.MaxPredicates]); im.Traced[0].Predicates.Count != 0 {
		t.Errorf("%+v", im.Traced[0].Predicates)
	}
	if err := s.Check(nil, nil); err == nil || !strings.Contains(err.Error(), "more than 64 combinations") {
		t.Error(err)
	}
}

func TestPredicatesAreWhatTheConditionSays(t *testing.T) {
	for op, holds := range map[string]func(a, b int64) bool{
		">": func(a, b int64) bool { return a > b }, ">=": func(a, b int64) bool { return a >= b },
		"<": func(a, b int64) bool { return a < b }, "<=": func(a, b int64) bool { return a <= b },
		"==": func(a, b int64) bool { return a == b }, "!=": func(a, b int64) bool { return a != b },
	} {
		for _, with := range []int64{-3, 0, 7, math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64} {
			one := Trigger{Kind: OnResult, Op: op, Value: with}
			p := one.predicate(perSecond)
			if p.Kind != ring.PredicateResult {
				t.Errorf("its kind is %d", p.Kind)
			}
			// Two numbers on both sides; behind the last come the first again.
			for _, v := range []int64{with - 2, with - 1, with, with + 1, with + 2} {
				if got := (p.Low <= v && v <= p.High) != p.Not; got != holds(v, with) {
					t.Errorf("%d %s %d is %v", v, op, with, got)
				}
			}
		}
	}
	one := Trigger{Kind: OnDuration, Op: ">=", Duration: time.Millisecond}
	if p := one.predicate(perSecond); p.Kind != ring.PredicateDuration || p.Low != 1e6 {
		t.Errorf("%+v", p)
	}
	for number, low := range map[int64]int64{0: 1, 5: 5} {
		one := Trigger{Kind: OnCall, Value: number}
		if p := one.predicate(perSecond); p.Kind != ring.PredicateNumber || p.Low != low || number > 0 && p.High != number {
			t.Errorf("call %d: %+v", number, p)
		}
	}
}

func TestResultsAreShownAsTheirTypeHasThem(t *testing.T) {
	for _, c := range []struct {
		p    predicate
		want string
	}{
		{predicate{bits: 32, signed: true}, "-1"},
		{predicate{bits: 32}, "4294967295"},
		{predicate{bits: 8, signed: true}, "-1"},
		{predicate{bits: 64, signed: true}, "5124097847590911"},
	} {
		if got := c.p.text(0x0123456_ffffffff); got != c.want {
			t.Errorf("%+v: %s", c.p, got)
		}
	}
}

func TestACallIsOverdueOnceItHasHadTimeToReturn(t *testing.T) {
	s := setOf(t, "slow > 100ms", "nth #3", "fast < 1ms", "slow #9")
	take(t, s, "slow", "nth", "fast")
	call := func(function uint32, number uint64) *ring.OpenCall {
		return &ring.OpenCall{Word: function << 1, From: 1000, Number: number}
	}
	at := func(d time.Duration) uint64 { return 1000 + ring.TicksOf(d, perSecond) }
	for _, c := range []struct {
		call *ring.OpenCall
		open time.Duration
		want string
	}{
		{call(1, 1), 1050 * time.Millisecond, ""},
		{call(1, 1), 1150 * time.Millisecond, "slow > 100ms"},
		{call(1, 9), 1050 * time.Millisecond, "slow #9"},
		{call(2, 2), time.Hour, ""},
		{call(2, 3), 1050 * time.Millisecond, "nth #3"},
		{call(3, 1), time.Hour, ""},
		{call(77, 1), time.Hour, ""},
	} {
		if got, ok := s.Overdue(c.call, at(c.open), perSecond); got.Text != c.want || ok != (c.want != "") {
			t.Errorf("call %d of %d, open for %v: %q", c.call.Number, c.call.Word>>1, c.open, got.Text)
		}
	}
}

func TestOnlyTheNumberOfATriggerChanges(t *testing.T) {
	s := setOf(t, "f == 1", "f > 100ms", "f > 7")
	if got := s.Interval(time.Minute); got != 100*time.Millisecond { // a tenth of the grace, at least
		t.Error(got)
	}
	parse := func(text string) *Trigger {
		one, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return &one
	}
	for text, why := range map[string]string{
		"f == 2": "only conditions with", "f": "only conditions with", "f < 5ms": "f > 100ms, f > 7", "g > 5ms": "it must be as one",
	} {
		if _, got := s.Like(parse(text)); !strings.Contains(got, why) {
			t.Errorf("%q: %q", text, got)
		}
	}
	longer := parse("f > 10s")
	at, why := s.Like(longer)
	if at != 1 || why != "" {
		t.Fatalf("it is like %d: %q", at, why)
	}
	s.Replace(map[int]Trigger{at: *longer})
	if got := s.Interval(time.Minute); got != 5*time.Second {
		t.Error(got)
	}
	if got := s.Interval(time.Second); got != time.Second {
		t.Error(got)
	}
}
