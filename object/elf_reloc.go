package object

import (
	"debug/elf"
	"errors"
	"math/bits"
)

// relocForm is one of the three ways of writing relocations down.
type relocForm uint8

const (
	formRELA relocForm = iota // with an addend
	formREL                   // the addend is in the place
	formRELR                  // relative ones only, as bitmaps (gABI, SHT_RELR)
)

const shtRELR = elf.SectionType(19)

// relocTable is one table of dynamic relocations.
type relocTable struct {
	name    string
	form    relocForm
	data    []byte
	symbols []byte // the symbol table, or nil
}

// visitRelocations visits all tables.
func (e *elfFile) visitRelocations(yield func(Reloc) bool) error {
	tables, err := e.relocTables()
	errs := []error{err}
	for _, t := range tables {
		var more bool
		if t.form == formRELR {
			more, err = e.visitRELR(&t, yield)
		} else {
			more, err = e.visitTable(&t, yield)
		}
		errs = append(errs, err)
		if !more {
			break
		}
	}
	return errors.Join(errs...)
}

// relocTables finds the tables through the sections, which cover static programs
// too, or else through the dynamic table.
func (e *elfFile) relocTables() ([]relocTable, error) {
	if len(e.sections) == 0 {
		return e.segmentRelocTables()
	}
	var tables []relocTable
	budget := e.size
	for k := range e.sections {
		s := &e.sections[k]
		t := relocTable{name: s.Name}
		switch elf.SectionType(s.Type) {
		case elf.SHT_RELA:
			t.form = formRELA
		case elf.SHT_REL:
			t.form = formREL
		case shtRELR:
			t.form = formRELR
		default:
			continue
		}
		if !s.Alloc() {
			continue // for the static linker, kept by --emit-relocs or in a relocatable file
		}
		var err error
		if t.data, err = e.sectionBytes(s); err != nil {
			return tables, err
		}
		// Many headers of one large table would be quadratic work.
		if s.FileSize > budget {
			return tables, e.sectionErrorf(s, "overlaps other tables of relocations")
		}
		budget -= s.FileSize
		if at := int(s.Link); at > 0 && at < len(e.sections) && elf.SectionType(e.sections[at].Type) == elf.SHT_DYNSYM {
			if t.symbols, err = e.sectionBytes(&e.sections[at]); err != nil {
				return tables, err
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// segmentRelocTables finds the tables as the loader does.
func (e *elfFile) segmentRelocTables() ([]relocTable, error) {
	if len(e.dynamic) == 0 {
		return nil, nil
	}
	var symbols []byte
	if addr, ok := e.dyn(elf.DT_SYMTAB); ok {
		if count, err := e.dynSymbolCount(addr, e.symbolSize()); err == nil {
			symbols, _ = e.ReadAddr(addr, count*e.symbolSize())
		}
	}
	pltForm := formREL
	if kind, _ := e.dyn(elf.DT_PLTREL); elf.DynTag(kind) == elf.DT_RELA {
		pltForm = formRELA
	}
	var tables []relocTable
	var covered [][2]uint64 // some linkers count the PLT's relocations into DT_RELASZ
	for _, t := range []struct {
		addr, size elf.DynTag
		form       relocForm
		name       string
	}{
		{elf.DT_RELA, elf.DT_RELASZ, formRELA, "DT_RELA"},
		{elf.DT_REL, elf.DT_RELSZ, formREL, "DT_REL"},
		{elf.DT_JMPREL, elf.DT_PLTRELSZ, pltForm, "DT_JMPREL"},
		{dtRELR, dtRELRSZ, formRELR, "DT_RELR"},
	} {
		addr, data, err := e.dynTable(t.addr, t.size)
		if err != nil {
			return tables, err
		}
		inside := false
		for _, c := range covered {
			inside = inside || addr >= c[0] && addr < c[1]
		}
		if len(data) == 0 || inside {
			continue
		}
		covered = append(covered, [2]uint64{addr, addr + uint64(len(data))})
		tables = append(tables, relocTable{name: t.name, form: t.form, data: data, symbols: symbols})
	}
	return tables, nil
}

// visitTable visits RELA and REL entries (gABI, chapter 4, Relocation).
func (e *elfFile) visitTable(t *relocTable, yield func(Reloc) bool) (more bool, err error) {
	word := e.Class.AddrSize()
	size := 2 * word
	if t.form == formRELA {
		size = 3 * word
	}
	kinds, _ := e.semantics()
	if len(t.data)%size != 0 {
		err = e.errorf("relocations %s: %d bytes are no multiple of the entry size %d", t.name, len(t.data), size)
	}
	for b := t.data; len(b) >= size; b = b[size:] {
		r := Reloc{Offset: e.word(b), FromTable: t.name}
		if e.Class == Class32 {
			info := e.ByteOrder.Uint32(b[word:])
			r.SymIndex, r.Type = info>>8, info&0xff
		} else {
			info := e.ByteOrder.Uint64(b[word:])
			r.SymIndex, r.Type = uint32(info>>32), uint32(info)
		}
		switch {
		case t.form == formRELA:
			r.Addend = e.signedWord(b[2*word:])
		case r.Type != kinds.jumpSlot: // whose place leads back into the PLT
			r.Addend = e.addendAt(r.Offset)
		}
		e.resolve(&r, t.symbols)
		if !yield(r) {
			return false, err
		}
	}
	return true, err
}

// visitRELR visits the bitmap form: an even word is the address of a place; an
// odd word is a map of the 63 (or 31) words that follow the last place.
func (e *elfFile) visitRELR(t *relocTable, yield func(Reloc) bool) (more bool, err error) {
	word := uint64(e.Class.AddrSize())
	perMap := 8*word - 1
	kinds, known := e.semantics()
	if !known {
		return true, e.errorf("relocations %s: the relative type of %s is not known", t.name, e.Arch)
	}
	if uint64(len(t.data))%word != 0 {
		err = e.errorf("relocations %s: %d bytes are no multiple of the entry size %d", t.name, len(t.data), word)
	}
	emit := func(place uint64) bool {
		return yield(Reloc{Offset: place, Type: kinds.relative, Addend: e.addendAt(place), FromTable: t.name})
	}
	next := uint64(0)
	for b := t.data; uint64(len(b)) >= word; b = b[word:] {
		entry := e.word(b)
		if entry&1 == 0 {
			if !emit(entry) {
				return false, err
			}
			next = entry + word
			continue
		}
		for set := entry >> 1; set != 0; set &= set - 1 {
			if !emit(next + word*uint64(bits.TrailingZeros64(set))) {
				return false, err
			}
		}
		next += word * perMap
	}
	return true, err
}

// addendAt reads the addend that stands in the place itself; 0 when the file does
// not hold the place.
func (e *elfFile) addendAt(place uint64) int64 {
	raw, err := e.ReadAddr(place, uint64(e.Class.AddrSize()))
	if err != nil {
		return 0
	}
	return e.signedWord(raw)
}

// signedWord reads an address-sized signed number; b is long enough.
func (i *Image) signedWord(b []byte) int64 {
	if i.Class == Class32 {
		return int64(int32(i.ByteOrder.Uint32(b)))
	}
	return int64(i.ByteOrder.Uint64(b))
}

// resolve fills in the value of a symbol that this image defines.
func (e *elfFile) resolve(r *Reloc, symbols []byte) {
	size := e.symbolSize()
	at := uint64(r.SymIndex) * size
	if r.SymIndex == 0 || at+size > uint64(len(symbols)) {
		return
	}
	raw := e.symbolEntry(symbols[at:])
	kind := elf.SymType(raw.info & 0xf)
	if raw.section == SectionUndef || raw.section == SectionAbs || kind == elf.STT_TLS {
		return
	}
	r.Symbol, r.SymValue = true, raw.value
}
