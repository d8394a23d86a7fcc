package object

import (
	"debug/elf"
	"errors"
	"fmt"
	"strings"
)

// The sizes of Elf32_Sym and Elf64_Sym (gABI, chapter 4, Symbol Table).
const (
	symbolSize32, symbolSize64 = 16, 24
)

// symbolCost is the memory for each entry of a table of symbols: a Symbol, and its
// place in the table that finds repetitions.
const symbolCost = 128

// symbolTable is one table of symbols with the tables that explain it.
type symbolTable struct {
	source   Source
	where    string // for errors: "section .symtab at 0x123"
	entries  []byte
	entSize  uint64
	strings  *stringTable
	indices  []byte // SHT_SYMTAB_SHNDX: 32-bit section indices, or nil
	versions symbolVersions
}

// readSymbols reads and merges all tables.
func (e *elfFile) readSymbols() ([]Symbol, error) {
	tables, err := e.symbolTables()
	count := 0
	for _, t := range tables {
		count += len(t.entries) / int(t.entSize)
	}
	if over := e.contents.take(uint64(count)*symbolCost, fmt.Sprintf("the list of %d symbols", count)); over != nil {
		return nil, errors.Join(err, e.errorf("%w", over))
	}
	m := newSymbolMerger(count)
	m.bySection = e.Type == Relocatable
	err = errors.Join(err, e.visitSymbols(tables, func(s *Symbol) bool {
		m.add(s)
		return true
	}))
	return m.list, err
}

// symbolTables finds .symtab and .dynsym; the error is about one that can't be read.
func (e *elfFile) symbolTables() (tables []*symbolTable, err error) {
	var errs []error
	for _, find := range []func() (*symbolTable, error){e.staticTable, e.dynamicTable} {
		t, err := find()
		if err != nil {
			errs = append(errs, err)
		} else if t != nil {
			tables = append(tables, t)
		}
	}
	return tables, errors.Join(errs...)
}

// visitSymbols visits the symbols of the tables, and the functions of .gnu_debugdata.
func (e *elfFile) visitSymbols(tables []*symbolTable, visit func(*Symbol) bool) error {
	var errs []error
	for _, t := range tables {
		more, err := e.visitEntries(t, visit)
		errs = append(errs, err)
		if !more {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, e.visitDebugdata(visit))...)
}

// staticTable finds .symtab.
func (e *elfFile) staticTable() (*symbolTable, error) {
	for k := range e.sections {
		if elf.SectionType(e.sections[k].Type) == elf.SHT_SYMTAB {
			return e.sectionTable(k, Symtab)
		}
	}
	return nil, nil
}

// dynamicTable finds .dynsym through its section or, without section headers,
// through the dynamic table.
func (e *elfFile) dynamicTable() (*symbolTable, error) {
	for k := range e.sections {
		if elf.SectionType(e.sections[k].Type) != elf.SHT_DYNSYM {
			continue
		}
		t, err := e.sectionTable(k, Dynsym)
		if err != nil {
			return nil, err
		}
		t.versions, err = e.sectionVersions(k)
		return t, err
	}
	if len(e.sections) > 0 {
		return nil, nil
	}
	return e.segmentTable()
}

