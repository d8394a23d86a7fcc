package dwarf

import (
	"bytes"
	"sync"

	"github.com/callreel/callreel/object"
)

// part is a section that strings are taken from.
type part uint8

// The parts of a source that strings stand in.
const (
	partStr part = iota
	partLineStr
	partInfo
	partTypes
	partLine
	partCount
)

// role is what a source is to the image that was opened.
type role uint8

// The roles. There may be many split sources, one of each of the others.
const (
	roleMain role = iota
	roleAlt
	roleSplit
)

// A section is a DWARF section of one file, inflated and relocated.
type section struct {
	name string
	data []byte
}

// A source is the DWARF of one file: the image itself, its supplementary file
// (DWARF 5 §7.3.6), a file of split units, or one unit's part of a package of
// them (§7.3.2, §7.3.5).
type source struct {
	name  string
	image *object.Image // whose allowance is asked
	big   bool
	role  role
	index uint64 // among the split sources

	info, types, abbrev  section
	str, lineStr, line   section
	strOffsets, addr     section
	ranges, rnglists     section
	units, typeUnits     []unit // of .debug_info and of .debug_types, by rising offset
	tables               tableCache
	rangesBase, addrBase uint64

	signatures struct {
		once  sync.Once
		units map[uint64]*unit
	}
}

// String layout: a byte that tells role and part, then for split sources 24 bits
// of index; the rest is the offset.
const (
	stringTagShift   = 56
	stringIndexShift = 32
	maxSplits        = 1 << (stringTagShift - stringIndexShift)
)

// string makes the name of the string at an offset of one of the source's parts.
func (s *source) string(p part, offset uint64) String {
	tag := uint64(s.role)*uint64(partCount) + uint64(p) + 1
	if s.role == roleSplit {
		if offset>>stringIndexShift != 0 {
			return 0
		}
		offset |= s.index << stringIndexShift
	} else if offset>>stringTagShift != 0 {
		return 0
	}
	return String(tag<<stringTagShift | offset)
}

// part returns the section that strings of a part stand in.
func (s *source) part(p part) []byte {
	switch p {
	case partStr:
		return s.str.data
	case partLineStr:
		return s.lineStr.data
	case partInfo:
		return s.info.data
	case partTypes:
		return s.types.data
	case partLine:
		return s.line.data
	}
	return nil
}

// Bytes returns a string without its NUL. The slice aliases the image or what was
// inflated of it, and is good until Close. It may lie in a mapping of a file, so
// Bytes and what is done with its result belong inside of object.CatchFaults. It is nil for the zero String and for
// one that lies outside its section or does not end there.
func (d *Data) Bytes(s String) []byte {
	data := d.from(s)
	n := bytes.IndexByte(data, 0)
	if n < 0 {
		return nil
	}
	return data[:n:n]
}

// from returns what stands from the string to the end of its section.
func (d *Data) from(s String) []byte {
	if s == 0 {
		return nil
	}
	tag, offset := uint64(s)>>stringTagShift-1, uint64(s)&(1<<stringTagShift-1)
	from := &d.main
	switch role(tag / uint64(partCount)) {
	case roleMain:
	case roleAlt:
		if from = d.alt; from == nil {
			return nil
		}
	case roleSplit:
		if from = d.splits.at(offset >> stringIndexShift); from == nil {
			return nil
		}
		offset &= 1<<stringIndexShift - 1
	default:
		return nil
	}
	data := from.part(part(tag % uint64(partCount)))
	if offset >= uint64(len(data)) {
		return nil
	}
	return data[offset:]
}

// sections lists the sections that a source reads from a file: for a supplementary
// one, those that names stand in, and for a split one, whose names end in .dwo,
// those that are not in the linked file.
func (s *source) sections() []wantedSection {
	list := []wantedSection{
		{".debug_info", &s.info}, {".debug_abbrev", &s.abbrev}, {".debug_str", &s.str},
		{".debug_line_str", &s.lineStr}, {".debug_str_offsets", &s.strOffsets},
	}
	switch s.role {
	case roleMain:
		list = append(list, wantedSection{".debug_types", &s.types}, wantedSection{".debug_line", &s.line}, wantedSection{".debug_addr", &s.addr},
			wantedSection{".debug_ranges", &s.ranges}, wantedSection{".debug_rnglists", &s.rnglists})
	case roleSplit:
		list = append(list, wantedSection{".debug_rnglists", &s.rnglists})
		for k := range list {
			list[k].name += ".dwo"
		}
	}
	return list
}

// wantedSection is a section to be found and where it goes.
type wantedSection struct {
	name string
	into *section
}

// find returns the sections of that name that hold something. A linked file has
// one at most.
func (w *wantedSection) find(im *object.Image) []*object.Section {
	w.into.name = w.name
	first := im.Section(w.name)
	if first == nil {
		return nil
	}
	if im.Type != object.Relocatable {
		if first.FileSize == 0 {
			return nil
		}
		return []*object.Section{first}
	}
	var all []*object.Section
	budget := im.Size() // of a crafted file, headers may overlap
	sections := im.Sections()
	for k := range sections {
		s := &sections[k]
		if s.Name == first.Name && s.FileSize > 0 && s.FileSize <= budget {
			all = append(all, s)
			budget -= s.FileSize
		}
	}
	return all
}
