package choose

import (
	"errors"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/glob"
)

func TestFunctionsAreChosenByNameAndSize(t *testing.T) {
	for _, test := range []struct {
		rules Rules
		names []string
		size  uint64
		want  bool
	}{
		{Rules{}, []string{"f"}, 1, true},
		{Rules{Functions: []string{"f*"}}, []string{"fx"}, 1, true},
		{Rules{Functions: []string{"f*"}}, []string{"gx"}, 1, false},
		{Rules{Functions: []string{"ns::f"}}, []string{"_ZN2ns1fEi"}, 1, true},
		{Rules{Functions: []string{"alias"}}, []string{"f", "alias"}, 1, true},
		{Rules{Exclude: []string{"f*"}}, []string{"fx"}, 1, false},
		{Rules{Functions: []string{"f*"}, Exclude: []string{"*x"}}, []string{"fx"}, 1, false},
		{Rules{MinSize: 16}, []string{"f"}, 15, false},
		{Rules{MinSize: 16}, []string{"f"}, 16, true},
		{Rules{Functions: []string{"f"}, MinSize: 16}, []string{"f"}, 15, false},
	} {
		if got := New(test.rules).Function(test.names, test.size); got != test.want {
			t.Errorf("%+v: %q of %d bytes is %v", test.rules, test.names, test.size, got)
		}
	}
}

func TestModulesAreChosenByAnyOfTheirNames(t *testing.T) {
	c := New(Rules{Modules: []string{"redis-*", "libc.so.6"}})
	if !c.Module("redis-check-rdb", "redis-server") || !c.Module("libc.so.6") || c.Module("libm.so.6") || !New(Rules{}).Module("any") {
		t.Error("other modules are chosen")
	}
}

func TestGlobsThatHaveMatchedNothingAreKnown(t *testing.T) {
	c := New(Rules{Modules: []string{"prog", "libx"}, Functions: []string{"main", "man"}, Exclude: []string{"other*", "main"}, Inside: []string{"in"}})
	c.Module("prog")
	c.Function([]string{"main"}, 1)
	var got []string
	for _, m := range c.Missed() {
		got = append(got, m.Flag+" "+m.Glob)
	}
	if want := []string{"-m libx", "-f man", "-x other*", "--inside in"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	missed := c.Missed()[1]
	if err := missed.Err(); !missed.Misspelt() || !slices.Equal(err.Near, []string{"main"}) {
		t.Errorf("%v", err)
	}
	var none *glob.NoMatchError
	if err := c.Check(); !errors.As(err, &none) || none.Glob != "libx" {
		t.Error(err)
	}
	if !slices.Equal(c.Names(), []string{"main"}) {
		t.Errorf("%q", c.Names())
	}
	if c.Forget(); len(c.Names()) != 0 {
		t.Errorf("%q", c.Names())
	}
	if err := New(Rules{}).Check(); err != nil {
		t.Error(err)
	}
}
