package dwarf

import (
	"slices"
	"sync"
)

// tableKey tells compiled tables apart.
type tableKey struct {
	offset uint64
	shape  shape
}

// tableCache holds the compiled abbreviation tables of a source that more than one
// unit needs: those that several units share, and those of units that others
// refer to. All others are compiled into a reader's own memory. Nothing is ever let
// go: all together are a small multiple of .debug_abbrev, and a table made again and
// again would be quadratic work.
type tableCache struct {
	starts []uint64 // where tables start, sorted
	shared []bool   // for each, whether several units start theirs there
	end    uint64   // of the section

	mu   sync.Mutex
	kept map[tableKey]*keptTable
}

// keptTable is compiled by the first who needs it, outside the cache's lock.
type keptTable struct {
	once  sync.Once
	table table
}

// learn notes where tables start. A table ends where the next one starts at the
// latest; so tables cannot be made to overlap, which would cost quadratic time.
func (c *tableCache) learn(end uint64, lists ...[]unit) {
	c.end = end
	var offsets []uint64
	for _, units := range lists {
		for k := range units {
			offsets = append(offsets, units[k].abbrev)
		}
	}
	slices.Sort(offsets)
	c.starts, c.shared = make([]uint64, 0, len(offsets)), make([]bool, 0, len(offsets))
	for k, at := range offsets {
		if k > 0 && at == offsets[k-1] {
			c.shared[len(c.shared)-1] = true
			continue
		}
		c.starts, c.shared = append(c.starts, at), append(c.shared, false)
	}
}

// extent returns where the table at an offset ends at the latest, and whether
// several units share it.
func (c *tableCache) extent(offset uint64) (end uint64, shared bool) {
	k, ok := slices.BinarySearch(c.starts, offset)
	if !ok {
		return offset, false
	}
	if k+1 < len(c.starts) {
		return min(c.starts[k+1], c.end), c.shared[k]
	}
	return c.end, c.shared[k]
}

// table returns the unit's abbreviation table. It is compiled into own when it is
// given and no other unit shares the table.
func (s *source) table(u *unit, own *table) *table {
	end, shared := s.tables.extent(u.abbrev)
	var data []byte
	if u.abbrev <= end {
		data = s.abbrev.data[u.abbrev:end]
	}
	if own != nil && !shared {
		own.compile(data, u.shape)
		return own
	}
	kept := s.tables.keep(tableKey{u.abbrev, u.shape})
	kept.once.Do(func() { kept.table.compile(data, u.shape) })
	return &kept.table
}

func (c *tableCache) keep(key tableKey) *keptTable {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.kept[key]
	if kept == nil {
		if c.kept == nil {
			c.kept = make(map[tableKey]*keptTable)
		}
		kept = new(keptTable)
		c.kept[key] = kept
	}
	return kept
}
