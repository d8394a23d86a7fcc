package screen

import (
	"slices"
	"strings"
	"testing"
)

func TestKeysAreReadAsTerminalsWriteThem(t *testing.T) {
	for _, c := range []struct {
		typed string
		want  []Key
	}{
		{"q/", []Key{'q', '/'}},
		{"\x1b[A\x1b[B\x1bOC\x1b[D", []Key{Up, Down, Right, Left}},
		{"\x1b[5~\x1b[6~\x1b[1~\x1b[F\x1b[H\x1b[4~", []Key{PageUp, PageDown, Home, End, Home, End}},
		{"\x1b", []Key{Esc}},
		{"\x1bx", []Key{Esc, 'x'}},
		{"\x1b[1;5C", []Key{Right}}, // with Ctrl
		{"\x1b[200~", []Key{Unknown}},
		{"\x1b[12", []Key{Unknown}}, // not whole
		{"é字", []Key{'é', '字'}},
		{"\xff", []Key{Unknown}},
		{"\r\n\x7f\b\x03\x1a", []Key{Enter, Enter, Backspace, Backspace, CtrlC, CtrlZ}},
	} {
		keys := make(chan Key, 100)
		readKeys(strings.NewReader(c.typed), keys)
		var got []Key
		for k := range keys {
			got = append(got, k)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.typed, got, c.want)
		}
	}
}
