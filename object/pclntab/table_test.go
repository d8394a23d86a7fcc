package pclntab

import (
	"debug/gosym"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

const source = `package main

import (
	"fmt"
	"os"
	"sort"
)

type byLength []string

func (b byLength) Len() int           { return len(b) }
func (b byLength) Less(i, j int) bool { return len(b[i]) < len(b[j]) }
func (b byLength) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

func largest[T int | float64](list ...T) (most T) {
	for _, v := range list {
		most = max(most, v)
	}
	return most
}

func main() {
	sort.Sort(byLength(os.Args))
	defer func() { fmt.Println(recover()) }()
	fmt.Println(largest(1, 2, len(os.Args)), largest(1.5, 2.5))
}
`

// program builds the source.
func program(t testing.TB, flags ...string) string {
	t.Helper()
	return realtest.BuildGoSource(t, source, nil, flags...)
}

func open(t testing.TB, path string) (*object.Image, *Table) {
	t.Helper()
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	table, err := Open(im)
	if err != nil || table == nil {
		t.Fatalf("%v, %v", table, err)
	}
	return im, table
}

// Go's own reader of the table says the same of every function, and of the line of every address.
func TestAgreesWithGosym(t *testing.T) {
	im, table := open(t, program(t, "-ldflags=-s -w"))
	data, err := im.SectionData(Section(im))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := gosym.NewTable(nil, gosym.NewLineTable(data, table.Text()))
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs.Funcs) != table.Len() || table.Len() < 1000 {
		t.Fatalf("%d functions, gosym has %d", table.Len(), len(theirs.Funcs))
	}
	lines := 0
	for k := range theirs.Funcs {
		want := &theirs.Funcs[k]
		f, err := table.Func(k)
		if err != nil {
			t.Fatal(err)
		}
		if f.Start != want.Entry || f.End != want.End || string(table.Name(f.Name)) != want.Name {
			t.Fatalf("%#x to %#x: %s; gosym: %#x to %#x: %s", f.Start, f.End, table.Name(f.Name), want.Entry, want.End, want.Name)
		}
		if found, ok := table.Find(f.End - 1); !ok || found != f {
			t.Errorf("%s: found %+v at its end", want.Name, found)
		}
		for pc := f.Start; pc < table.CodeEnd(f); pc++ {
			number, line := table.LineAt(f, pc)
			file, wantLine, _ := theirs.PCToLine(pc)
			if string(table.File(number)) != file || int(line) != max(wantLine, 0) {
				t.Fatalf("%#x: %s:%d; gosym: %s:%d", pc, table.File(number), line, file, wantLine)
			}
			lines++
		}
		at := f.Start
		table.Lines(f, func(l Line) bool {
			if number, line := table.LineAt(f, l.Start); l.Start != at || l.End <= l.Start || number != l.File || line != l.Line {
				t.Errorf("%s: %+v after %#x", want.Name, l, at)
			}
			at = l.End
			return true
		})
		if at != table.CodeEnd(f) {
			t.Errorf("%s: lines end at %#x, code at %#x", want.Name, at, table.CodeEnd(f))
		}
	}
	t.Logf("%d functions, %d addresses", table.Len(), lines)
}

// Inlined calls are found in programs of all kinds, each within what it is in.
func TestInlinedCallsNest(t *testing.T) {
	for _, flags := range [][]string{{"-ldflags=-s -w"}, {"-buildmode=pie", "-ldflags=-s -w"}, nil} {
		_, table := open(t, program(t, flags...))
		all := 0
		for k := range table.Len() {
			f, err := table.Func(k)
			if err != nil {
				t.Fatal(err)
			}
			calls, err := table.Inlined(f)
			if err != nil {
				t.Fatal(err)
			}
			for k := range calls {
				c := &calls[k]
				if c.Parent >= k || len(table.Name(c.Name)) == 0 || len(c.Ranges) == 0 {
					t.Fatalf("%s: call %d: %+v", table.Name(f.Name), k, c)
				}
				for _, r := range c.Ranges {
					in := r.Start >= f.Start && r.End <= f.End && r.Start < r.End
					if c.Parent >= 0 {
						in = in && slices.ContainsFunc(calls[c.Parent].Ranges, func(o object.Range) bool { return r.Start >= o.Start && r.End <= o.End })
					}
					if !in {
						t.Fatalf("%s: %s: %+v lies outside", table.Name(f.Name), table.Name(c.Name), r)
					}
				}
			}
			all += len(calls)
		}
		if all < 1000 {
			t.Errorf("%v: %d inlined calls", flags, all)
		}
	}
}

func TestOtherProgramsHaveNoTable(t *testing.T) {
	im, err := object.Parse("empty", binary.LittleEndian.AppendUint64([]byte("\x7fELF\x02\x01\x01"), 0))
	if err == nil {
		if table, err := Open(im); table != nil || err != nil {
			t.Errorf("%v, %v", table, err)
		}
	}
	path := realtest.Tool(t, realtest.GCC)
	c, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if table, err := Open(c); table != nil || err != nil {
		t.Errorf("%v, %v", table, err)
	}
}

// A table with some bytes changed is refused or read, in bounded time, and never makes a panic.
func FuzzDamage(f *testing.F) {
	path := program(f, "-ldflags=-s -w")
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	im, _ := open(f, path)
	s := Section(im)
	f.Add(uint32(0), uint64(0), uint32(1))
	f.Add(uint32(8), ^uint64(0), uint32(72))
	f.Add(uint32(72), uint64(1)<<40, uint32(100000))
	f.Fuzz(func(t *testing.T, at uint32, bits uint64, other uint32) {
		data := slices.Clone(whole)
		table := data[s.Off : s.Off+s.FileSize]
		for _, at := range []uint32{at, other} {
			if int(at)+8 <= len(table) {
				binary.LittleEndian.PutUint64(table[at:], binary.LittleEndian.Uint64(table[at:])^bits)
			}
		}
		im, err := object.Parse("damaged", data)
		if err != nil {
			t.Skip()
		}
		read(im)
	})
}

// read looks at all that a table says.
func read(im *object.Image) {
	t, err := Open(im)
	if err != nil || t == nil {
		return
	}
	for k := range t.Len() {
		f, err := t.Func(k)
		if err != nil {
			continue
		}
		t.Name(f.Name)
		t.SPDelta(f, f.Start+1)
		t.Lines(f, func(l Line) bool { t.File(l.File); return true })
		if _, err := t.Inlined(f); err != nil {
			return
		}
		t.Find(f.Start)
	}
}
