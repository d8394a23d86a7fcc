package doctest

import (
	"fmt"
	"reflect"
	"testing"
)

const sample = "# One *two*: `three`\n\ntext `--flag` [link\nover lines](a.md#one-two-three) `[no](link)`\n\n" +
	"```console seen\n$ callreel a -b 'c d' | callreel e  # f\nout\n\n$ ls\n```\n\n    make   # x\n    callreel g\n\nend\n"

func TestDocumentsAreRead(t *testing.T) {
	d := Parse("x.md", sample)
	if len(d.Blocks) != 2 || d.Blocks[0].Kind != "console" || !d.Blocks[0].Has("seen") || d.Blocks[0].Line != 7 ||
		d.Blocks[1].Kind != "indented" || d.Blocks[1].Line != 13 || len(d.Blocks[1].Lines) != 2 {
		t.Errorf("blocks %+v", d.Blocks)
	}
	if links := d.Links(); len(links) != 1 || links[0] != (Link{4, "a.md#one-two-three"}) {
		t.Errorf("links %+v", links)
	}
	if a := d.Anchors(); len(a) != 1 || !a["one-two-three"] {
		t.Errorf("anchors %v", a)
	}
	if want := []Span{{1, "three"}, {3, "--flag"}, {4, "[no](link)"}}; !reflect.DeepEqual(d.Spans, want) {
		t.Errorf("spans %+v", d.Spans)
	}
	list := d.Blocks[0].Commands()
	if len(list) != 2 || list[0].Text != "callreel a -b 'c d' | callreel e  # f" || len(list[0].Output) != 1 || list[1].Text != "ls" {
		t.Errorf("commands %+v", list)
	}
	if list := d.Blocks[1].Commands(); len(list) != 1 || list[0].Line != 14 {
		t.Errorf("commands %+v", list)
	}
}

func TestLinesAreDividedAsAShellDoes(t *testing.T) {
	for line, want := range map[string]string{
		`callreel a 'b | c' "d" # e`:         `[[callreel a b | c d]]`,
		`callreel a > out.txt && go b`:       `[[callreel a] [go b]]`,
		`./p 2>&1 | callreel a --b 'c'=d`:    `[[./p] [callreel a --b c=d]]`,
		`callreel a < in 2>err x &`:          `[[callreel a x]]`,
		`cut -d" " -f3 | callreel x; y#z`:    `[[cut -d  -f3] [callreel x] [y#z]]`,
		`callreel record --when 'f < 0' -- `: `[[callreel record --when f < 0 --]]`,
		``:                                   `[]`,
	} {
		if got := fmt.Sprint(Simple(line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
