package dwarf

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// A listing is all that a file says about its code, in words that can be compared
// and read.
type listing struct {
	functions []listedFunction
	rows      []listedRow // by address, one for each at which something changes
}

type listedFunction struct {
	name    string
	ranges  []Range
	decl    string // file:line
	inlines []listedInline
}

type listedInline struct {
	name   string
	ranges []Range
	call   string // file:line
	depth  int
}

type listedRow struct {
	addr uint64
	text string // file:line, "" where there is nothing
}

// list reads all units.
func list(t testing.TB, d *Data) *listing {
	t.Helper()
	l := new(listing)
	var c Contents
	for k := range d.Units() {
		if err := d.Read(&d.Units()[k], &c); err != nil {
			t.Error(err)
		}
		l.add(d, &c)
	}
	l.sort()
	return l
}

// add takes in what a unit holds.
func (l *listing) add(d *Data, c *Contents) {
	files := make([]string, len(c.Files))
	for k, f := range c.Files {
		if k > 0 {
			files[k] = path.Join(string(d.Bytes(f.CompDir)), string(d.Bytes(f.Dir)), string(d.Bytes(f.Name)))
		}
	}
	ranges := func(s Span) []Range {
		return slices.Clone(c.Ranges[s.First : s.First+s.Count])
	}
	for _, f := range c.Functions {
		one := listedFunction{name: string(d.Bytes(f.Name)), ranges: ranges(f.Ranges), decl: place(files[f.File], uint64(f.Line))}
		for _, call := range c.Inlines[f.Inlines.First : f.Inlines.First+f.Inlines.Count] {
			one.inlines = append(one.inlines, listedInline{
				name: string(d.Bytes(call.Name)), ranges: ranges(call.Ranges),
				call: place(files[call.CallFile], uint64(call.CallLine)), depth: int(call.Depth),
			})
		}
		l.functions = append(l.functions, one)
	}
	for _, r := range c.Rows {
		row := listedRow{addr: r.Addr}
		if !r.End {
			row.text = place(files[r.File], uint64(r.Line))
		}
		l.rows = append(l.rows, row)
	}
}

func place(file string, line uint64) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// sort brings the listing into an order that does not depend on the reader's.
func (l *listing) sort() {
	for k := range l.functions {
		f := &l.functions[k]
		slices.SortFunc(f.ranges, compareRanges)
		for n := range f.inlines {
			slices.SortFunc(f.inlines[n].ranges, compareRanges)
		}
	}
	slices.SortStableFunc(l.functions, func(a, b listedFunction) int {
		return cmp.Or(slices.CompareFunc(a.ranges, b.ranges, compareRanges), strings.Compare(a.name, b.name))
	})
	// Where a sequence ends and another one starts, the start counts.
	slices.SortStableFunc(l.rows, func(a, b listedRow) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(len(b.text), 0)-cmp.Compare(len(a.text), 0))
	})
	var changes []listedRow
	for k, r := range l.rows {
		if k > 0 && r.text == "" && l.rows[k-1].addr == r.addr {
			continue
		}
		if n := len(changes); n > 0 && changes[n-1].addr == r.addr {
			changes[n-1] = r
		} else {
			changes = append(changes, r)
		}
	}
	l.rows = slices.CompactFunc(changes, func(a, b listedRow) bool { return a.text == b.text })
}

func compareRanges(a, b Range) int {
	return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(a.High, b.High))
}

// lines writes the listing down, one thing a line.
func (l *listing) lines() []string {
	var out []string
	for _, f := range l.functions {
		out = append(out, fmt.Sprintf("%s %x decl %s", f.name, f.ranges, f.decl))
		for _, call := range f.inlines {
			out = append(out, fmt.Sprintf("%*s%s %x called at %s", 2*call.depth, "", call.name, call.ranges, call.call))
		}
	}
	for _, r := range l.rows {
		out = append(out, fmt.Sprintf("%#x %s", r.addr, r.text))
	}
	return out
}

// withoutDeclarations forgets where functions are declared.
func (l *listing) withoutDeclarations() *listing {
	for k := range l.functions {
		l.functions[k].decl = ""
	}
	return l
}

// counts says how much there is, so that a test cannot pass on nothing.
func (l *listing) counts() (functions, inlines, rows int) {
	for _, f := range l.functions {
		inlines += len(f.inlines)
	}
	return len(l.functions), inlines, len(l.rows)
}

// compare reports the first differences.
func compare(t *testing.T, got, want *listing) {
	t.Helper()
	functions, inlines, rows := want.counts()
	if functions == 0 || rows == 0 {
		t.Fatal("there is nothing to compare")
	}
	t.Logf("%d functions, %d inlined calls, %d rows", functions, inlines, rows)
	g, w := got.lines(), want.lines()
	shown := 0
	for k := 0; k < max(len(g), len(w)) && shown < 12; k++ {
		var a, b string
		if k < len(g) {
			a = g[k]
		}
		if k < len(w) {
			b = w[k]
		}
		if a != b {
			t.Errorf("line %d:\n got %s\nwant %s", k, a, b)
			shown++
		}
	}
}
