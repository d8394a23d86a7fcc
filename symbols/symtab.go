package symbols

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"

	"github.com/callreel/callreel/object"
)

// A rawSymbol is what of a symbol decides which code it names.
type rawSymbol struct {
	addr, size uint64
	name       uint32 // where symbolNames finds it
	file       uint32 // likewise, of a local symbol's source file; 0 is none
	section    uint32
	kind       object.Kind
	local      bool
}

// symbolNames holds the names of raw symbols: a string table or strings.
type symbolNames struct {
	table []byte
	list  []object.Symbol
}

// at returns a name; nil when the table does not hold it.
func (n *symbolNames) at(k uint32) []byte {
	if n.table == nil {
		if uint64(k) < uint64(len(n.list)) {
			return []byte(n.list[k].Name)
		}
		return nil
	}
	if uint64(k) >= uint64(len(n.table)) {
		return nil
	}
	rest := n.table[k:]
	end := bytes.IndexByte(rest, 0)
	return rest[:max(end, 0)]
}

// eachSymbol calls visit for the defined symbols of an image that have a section, in
// the order of the table. An ELF image's .symtab is read here and not by Symbols:
// that merges tables and takes the version off names ("f@@V1"), which costs a tenth
// of a kernel's build, and the version is part of the name here as in LLVM's tools.
func eachSymbol(im *object.Image, visit func(s *rawSymbol)) (names *symbolNames, err error) {
	if im.Format == object.ELF {
		sections := im.Sections()
		for k := range sections {
			if elf.SectionType(sections[k].Type) == elf.SHT_SYMTAB && sections[k].FileSize > 0 {
				return readSymtab(im, &sections[k], visit)
			}
		}
	}
	if im.Format == object.MachO {
		return machSymbols(im, visit)
	}
	list, err := im.Symbols()
	dynamicOnly := !hasStatic(list)
	for k := range list {
		s := &list[k]
		if hasSection(s.Section) && (dynamicOnly || s.Source != object.Dynsym) {
			visit(&rawSymbol{addr: s.Addr, size: s.Size, name: uint32(k), section: s.Section, kind: s.Kind, local: s.Binding == object.Local})
		}
	}
	return &symbolNames{list: list}, err
}

// symtabEntries returns the number of entries of an ELF image's .symtab that the file
// can hold, 0 for none.
func symtabEntries(im *object.Image) int {
	if im.Format != object.ELF {
		return 0
	}
	for _, s := range im.Sections() {
		if elf.SectionType(s.Type) == elf.SHT_SYMTAB {
			return int(min(s.FileSize, im.Size())) / symbolSize(im)
		}
	}
	return 0
}

// machSymbols is eachSymbol for Mach-O, whose symbols have no sizes: they end at the
// next function. The compiler puts an underscore before every name of C, and so
// before all others.
func machSymbols(im *object.Image, visit func(s *rawSymbol)) (*symbolNames, error) {
	list, err := im.FunctionSymbols()
	for k := range list {
		s := &list[k]
		s.Name = strings.TrimPrefix(s.Name, "_")
		visit(&rawSymbol{addr: s.Addr, size: s.Size, name: uint32(k), section: s.Section, kind: s.Kind})
	}
	return &symbolNames{list: list}, err
}

// hasStatic says whether any table but the dynamic one gave symbols.
func hasStatic(list []object.Symbol) bool {
	for k := range list {
		if list[k].Source != object.Dynsym {
			return true
		}
	}
	return false
}

func hasSection(k uint32) bool {
	return k != object.SectionUndef && k != object.SectionAbs && k != object.SectionCommon
}

// readSymtab is eachSymbol for .symtab (gABI, chapter 4, Symbol Table).
func readSymtab(im *object.Image, s *object.Section, visit func(s *rawSymbol)) (*symbolNames, error) {
	entries, err := im.SectionData(s)
	if err != nil {
		return &symbolNames{}, err
	}
	sections := im.Sections()
	if uint64(s.Link) >= uint64(len(sections)) {
		return &symbolNames{}, fmt.Errorf("symbols: %s: section %s at %#x: string table index %d, want below %d",
			im.Name(), s.Name, s.Off, s.Link, len(sections))
	}
	if s.FileSize < uint64(len(entries)) { // packed: symtabEntries has not counted them
		if err := im.Take(uint64(len(entries)/symbolSize(im))*candidateCost, "a table of so many symbols"); err != nil {
			return &symbolNames{}, err
		}
	}
	table, err := im.SectionData(&sections[s.Link])
	if err != nil {
		return &symbolNames{}, err
	}
	indices := extendedIndices(im)
	size := symbolSize(im)
	file := uint32(0) // of the local symbols that follow
	var e rawSymbol
	var info byte
	for k := 1; k < len(entries)/size; k++ { // entry 0 is empty by definition
		e, info = decodeSymbol(im, entries[k*size:(k+1)*size])
		if e.section == uint32(elf.SHN_XINDEX) && len(indices) >= 4*(k+1) {
			e.section = im.ByteOrder.Uint32(indices[4*k:])
		}
		e.kind = object.Kind(info & 0xf)
		if elf.SymType(e.kind) == elf.STT_FILE {
			file = e.name
			continue
		}
		if e.local = object.Binding(info>>4) == object.Local; e.local {
			e.file = file
		}
		if im.Arch == object.ARM && e.kind == object.Func {
			e.addr &^= 1 // set for Thumb (ELF for the ARM Architecture §5.5.3)
		}
		if e.name != 0 && hasSection(e.section) {
			visit(&e)
		}
	}
	return &symbolNames{table: table}, nil
}

// symbolSize is the size of Elf32_Sym or Elf64_Sym.
func symbolSize(im *object.Image) int {
	if im.Class == object.Class32 {
		return 16
	}
	return 24
}

// decodeSymbol decodes Elf32_Sym or Elf64_Sym.
func decodeSymbol(im *object.Image, b []byte) (s rawSymbol, info byte) {
	o := im.ByteOrder
	s.name = o.Uint32(b)
	if im.Class == object.Class32 {
		s.addr, s.size = uint64(o.Uint32(b[4:])), uint64(o.Uint32(b[8:]))
		s.section = uint32(o.Uint16(b[14:]))
		return s, b[12]
	}
	s.section = uint32(o.Uint16(b[6:]))
	s.addr, s.size = o.Uint64(b[8:]), o.Uint64(b[16:])
	return s, b[4]
}

// extendedIndices is the table of section indices that do not fit into 16 bits.
func extendedIndices(im *object.Image) []byte {
	sections := im.Sections()
	for k := range sections {
		if elf.SectionType(sections[k].Type) == elf.SHT_SYMTAB_SHNDX {
			data, err := im.SectionData(&sections[k])
			if err == nil {
				return data
			}
		}
	}
	return nil
}
