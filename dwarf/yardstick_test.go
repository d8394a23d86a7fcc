package dwarf

import (
	"debug/dwarf"
	"debug/elf"
	"debug/macho"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
)

// yardstick makes the listing of a file with the standard library's reader, which
// is general and slow.
type yardstick struct {
	t    testing.TB
	data *dwarf.Data
	code []Range
	l    *listing
}

// yard lists an ELF file.
func yard(t testing.TB, path string) *listing {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	var code []Range
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Flags&elf.SHF_EXECINSTR != 0 {
			code = append(code, Range{s.Addr, s.Addr + s.Size})
		}
	}
	return yardOf(t, data, code)
}

// yardMach lists a Mach-O file.
func yardMach(t testing.TB, path string) *listing {
	t.Helper()
	f, err := macho.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	var code []Range
	for _, s := range f.Sections {
		const pureCode, someCode = 0x80000000, 0x400
		if s.Flags&(pureCode|someCode) != 0 {
			code = append(code, Range{s.Addr, s.Addr + s.Size})
		}
	}
	return yardOf(t, data, code)
}

func yardOf(t testing.TB, data *dwarf.Data, code []Range) *listing {
	t.Helper()
	y := &yardstick{t: t, data: data, code: code, l: new(listing)}
	r := y.data.Reader()
	for {
		cu, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if cu == nil {
			break
		}
		if cu.Tag == dwarf.TagCompileUnit {
			y.unit(r, cu)
		} else {
			r.SkipChildren()
		}
	}
	y.l.sort()
	return y.l
}

// unit lists one unit, whose first entry has been read.
func (y *yardstick) unit(r *dwarf.Reader, cu *dwarf.Entry) {
	lines, err := y.data.LineReader(cu)
	if err != nil {
		y.t.Fatal(err)
	}
	compDir, _ := cu.Val(dwarf.AttrCompDir).(string)
	var files []*dwarf.LineFile
	if lines != nil {
		y.rows(lines, compDir)
		files = lines.Files()
	}
	file := func(e *dwarf.Entry, attr dwarf.Attr, of *dwarf.Entry, line dwarf.Attr) string {
		k, ok := e.Val(attr).(int64)
		n, _ := of.Val(line).(int64)
		if !ok || k < 0 || int(k) >= len(files) || files[k] == nil {
			return ""
		}
		return place(absolute(compDir, files[k].Name), uint64(n))
	}
	if !cu.Children {
		return
	}
	type frame struct {
		function int // in l.functions, -1 for none
		depth    int
	}
	stack := []frame{{function: -1}}
	for len(stack) > 0 {
		e, err := r.Next()
		if err != nil {
			y.t.Fatal(err)
		}
		if e.Tag == 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		top := stack[len(stack)-1]
		switch e.Tag {
		case dwarf.TagSubprogram:
			top = frame{function: -1}
			if ranges := y.ranges(e); len(ranges) > 0 {
				top.function = len(y.l.functions)
				one := listedFunction{name: y.name(e), ranges: ranges}
				one.decl = file(y.withAttr(e, dwarf.AttrDeclFile), dwarf.AttrDeclFile, y.withAttr(e, dwarf.AttrDeclLine), dwarf.AttrDeclLine)
				y.l.functions = append(y.l.functions, one)
			}
		case dwarf.TagInlinedSubroutine:
			if top.function >= 0 {
				top.depth++
				f := &y.l.functions[top.function]
				f.inlines = append(f.inlines, listedInline{
					name: y.name(e), ranges: y.ranges(e), depth: top.depth, call: file(e, dwarf.AttrCallFile, e, dwarf.AttrCallLine),
				})
			}
		}
		if e.Children {
			stack = append(stack, top)
		}
	}
	for k := range y.l.functions {
		f := &y.l.functions[k]
		f.inlines = withoutEmpty(f.inlines)
	}
}

// withoutEmpty leaves out the inlined calls that have no code, nor calls with code
// in them.
func withoutEmpty(calls []listedInline) []listedInline {
	var kept []listedInline
	for k, call := range calls {
		has := len(call.ranges) > 0
		for n := k + 1; n < len(calls) && calls[n].depth > call.depth; n++ {
			has = has || len(calls[n].ranges) > 0
		}
		if has {
			kept = append(kept, call)
		}
	}
	return kept
}

// absolute completes a name that the reader has not completed itself: it does in
// some versions, and not for every directory.
func absolute(dir, name string) string {
	if path.IsAbs(name) || dir != "" && !path.IsAbs(dir) && strings.HasPrefix(path.Clean(name), path.Clean(dir)+"/") {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// rows lists a line table. Of rows at the same address the last one counts, and at
// the end of a sequence none.
func (y *yardstick) rows(r *dwarf.LineReader, compDir string) {
	var sequence []listedRow
	for {
		var e dwarf.LineEntry
		if err := r.Next(&e); err != nil {
			if errors.Is(err, io.EOF) {
				return
			}
			y.t.Fatal(err)
		}
		row := listedRow{addr: e.Address}
		if !e.EndSequence && e.File != nil {
			row.text = place(absolute(compDir, e.File.Name), uint64(uint32(e.Line)))
		}
		if n := len(sequence); n > 0 && sequence[n-1].addr == row.addr {
			sequence = sequence[:n-1]
		}
		sequence = append(sequence, row)
		if !e.EndSequence {
			continue
		}
		if y.isCode(sequence[0].addr) && sequence[0].addr < e.Address {
			y.l.rows = append(y.l.rows, sequence...)
		}
		sequence = nil
	}
}

func (y *yardstick) isCode(addr uint64) bool {
	return slices.ContainsFunc(y.code, func(c Range) bool { return addr >= c.Low && addr < c.High })
}

// ranges returns the ranges of an entry that hold code.
func (y *yardstick) ranges(e *dwarf.Entry) []Range {
	all, err := y.data.Ranges(e)
	if err != nil {
		y.t.Fatal(err)
	}
	var kept []Range
	for _, r := range all {
		if r[0] < r[1] && y.isCode(r[0]) {
			kept = append(kept, Range{r[0], r[1]})
		}
	}
	return kept
}

const mipsLinkageName = dwarf.Attr(0x2007)

// name returns an entry's name, of the entries that it refers to if need be.
func (y *yardstick) name(e *dwarf.Entry) string {
	for _, attr := range []dwarf.Attr{dwarf.AttrLinkageName, mipsLinkageName, dwarf.AttrName} {
		if name, ok := y.withAttr(e, attr).Val(attr).(string); ok {
			return name
		}
	}
	return ""
}

// withAttr returns the entry, or the one that it refers to, that has an attribute;
// the last one when none has it.
func (y *yardstick) withAttr(e *dwarf.Entry, attr dwarf.Attr) *dwarf.Entry {
	for e.Val(attr) == nil {
		to, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			to, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			return e
		}
		r := y.data.Reader()
		r.Seek(to)
		next, err := r.Next()
		if err != nil {
			y.t.Fatal(err)
		}
		e = next
	}
	return e
}