// sectionTable collects what belongs to the symbol table in section k.
func (e *elfFile) sectionTable(k int, source Source) (*symbolTable, error) {
	s := &e.sections[k]
	want := uint64(symbolSize64)
	if e.Class == Class32 {
		want = symbolSize32
	}
	if s.EntSize != want {
		return nil, e.sectionErrorf(s, "entry size %d, want %d", s.EntSize, want)
	}
	raw, err := e.SectionData(s)
	if err != nil {
		return nil, err
	}
	strs, err := e.linkedStrings(s)
	if err != nil {
		return nil, err
	}
	t := &symbolTable{source: source, entries: raw, entSize: want, strings: strs}
	t.where = fmt.Sprintf("object: %s: section %s at %#x", e.name, s.Name, s.Off)
	for n := range e.sections {
		x := &e.sections[n]
		if elf.SectionType(x.Type) == elf.SHT_SYMTAB_SHNDX && x.Link == uint32(k) {
			if t.indices, err = e.SectionData(x); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// linkedStrings reads the string table that a section's sh_link names.
func (e *elfFile) linkedStrings(s *Section) (*stringTable, error) {
	if uint64(s.Link) >= uint64(len(e.sections)) {
		return nil, e.sectionErrorf(s, "string table index %d, want below %d", s.Link, len(e.sections))
	}
	e.texts.mu.Lock()
	defer e.texts.mu.Unlock()
	text, ok := e.texts.at[s.Link]
	if !ok {
		from := &e.sections[s.Link]
		raw, err := e.SectionData(from)
		if err == nil {
			err = e.contents.take(uint64(len(raw)), "a string table")
		}
		if err != nil {
			return nil, err
		}
		text = string(raw)
		if e.texts.at == nil {
			e.texts.at = make(map[uint32]string)
		}
		e.texts.at[s.Link] = text
	}
	return newStringTable(text), nil
}

// visitEntries decodes a table's entries, all into the same variable, until visit
// returns false. It goes on after a damaged entry and reports the first.
func (e *elfFile) visitEntries(t *symbolTable, visit func(*Symbol) bool) (more bool, err error) {
	bad := 0
	var s Symbol
	count := len(t.entries) / int(t.entSize)
	more = true
	for k := 1; k < count && more; k++ { // entry 0 is empty by definition
		keep, ok := e.symbol(t, k, &s)
		if !ok {
			if bad++; err == nil { // a made-up table may have millions
				off := e.symbolEntry(t.entries[k*int(t.entSize):]).name
				err = t.errorf(k, "name at offset %#x is outside its string table of %#x bytes or has no end", off, len(t.strings.text))
			}
			continue
		}
		if keep {
			more = visit(&s)
		}
	}
	if bad > 1 {
		err = errors.Join(err, e.errorf("and %d more damaged entries of %s", bad-1, t.source))
	}
	return more, err
}

// symbol decodes entry k into s; keep is false for what Symbols leaves out, ok when its
// name cannot be read.
func (e *elfFile) symbol(t *symbolTable, k int, s *Symbol) (keep, ok bool) {
	raw := e.symbolEntry(t.entries[k*int(t.entSize):])
	*s = Symbol{Kind: Kind(raw.info & 0xf)}
	if kind := elf.SymType(s.Kind); kind == elf.STT_SECTION || kind == elf.STT_FILE {
		return false, true
	}
	name, ok := t.strings.at(raw.name)
	if !ok || name == "" {
		return false, ok
	}
	s.Name, s.Version = splitVersion(name)
	// The linker also makes a symbol for each version, named like it.
	if v := t.versions.name(e, k); v != "" && v != s.Name {
		s.Version = v
	}
	s.Addr, s.Size = raw.value, raw.size
	// ELF for the ARM Architecture §5.5.3: bit 0 of a function's value tells the encoding.
	if e.Arch == ARM && (s.Kind == Func || s.Kind == IFunc) && s.Addr&1 != 0 {
		s.Addr, s.Thumb = s.Addr&^1, true
	}
	s.Binding = Binding(raw.info >> 4)
	s.Section = uint32(raw.section)
	if elf.SectionIndex(raw.section) == elf.SHN_XINDEX && len(t.indices) >= 4*(k+1) {
		s.Section = e.ByteOrder.Uint32(t.indices[4*k:])
	}
	s.Source, s.Dynamic = t.source, t.source == Dynsym
	return true, true
}

// rawSymbol is Elf32_Sym or Elf64_Sym.
type rawSymbol struct {
	name        uint32
	info        uint8
	section     uint16
	value, size uint64
}

// symbolEntry decodes one entry; b is long enough.
func (e *elfFile) symbolEntry(b []byte) rawSymbol {
	o := e.ByteOrder
	if e.Class == Class32 {
		return rawSymbol{
			name: o.Uint32(b), value: uint64(o.Uint32(b[4:])), size: uint64(o.Uint32(b[8:])),
			info: b[12], section: o.Uint16(b[14:]),
		}
	}
	return rawSymbol{name: o.Uint32(b), info: b[4], section: o.Uint16(b[6:]), value: o.Uint64(b[8:]), size: o.Uint64(b[16:])}
}

// splitVersion takes a version off a name: linkers write "name@VERSION", or
// "name@@VERSION" for the default one, into .symtab.
func splitVersion(name string) (base, version string) {
	at := strings.IndexByte(name, '@')
	if at <= 0 {
		return name, ""
	}
	version = strings.TrimPrefix(name[at+1:], "@")
	if version == "" {
		return name, ""
	}
	return name[:at], version
}

// errorf names the table and the entry.
func (t *symbolTable) errorf(k int, format string, args ...any) error {
	return fmt.Errorf("%s: symbol %d: "+format, append([]any{t.where, k}, args...)...)
}
