package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSymbolizersAnswersAreReadWithoutColumns(t *testing.T) {
	for block, want := range map[string][]string{
		"inner\n/a.c:3:7\nouter\n/b.c:12:0\n": {"inner\t/a.c:3", "outer\t/b.c:12"},
		"f(int, char)\nC:\\a.c:3:7":           {"f(int, char)\tC:\\a.c:3"},
		"name\n??:0:0":                        {"name\t??:0"},
		"??\n??:0:0":                          nil,
		"":                                    nil,
	} {
		if got := symbolizerFrames(block); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", block, got, want)
		}
	}
}

func TestNewestVersionIsComparedByNumbers(t *testing.T) {
	names := []string{"linux-image-6.1.0-9-amd64-dbg", "linux-image-6.12.0-1-amd64-dbg", "linux-image-6.1.0-56-amd64-dbg"}
	if got := slices.MaxFunc(names, byNumbers); !strings.Contains(got, "6.12") {
		t.Errorf("%s", got)
	}
	if got := slices.MaxFunc([]string{names[0], names[2]}, byNumbers); !strings.Contains(got, "-56-") {
		t.Errorf("%s", got)
	}
}
