package object

import (
	"debug/elf"
	"encoding/binary"
	"math"
)

// The sizes of ELF's headers by class (gABI, chapters 4 and 5). A file may say
// that its entries are larger; the surplus is skipped.
const (
	headerSize32, headerSize64   = 52, 64
	segmentSize32, segmentSize64 = 32, 56
	sectionSize32, sectionSize64 = 40, 64
)

// headerCost is the memory for one section or segment: it, its place in an index, and
// what growing these takes meanwhile.
const headerCost = 256

// The escapes for counts that do not fit into the header's 16 bits (gABI,
// chapter 4, e_shnum and e_shstrndx; System V extension PN_XNUM).
const (
	programCountEscape = 0xffff
	stringIndexEscape  = uint16(elf.SHN_XINDEX)
)

// parseELF reads the file header, the segments, the sections and the dynamic table.
func (i *Image) parseELF() error {
	start, err := i.slice(0, min(i.size, headerSize64))
	if err != nil {
		return i.errorf("ELF header: %d bytes %w", len(start), err)
	}
	if len(start) < elf.EI_NIDENT || string(start[:4]) != elf.ELFMAG {
		return i.errorf("%w", ErrUnknownFormat)
	}
	i.Format = ELF
	size := headerSize64
	switch class := start[elf.EI_CLASS]; elf.Class(class) {
	case elf.ELFCLASS32:
		i.Class, size = Class32, headerSize32
	case elf.ELFCLASS64:
		i.Class = Class64
	default:
		return i.errorf("ELF header: class %d, want 1 (32 bit) or 2 (64 bit)", class)
	}
	switch order := start[elf.EI_DATA]; elf.Data(order) {
	case elf.ELFDATA2LSB:
		i.ByteOrder = binary.LittleEndian
	case elf.ELFDATA2MSB:
		i.ByteOrder = binary.BigEndian
	default:
		return i.errorf("ELF header: byte order %d, want 1 (little-endian) or 2 (big-endian)", order)
	}
	if len(start) < size {
		return i.errorf("ELF header: %d bytes, want %d", len(start), size)
	}
	h := i.readHeader(start)
	if err := i.readSegments(&h); err != nil {
		return err
	}
	if err := i.readSections(&h); err != nil {
		return err
	}
	i.indexLoads()
	i.indexSections()
	return i.elf.readDynamic()
}

// header holds the fields of Elf32_Ehdr and Elf64_Ehdr that lead to the tables.
type header struct {
	phoff, shoff                       uint64
	phentsize, phnum, shentsize, shnum uint16
	shstrndx                           uint16
}

// readHeader reads the file header, whose size has been checked.
func (i *Image) readHeader(d []byte) header {
	o := i.ByteOrder
	i.Arch = Arch(o.Uint16(d[18:]))
	switch elf.Type(o.Uint16(d[16:])) {
	case elf.ET_EXEC:
		i.Type = Executable
	case elf.ET_DYN:
		i.Type = Shared
	case elf.ET_REL:
		i.Type = Relocatable
	case elf.ET_CORE:
		i.Type = Core
	}
	var h header
	var tail []byte // e_phentsize and what follows is the same in both classes
	if i.Class == Class32 {
		i.entry = uint64(o.Uint32(d[24:]))
		h.phoff, h.shoff = uint64(o.Uint32(d[28:])), uint64(o.Uint32(d[32:]))
		tail = d[42:]
	} else {
		i.entry = o.Uint64(d[24:])
		h.phoff, h.shoff = o.Uint64(d[32:]), o.Uint64(d[40:])
		tail = d[54:]
	}
	h.phentsize, h.phnum = o.Uint16(tail), o.Uint16(tail[2:])
	h.shentsize, h.shnum = o.Uint16(tail[4:]), o.Uint16(tail[6:])
	h.shstrndx = o.Uint16(tail[8:])
	return h
}

// headerTable checks a table of headers against the file and returns its bytes.
func (i *Image) headerTable(what string, off, entry, least, count uint64) ([]byte, error) {
	if entry < least {
		return nil, i.errorf("%s headers at %#x: entry size %d, want %d", what, off, entry, least)
	}
	// entry has 16 bits and count 32, so the product cannot wrap.
	if err := i.inside(off, entry*count); err != nil {
		return nil, i.errorf("%s headers at %#x: %d entries of %d bytes %w", what, off, count, entry, err)
	}
	// What is made of an entry is some four times as long.
	if err := i.contents.take(count*headerCost, what+" headers"); err != nil {
		return nil, i.errorf("%s headers at %#x: %w", what, off, err)
	}
	table, err := i.slice(off, entry*count)
	if err != nil {
		return nil, i.errorf("%s headers at %#x: %d entries of %d bytes %w", what, off, count, entry, err)
	}
	return table, nil
}

