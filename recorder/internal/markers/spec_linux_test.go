package markers

import (
	"errors"
	"reflect"
	"testing"

	"github.com/callreel/callreel/mark/sdt"
)

func TestMarkersAreAskedForByNameAndArguments(t *testing.T) {
	for text, want := range map[string]spec{
		"postgresql:*":                    {glob: "postgresql:*", all: true},
		"query__start":                    {glob: "query__start", all: true},
		"python:line()":                   {glob: "python:line"},
		"python:line(arg1:s, arg3)":       {glob: "python:line", args: []wanted{{0, 's'}, {2, 0}}},
		" a:b ( arg2:x ,arg1:u,arg4:f ) ": {glob: "a:b", args: []wanted{{1, 'x'}, {0, 'u'}, {3, 'f'}}},
	} {
		want.text = text
		if got, err := parse(text); err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "(arg1)", "a:b(", "a:b(arg1", "a:b(x)", "a:b(arg0)", "a:b(arg65)", "a:b(arg1:)", "a:b(arg1:ss)", "a:b(arg1:z)",
		"a:b(arg1,arg1)", "a:b(arg1,)", "[a"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	var wrong *Error
	if _, err := New(Options{Markers: []string{"a:b("}}); !errors.As(err, &wrong) || wrong.Flag != "--markers" {
		t.Error(err)
	}
	if _, err := New(Options{Pairs: []string{"a"}}); !errors.As(err, &wrong) || wrong.Flag != "--pair" {
		t.Error(err)
	}
}

func TestTheLastThatAsksForAMarkerCounts(t *testing.T) {
	s, err := New(Options{Markers: []string{"p:a(arg1:s)", "p:*", "other"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "p:*", "b": "p:*", "other": "other"} {
		if got := s.specOf(&sdt.Note{Provider: "p", Name: name}); got == nil || got.text != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if s.specOf(&sdt.Note{Provider: "q", Name: "a"}) != nil || s.Wants([]sdt.Note{{Provider: "q", Name: "a"}}) != nil {
		t.Error("a marker of another provider is asked for")
	}
	var none *Set
	if !none.Empty() {
		t.Error("nothing asks for something")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("python:line(arg1:s, arg3)")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parse(text); err == nil && (s.glob == "" || s.all && len(s.args) > 0) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}
