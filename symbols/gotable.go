package symbols

import (
	"sort"

	"github.com/callreel/callreel/dwarf"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
)

// A Go program's own table of functions stands in for DWARF that was stripped: it has names, lines and inlined calls.

// Sections of the strings of such a table, as dwarf.String has them.
const (
	goNames = 1 << 56
	goFiles = 2 << 56
)

// goString returns the bytes of one of its strings.
func goString(t *pclntab.Table) func(dwarf.String) []byte {
	return func(s dwarf.String) []byte {
		switch s &^ (1<<56 - 1) {
		case goNames:
			return t.Name(pclntab.NameRef(uint32(s)))
		case goFiles:
			return t.File(uint32(s))
		}
		return nil
	}
}

// goPart is how many functions are made blocks of at once.
const goPart = 1024

// readGo turns the functions of a Go program into blocks.
func (b *builder) readGo(w *worker) error {
	for first := 0; first < b.golang.Len(); first += goPart {
		u := goUnit{table: b.golang, c: &w.contents}
		u.begin()
		for k := first; k < min(first+goPart, b.golang.Len()); k++ {
			f, err := b.golang.Func(k)
			if err != nil {
				b.problem(err)
				continue
			}
			if err := u.add(f); err != nil {
				return err
			}
		}
		if err := b.image.Take(w.cost(), "a symbol map of so many functions, calls and rows"); err != nil {
			return err
		}
		w.convert(uint32(first / goPart))
	}
	return nil
}

// goUnit makes some functions of a Go program a unit of DWARF.
type goUnit struct {
	table *pclntab.Table
	c     *dwarf.Contents
	files map[uint32]uint32 // numbers in the table to those in the unit
	rows  []dwarf.Row       // of the function
}

func (u *goUnit) begin() {
	c := u.c
	c.Functions, c.Inlines, c.Ranges, c.Rows = c.Functions[:0], c.Inlines[:0], c.Ranges[:0], c.Rows[:0]
	c.Files = append(c.Files[:0], dwarf.File{})
	u.files = map[uint32]uint32{pclntab.NoFile: 0}
}

// file returns a file's number in the unit.
func (u *goUnit) file(number uint32) uint32 {
	k, known := u.files[number]
	if !known {
		k = uint32(len(u.c.Files))
		u.files[number] = k
		u.c.Files = append(u.c.Files, dwarf.File{Name: goFiles | dwarf.String(number)})
	}
	return k
}

// add adds a function. One without a name or code is passed over.
func (u *goUnit) add(f pclntab.Func) error {
	c, end := u.c, u.table.CodeEnd(f)
	if f.Start == end || len(u.table.Name(f.Name)) == 0 {
		return nil
	}
	u.addRows(f, end)
	fn := dwarf.Function{Name: goNames | dwarf.String(f.Name), Line: f.Line, File: u.rowAt(f.Start).File,
		Ranges: u.ranges(object.Range{Start: f.Start, End: end}), Inlines: dwarf.Span{First: uint32(len(c.Inlines))}}
	calls, err := u.table.Inlined(f)
	if err != nil {
		return err
	}
	for _, k := range inOrder(calls) {
		call := &calls[k.call]
		site := u.rowAt(call.Site)
		c.Inlines = append(c.Inlines, dwarf.Inline{Name: goNames | dwarf.String(call.Name), Ranges: u.ranges(call.Ranges...),
			CallFile: site.File, CallLine: site.Line, Depth: k.depth})
	}
	fn.Inlines.Count = uint32(len(c.Inlines)) - fn.Inlines.First
	c.Functions = append(c.Functions, fn)
	return nil
}

// addRows adds the lines of a function.
func (u *goUnit) addRows(f pclntab.Func, end uint64) {
	first := len(u.c.Rows)
	u.table.Lines(f, func(l pclntab.Line) bool {
		u.c.Rows = append(u.c.Rows, dwarf.Row{Addr: l.Start, File: u.file(l.File), Line: l.Line})
		return true
	})
	u.c.Rows = append(u.c.Rows, dwarf.Row{Addr: end, End: true})
	u.rows = u.c.Rows[first:]
}

// rowAt returns the row of an address of the function.
func (u *goUnit) rowAt(pc uint64) dwarf.Row {
	if k := sort.Search(len(u.rows), func(k int) bool { return u.rows[k].Addr > pc }); k > 0 {
		return u.rows[k-1]
	}
	return dwarf.Row{}
}

// ranges adds ranges of code.
func (u *goUnit) ranges(list ...object.Range) dwarf.Span {
	at := dwarf.Span{First: uint32(len(u.c.Ranges)), Count: uint32(len(list))}
	for _, r := range list {
		u.c.Ranges = append(u.c.Ranges, dwarf.Range{Low: r.Start, High: r.End})
	}
	return at
}

// nested is a call with how deep it is in others, from 1.
type nested struct {
	call  int
	depth uint32
}

// inOrder lists calls so that what is in a call follows it at once, as the entries of DWARF do.
func inOrder(calls []pclntab.Inlined) []nested {
	within := make([][]int, len(calls)+1) // by parent + 1
	for k := range calls {
		parent := calls[k].Parent + 1
		within[parent] = append(within[parent], k)
	}
	list := make([]nested, 0, len(calls))
	var add func(parent int, depth uint32)
	add = func(parent int, depth uint32) {
		for _, k := range within[parent] {
			list = append(list, nested{k, depth})
			add(k+1, depth+1) // a parent stands before: this ends
		}
	}
	add(0, 1)
	return list
}