func (i *Image) readSegments(h *header) error {
	count := uint64(h.phnum)
	if h.phnum == programCountEscape && h.shoff != 0 {
		// The true number stands in the first section header's sh_info.
		first, err := i.firstSection(h)
		if err != nil {
			return err
		}
		count = uint64(first.Info)
	}
	if h.phoff == 0 || count == 0 {
		return nil
	}
	least := uint64(segmentSize64)
	if i.Class == Class32 {
		least = segmentSize32
	}
	table, err := i.headerTable("program", h.phoff, uint64(h.phentsize), least, count)
	if err != nil {
		return err
	}
	i.segments = make([]Segment, count)
	for k := range i.segments {
		i.segments[k] = i.segment(table[k*int(h.phentsize):])
	}
	return nil
}

func (i *Image) segment(b []byte) Segment {
	o := i.ByteOrder
	s := Segment{Type: SegmentType(o.Uint32(b))}
	if i.Class == Class32 {
		s.Off, s.Addr = uint64(o.Uint32(b[4:])), uint64(o.Uint32(b[8:]))
		s.FileSize, s.MemSize = uint64(o.Uint32(b[16:])), uint64(o.Uint32(b[20:]))
		s.Perm, s.Align = Perm(o.Uint32(b[24:])&7), uint64(o.Uint32(b[28:]))
		return s
	}
	s.Perm = Perm(o.Uint32(b[4:]) & 7)
	s.Off, s.Addr = o.Uint64(b[8:]), o.Uint64(b[16:])
	s.FileSize, s.MemSize = o.Uint64(b[32:]), o.Uint64(b[40:])
	s.Align = o.Uint64(b[48:])
	return s
}

// firstSection reads section header 0, which holds the counts that do not fit
// into the file header.
func (i *Image) firstSection(h *header) (Section, error) {
	table, err := i.headerTable("section", h.shoff, uint64(h.shentsize), i.sectionHeaderSize(), 1)
	if err != nil {
		return Section{}, err
	}
	s, _ := i.section(table)
	return s, nil
}

func (i *Image) sectionHeaderSize() uint64 {
	if i.Class == Class32 {
		return sectionSize32
	}
	return sectionSize64
}

func (i *Image) readSections(h *header) error {
	if h.shoff == 0 {
		return nil // stripped of its section headers
	}
	count, names := uint64(h.shnum), uint64(h.shstrndx)
	if h.shnum == 0 || h.shstrndx == stringIndexEscape {
		first, err := i.firstSection(h)
		if err != nil {
			return err
		}
		if h.shnum == 0 {
			if count = first.Size; count > math.MaxUint32 {
				return i.errorf("section headers at %#x: impossible count %d", h.shoff, count)
			}
		}
		if h.shstrndx == stringIndexEscape {
			names = uint64(first.Link)
		}
	}
	if count == 0 {
		return nil
	}
	table, err := i.headerTable("section", h.shoff, uint64(h.shentsize), i.sectionHeaderSize(), count)
	if err != nil {
		return err
	}
	sections := make([]Section, count)
	nameOffs := make([]uint32, count)
	for k := range sections {
		sections[k], nameOffs[k] = i.section(table[k*int(h.shentsize):])
	}
	if err := i.nameSections(sections, nameOffs, names); err != nil {
		return err
	}
	i.sections = sections
	return nil
}

// section reads one section header and the offset of its name.
func (i *Image) section(b []byte) (Section, uint32) {
	o := i.ByteOrder
	s := Section{Type: o.Uint32(b[4:])}
	if i.Class == Class32 {
		s.Flags, s.Addr = uint64(o.Uint32(b[8:])), uint64(o.Uint32(b[12:]))
		s.Off, s.Size = uint64(o.Uint32(b[16:])), uint64(o.Uint32(b[20:]))
		s.Link, s.Info = o.Uint32(b[24:]), o.Uint32(b[28:])
		s.Align, s.EntSize = uint64(o.Uint32(b[32:])), uint64(o.Uint32(b[36:]))
	} else {
		s.Flags, s.Addr = o.Uint64(b[8:]), o.Uint64(b[16:])
		s.Off, s.Size = o.Uint64(b[24:]), o.Uint64(b[32:])
		s.Link, s.Info = o.Uint32(b[40:]), o.Uint32(b[44:])
		s.Align, s.EntSize = o.Uint64(b[48:]), o.Uint64(b[56:])
	}
	if t := elf.SectionType(s.Type); t != elf.SHT_NOBITS && t != elf.SHT_NULL {
		s.FileSize = s.Size
	}
	return s, o.Uint32(b)
}

// nameSections looks the names up in the section with index names. An index of 0
// means that there are none.
func (i *Image) nameSections(sections []Section, offs []uint32, names uint64) error {
	if names == 0 {
		return nil
	}
	if names >= uint64(len(sections)) {
		return i.errorf("section headers: index %d of the names' section, want below %d", names, len(sections))
	}
	strs := &sections[names]
	strs.Name = ".shstrtab" // for the error, until it has its own
	raw, err := i.sectionBytes(strs)
	if err != nil {
		return err
	}
	table := newStrings(raw)
	for k := range sections {
		name, ok := table.at(offs[k])
		if !ok {
			return i.sectionErrorf(strs, "name of section %d at offset %#x is outside or has no end", k, offs[k])
		}
		sections[k].Name = name
	}
	return nil
}
