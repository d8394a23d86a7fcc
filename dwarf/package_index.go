package dwarf

import "fmt"

// A packageIndex says which parts of a package's sections belong to a unit
// (DWARF 5 §7.3.5.3; version 2 is that of the GNU extension to DWARF 4).
type packageIndex struct {
	rows    map[uint64]uint32 // by ID, counted from 0
	columns []uint32          // what kind of section each column is of
	offsets []byte            // a row of 4-byte numbers for each unit
	sizes   []byte
	big     bool
	version uint32
}

// readPackageIndex reads .debug_cu_index.
func (s *source) readPackageIndex(sec *section) (*packageIndex, error) {
	c := cursor{data: sec.data, big: s.big}
	x := &packageIndex{big: s.big}
	x.version = c.u32()
	if x.version != 2 {
		c.at = 0
		x.version = uint32(c.u16())
		c.u16()
	}
	if !c.bad && x.version != 2 && x.version != 5 {
		return nil, s.problem(sec, 0, "version %d, want 2 or 5", x.version)
	}
	columns, units, slots := uint64(c.u32()), uint64(c.u32()), uint64(c.u32())
	ids, rows := c.take(8*slots), c.take(4*slots)
	kinds := cursor{data: c.take(4 * columns), big: s.big}
	const most = 64 // columns; the standard has eight kinds
	if columns > most {
		return nil, s.problem(sec, 0, "%d columns, want %d at most", columns, most)
	}
	x.offsets, x.sizes = c.take(4*columns*units), c.take(4*columns*units)
	if c.bad {
		return nil, s.problem(sec, 0, "tables of %d slots and %d units by %d columns: %w", slots, units, columns, errEnd)
	}
	for range columns {
		x.columns = append(x.columns, kinds.u32())
	}
	x.rows = make(map[uint64]uint32)
	for k := range slots {
		row, _ := fixed(rows[4*k:], 4, s.big)
		id, _ := fixed(ids[8*k:], 8, s.big)
		if row > 0 && row <= units {
			x.rows[id] = uint32(row - 1)
		}
	}
	return x, nil
}

// narrow cuts the sections of a source down to what belongs to one unit.
func (x *packageIndex) narrow(s *source, id uint64) error {
	row, ok := x.rows[id]
	if !ok {
		return fmt.Errorf("%s has no unit with ID %#x", s.name, id)
	}
	for k, kind := range x.columns {
		into := x.column(s, kind)
		if into == nil {
			continue
		}
		at := 4 * (int(row)*len(x.columns) + k)
		offset, _ := fixed(x.offsets[at:], 4, x.big)
		size, _ := fixed(x.sizes[at:], 4, x.big)
		if n := uint64(len(into.data)); offset > n || size > n-offset {
			return s.problem(into, offset, "%#x bytes of the unit with ID %#x: %w", size, id, errEnd)
		}
		into.data = into.data[offset : offset+size]
	}
	return nil
}

// column returns the section that a column is about, nil for those that nobody
// reads.
func (x *packageIndex) column(s *source, kind uint32) *section {
	switch kind {
	case sectInfo:
		return &s.info
	case sectAbbrev:
		return &s.abbrev
	case sectStrOffsets:
		return &s.strOffsets
	case sectRnglists:
		if x.version == 5 {
			return &s.rnglists
		}
	}
	return nil
}
