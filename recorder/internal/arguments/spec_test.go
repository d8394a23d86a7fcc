package arguments

import (
	"errors"
	"reflect"
	"testing"

	"github.com/callreel/callreel/recorder/internal/stub"
)

func field(name string, arrow bool) Step { return Step{Field: name, Arrow: arrow} }

func TestParse(t *testing.T) {
	for text, want := range map[string]Spec{
		"f":             {Function: "f"},
		" SSL_* ":       {Function: "SSL_*"},
		"f(name)":       {Function: "f", Values: []Expression{{Text: "name", Name: "name"}}},
		"main.(*T).Get": {Function: "main.(*T).Get"},
		"main.(*T).Get(t.name, n)": {Function: "main.(*T).Get", Values: []Expression{
			{Text: "t.name", Name: "t", Steps: []Step{field("name", false)}}, {Text: "n", Name: "n"}}},
		"f(c->argv[1], *p, buf[:16])": {Function: "f", Values: []Expression{
			{Text: "c->argv[1]", Name: "c", Steps: []Step{field("argv", true), {IsIndex: true, Index: 1}}},
			{Text: "*p", Name: "p", Steps: []Step{{IsIndex: true}}}, {Text: "buf[:16]", Name: "buf", Bytes: true, Count: 16}}},
		"f(buf[:c->len], arg2:s)": {Function: "f", Values: []Expression{
			{Text: "buf[:c->len]", Name: "buf", Bytes: true, Length: &Expression{Text: "c->len", Name: "c", Steps: []Step{field("len", true)}}},
			{Text: "arg2:s", Name: "arg2", Format: 's'}}},
	} {
		if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "f()", "f(,)", ")", "(a)", "f(a->)", "f(a[)", "f(a[x])", "f(a[:0])", "f(a[:257])", "f(a[:b[:c]])", "f(a b)", "f(a:q)", "f(a:ss)",
		"f(a.b.c.d.e.f.g.h.i.j)", "f(1a)", "f(a[:3].b)"} {
		if got, err := Parse(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestParseConditions(t *testing.T) {
	function, list, err := ParseConditions("std::f: size > 4096 && c->argc!=-1 && e==RED&&p == 'x'")
	if err != nil || function != "std::f" || len(list) != 4 {
		t.Fatalf("%q, %+v, %v", function, list, err)
	}
	for i, want := range []struct {
		value, literal string
		is             stub.Comparison
	}{{"size", "4096", stub.Greater}, {"c->argc", "-1", stub.NotEqual}, {"e", "RED", stub.Equal}, {"p", "'x'", stub.Equal}} {
		if c := list[i]; c.Value.Text != want.value || c.Literal != want.literal || c.Comparison != want.is {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
	for _, text := range []string{"", "f: ", "f: a", "a >", "> 3", "a > 3 &&", "f: a = 3"} {
		if _, list, err := ParseConditions(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %+v, %v", text, list, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("f(c->argv[1], *p, buf[:c->len], arg2:s)")
	f.Add("std::f: size > 4096 && c->argc!=-1")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = Parse(text)
		_, _, _ = ParseConditions(text)
	})
}
