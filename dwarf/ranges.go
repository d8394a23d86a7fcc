package dwarf

import "fmt"

// addRanges appends the ranges of an entry that hold code to Contents.Ranges and
// returns where they are. What is damaged is noted, and what came before it kept.
func (r *reader) addRanges(at int, e *entry) Span {
	first := len(r.contents.Ranges)
	switch {
	case e.has(slotRanges):
		if err := r.addRangeList(e.form[slotRanges], e.val[slotRanges]); err != nil {
			r.note(r.unit.problem(at, "ranges: %w", err))
		}
	case e.has(slotLowPC) && e.has(slotHighPC):
		low, ok := r.unit.address(&r.root, e.form[slotLowPC], e.val[slotLowPC])
		high := e.val[slotHighPC]
		if isAddress(e.form[slotHighPC]) {
			var known bool
			high, known = r.unit.address(&r.root, e.form[slotHighPC], high)
			ok = ok && known
		} else {
			high += low // wraps for a tombstone of -1, and is then below low
		}
		if !ok {
			r.note(r.unit.problem(at, "address outside of .debug_addr"))
			break
		}
		r.addRange(low, high)
	}
	return Span{uint32(first), uint32(len(r.contents.Ranges) - first)}
}

// addRange appends [low, high), as far as it is code.
func (r *reader) addRange(low, high uint64) {
	if r.unit.shape.addr == 4 {
		low, high = low&0xffffffff, high&0xffffffff
	}
	if high <= low {
		return
	}
	if low < r.region.Low || low >= r.region.High {
		region, ok := r.data.regionOf(low)
		if !ok {
			return
		}
		r.region = region
	}
	r.budget -= rangeCost
	r.contents.Ranges = append(r.contents.Ranges, Range{low, min(high, r.region.High)})
}

// addRangeList appends the ranges of a list.
func (r *reader) addRangeList(form uint8, v uint64) error {
	u := r.unit
	if u.version >= 5 {
		offset, err := r.rnglist(form, v)
		if err != nil {
			return err
		}
		return r.readRnglist(offset)
	}
	return r.readRanges(v + r.root.gnuRangesBase)
}

// tombstone says whether a base address is one that linkers write for what they
// dropped: offsets from it would wrap to low addresses that may hold other code.
func (r *reader) tombstone(base uint64) bool {
	if r.unit.shape.addr == 4 {
		return uint32(base) >= 0xfffffffe
	}
	return base >= ^uint64(1)
}

// listAt begins to read a list in a section.
func (s *source) listAt(in *section, offset uint64) (cursor, error) {
	if offset >= uint64(len(in.data)) {
		return cursor{}, fmt.Errorf("list at %#x is outside of %s (%#x bytes)", offset, in.name, len(in.data))
	}
	return cursor{data: in.data, at: int(offset), big: s.big}, nil
}

// readRanges reads a list of .debug_ranges (DWARF 4 §2.17.3).
func (r *reader) readRanges(offset uint64) error {
	u := r.unit
	c, err := u.source.listAt(&u.source.ranges, offset)
	if err != nil {
		return err
	}
	size := int(u.shape.addr)
	base, selects := r.root.lowPC, ^uint64(0)>>(64-8*size)
	dead := false
	for {
		low, high := c.fixed(size), c.fixed(size)
		switch {
		case c.bad:
			return fmt.Errorf("list at %#x of %s: %w", offset, u.source.ranges.name, errEnd)
		case !r.spend(2 * size):
			return errRangeWork
		case low == 0 && high == 0:
			return nil
		case low == selects:
			base, dead = high, r.tombstone(high)
		case !dead:
			r.addRange(base+low, base+high)
		}
	}
}

// rnglist returns the offset in .debug_rnglists of the list that the value of an
// attribute of class rnglist names (DWARF 5 §7.28).
func (r *reader) rnglist(form uint8, v uint64) (uint64, error) {
	if form != formRnglistx {
		return v, nil
	}
	u := r.unit
	at, ok := indexed(u.source.rnglists.data, r.root.rnglistsBase, v, int(u.shape.offset), u.source.big)
	if !ok {
		return 0, fmt.Errorf("list %d is outside of %s", v, u.source.rnglists.name)
	}
	return r.root.rnglistsBase + at, nil
}

// readRnglist reads a list of .debug_rnglists (DWARF 5 §2.17.3).
func (r *reader) readRnglist(offset uint64) error {
	u := r.unit
	c, err := u.source.listAt(&u.source.rnglists, offset)
	if err != nil {
		return err
	}
	base, dead := r.root.lowPC, false
	for {
		start := c.at
		kind := c.u8()
		var low, high uint64
		ok := true
		switch kind {
		case rleEndOfList:
			if !c.bad {
				return nil
			}
		case rleBaseAddressx:
			base, ok = u.indexedAddress(&r.root, c.uleb())
			dead = !ok || r.tombstone(base)
			ok = false
		case rleBaseAddress:
			base = c.fixed(int(u.shape.addr))
			dead = r.tombstone(base)
			ok = false
		case rleStartxEndx:
			var known bool
			low, ok = u.indexedAddress(&r.root, c.uleb())
			high, known = u.indexedAddress(&r.root, c.uleb())
			ok = ok && known
		case rleStartxLength:
			low, ok = u.indexedAddress(&r.root, c.uleb())
			high = low + c.uleb()
		case rleOffsetPair:
			low, high = base+c.uleb(), base+c.uleb()
			ok = !dead
		case rleStartEnd:
			low = c.fixed(int(u.shape.addr))
			high = c.fixed(int(u.shape.addr))
		case rleStartLength:
			low = c.fixed(int(u.shape.addr))
			high = low + c.uleb()
		default:
			return fmt.Errorf("list at %#x of %s: unknown entry %#x", offset, u.source.rnglists.name, kind)
		}
		if c.bad {
			return fmt.Errorf("list at %#x of %s: %w", offset, u.source.rnglists.name, errEnd)
		}
		if !r.spend(c.at - start) {
			return errRangeWork
		}
		if ok {
			r.addRange(low, high)
		}
	}
}
