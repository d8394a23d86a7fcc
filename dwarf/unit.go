package dwarf

import (
	"fmt"
	"sort"
	"sync"

	"github.com/callreel/callreel/internal/leb128"
)

// A unit is the header of a unit (DWARF 5 §7.5.1).
type unit struct {
	source  *source
	section *section // .debug_info or .debug_types
	offset  uint64   // of the header, in the section
	end     uint64   // in the section
	first   uint32   // bytes of the header
	version uint8
	kind    uint8
	shape   shape
	abbrev  uint64 // offset of the abbreviation table
	typeAt  uint64 // offset in a type unit of the type's entry
	id      uint64 // of a skeleton or split unit, or a type's signature

	base struct { // what is needed when another unit refers to this one
		once sync.Once
		root root
	}
	charged workCharge
}

// bytes returns the unit, the header included.
func (u *unit) bytes() []byte { return u.section.data[u.offset:u.end] }

// problem makes a Problem at an offset in the unit.
func (u *unit) problem(at int, format string, args ...any) error {
	return u.source.problem(u.section, u.offset+uint64(max(at, 0)), format, args...)
}

// findUnits reads the headers of .debug_info and .debug_types.
func (s *source) findUnits() []error {
	var problems []error
	if err := s.image.Take(abbrevCost*uint64(len(s.abbrev.data)), "a table of so many abbreviations"); err != nil {
		s.abbrev.data = nil
		problems = append(problems, s.problem(&s.abbrev, 0, "%w", err))
	}
	units, more := s.readUnits(&s.info)
	s.units, problems = units, append(problems, more...)
	s.typeUnits, more = s.readUnits(&s.types)
	s.tables.learn(uint64(len(s.abbrev.data)), s.units, s.typeUnits)
	return append(problems, more...)
}

// maxUnitProblems bounds how many damaged headers are told of.
const maxUnitProblems = 100

// readUnits returns the units of a section. One that cannot be understood is left
// out; its length still leads to the next.
func (s *source) readUnits(sec *section) (units []unit, problems []error) {
	c := cursor{data: sec.data, big: s.big}
	capacity := 0
	for c.remaining() > 0 {
		start := uint64(c.at)
		if len(units) == capacity {
			if err := s.image.Take(unitTake*unitCost, "a list of so many units"); err != nil {
				problems = append(problems, s.problem(sec, start, "%w", err))
				break
			}
			capacity += unitTake
		}
		n, offset := c.initialLength()
		if n == 0 && !c.bad {
			continue // padding between the contributions of two files
		}
		if c.bad {
			problems = append(problems, s.problem(sec, start, "length of a unit: reserved value or cut off"))
			break
		}
		rest := uint64(c.remaining())
		if n > rest {
			problems = append(problems, s.problem(sec, start, "unit of %#x bytes reaches beyond the end, %#x are left", n, rest))
			n = rest
		}
		units = append(units, unit{source: s, section: sec, offset: start, end: uint64(c.at) + n, shape: shape{offset: uint8(offset)}})
		u := &units[len(units)-1]
		header := cursor{data: sec.data[:u.end], at: c.at, big: s.big}
		c.at = int(u.end)
		err := u.readHeader(&header)
		if err == nil && u.kind == unitCompile && u.version < 5 && u.firstTag() == tagPartialUnit {
			u.kind = unitPartial
		}
		if err != nil {
			if len(problems) < maxUnitProblems {
				problems = append(problems, s.problem(sec, start, "header of a unit: %w", err))
			}
			units = units[:len(units)-1]
		}
	}
	return units, problems
}

// readHeader reads what follows the length.
func (u *unit) readHeader(c *cursor) error {
	version := c.u16()
	if c.bad {
		return errEnd
	}
	if version < 2 || version > 5 {
		return fmt.Errorf("version %d, want 2 to 5", version)
	}
	u.version = uint8(version)
	offset := int(u.shape.offset)
	switch {
	case version == 5:
		u.kind = c.u8()
		u.shape.addr = c.u8()
		u.abbrev = c.fixed(offset)
	default:
		u.kind = unitCompile
		if u.section == &u.source.types {
			u.kind = unitType
		}
		u.abbrev = c.fixed(offset)
		u.shape.addr = c.u8()
	}
	switch u.kind {
	case unitCompile, unitPartial:
	case unitSkeleton, unitSplitCompile:
		u.id = c.u64()
	case unitType, unitSplitType:
		u.id = c.u64()
		u.typeAt = c.fixed(offset)
		u.kind = unitType
	default:
		return fmt.Errorf("unknown type %#x", u.kind)
	}
	if c.bad {
		return errEnd
	}
	if a := u.shape.addr; a != 4 && a != 8 {
		return fmt.Errorf("addresses of %d bytes, want 4 or 8", a)
	}
	u.shape.v2 = version == 2
	u.first = uint32(uint64(c.at) - u.offset)
	return nil
}

// firstTag returns the tag of the unit's first entry, 0 when its abbreviation is
// not among the first of the table, where compilers put it.
func (u *unit) firstTag() uint64 {
	const near = 1024
	table := u.source.abbrev.data
	code, at := leb128.Uint(u.bytes(), int(u.first))
	if at < 0 || code == 0 || u.abbrev >= uint64(len(table)) {
		return 0
	}
	c := cursor{data: table[u.abbrev:min(u.abbrev+near, uint64(len(table)))]}
	for {
		found, tag := c.uleb(), c.uleb()
		c.u8()
		if c.bad || found == 0 {
			return 0
		}
		if found == code {
			return tag
		}
		for attr, form := uint64(1), uint64(1); !c.bad && (attr != 0 || form != 0); {
			if attr, form = c.uleb(), c.uleb(); form == formImplicitConst {
				c.sleb()
			}
		}
	}
}

// unitAt returns the unit of .debug_info that holds the offset, nil for none.
func (s *source) unitAt(offset uint64) *unit {
	k := sort.Search(len(s.units), func(k int) bool { return s.units[k].end > offset })
	if k == len(s.units) || s.units[k].offset > offset {
		return nil
	}
	return &s.units[k]
}
