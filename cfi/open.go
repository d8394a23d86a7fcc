package cfi

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/callreel/callreel/internal/ehtable"
)

// maxLoneCIE bounds a CIE that is read because an FDE names it, without knowing
// that a record begins there: were it longer, each FDE could cost reading a whole
// section. Real ones have some twenty bytes.
const maxLoneCIE = 1 << 16

// Section is the contents of a section and the link address that it is loaded at.
type Section struct {
	Data []byte
	Addr uint64
}

// OpenEHFrame makes a table that finds FDEs by the search table of .eh_frame_hdr
// and reads only those that are asked for, so that a large image costs nothing to
// open. FDEs, Damage and Err read the whole section when one of them is first
// called; VisitFDEs reads it each time and keeps nothing. Without a search table of
// entries of one size (LSB Core 5.0 §10.6.2), or when the header cannot be read or
// belongs to another section, it is ParseEHFrame.
//
// Find trusts the order of the header: an FDE that it leaves out is not found.
func OpenEHFrame(hdr, frame Section, opt Options) (*Table, error) {
	src, err := newSource(frame.Data, frame.Addr, opt)
	if err != nil {
		return nil, err
	}
	src.eh, src.part = true, ".eh_frame"
	index, ok := newSearchTable(hdr, frame, opt)
	if !ok {
		return ParseEHFrame(frame.Data, frame.Addr, opt)
	}
	return &Table{source: src, index: index}, nil
}

// FDEAt returns the FDE whose record begins at an offset of the section, as compact
// unwind information names it. It belongs to the table.
func (t *Table) FDEAt(offset uint64) (*FDE, error) {
	f, err := t.cache.fde(&t.source, offset)
	if err != nil {
		return nil, fmt.Errorf("%s: record at %#x: %w", t.source.where(), offset, err)
	}
	return f, nil
}

// cache holds the records that were read one by one.
type cache struct {
	mu      sync.RWMutex
	fdes    map[uint64]*FDE // by offset, as are the CIEs
	cies    map[uint64]*CIE
	machine Machine
}

// fde returns the FDE at an offset.
func (c *cache) fde(s *source, offset uint64) (*FDE, error) {
	c.mu.RLock()
	f := c.fdes[offset]
	c.mu.RUnlock()
	if f != nil {
		return f, nil
	}
	if offset >= uint64(len(s.data)) || offset > math.MaxInt {
		return nil, errTruncated
	}
	var r record
	next, err := s.record(offset, &r)
	if err != nil {
		return nil, err
	}
	if r.isCIE || next <= offset+4 {
		return nil, errors.New("is no FDE")
	}
	at, err := s.cieOffset(&r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cie, err := c.cie(s, at)
	if err != nil {
		return nil, fmt.Errorf("CIE at %#x: %w", at, err)
	}
	f = &FDE{CIE: cie, Offset: offset}
	if err := s.fde(&r, f); err != nil {
		return nil, err
	}
	if c.fdes == nil {
		c.fdes = make(map[uint64]*FDE)
	}
	c.fdes[offset] = f
	return f, nil
}

// cie returns the CIE at an offset; the lock is held.
func (c *cache) cie(s *source, at uint64) (*CIE, error) {
	if cie := c.cies[at]; cie != nil {
		return cie, nil
	}
	if at >= uint64(len(s.data)) {
		return nil, errTruncated
	}
	var r record
	next, err := s.record(at, &r)
	if err != nil {
		return nil, err
	}
	if !r.isCIE || next <= at+4 || next-at > maxLoneCIE {
		return nil, errors.New("is none")
	}
	cie, err := s.cie(&r)
	if err != nil {
		return nil, err
	}
	c.machine.initialRow(cie)
	if c.cies == nil {
		c.cies = make(map[uint64]*CIE)
	}
	c.cies[at] = cie
	return cie, nil
}

// searchTable is the table of .eh_frame_hdr, read where it stands.
type searchTable struct {
	source source
	at     int // offset of the first entry
	count  int
	enc    ehtable.Encoding
	size   int // bytes of each of an entry's two pointers
	frame  uint64
}

// newSearchTable says false when there is no such table that can be searched as
// it stands.
func newSearchTable(hdr, frame Section, opt Options) (*searchTable, bool) {
	src, err := newSource(hdr.Data, hdr.Addr, opt)
	if err != nil || len(hdr.Data) < 4 || hdr.Data[0] != 1 {
		return nil, false
	}
	b := src.bases
	b.Data = hdr.Addr
	src.bases = b
	ptrEnc, countEnc, enc := ehtable.Encoding(hdr.Data[1]), ehtable.Encoding(hdr.Data[2]), ehtable.Encoding(hdr.Data[3])
	c := cursor{data: hdr.Data, at: 4, order: src.order}
	if ptrEnc == ehtable.Omit || countEnc == ehtable.Omit || enc == ehtable.Omit {
		return nil, false
	}
	start, ok := c.pointer(ptrEnc, &b)
	count, ok2 := c.pointer(countEnc, &b)
	size := fixedSize(enc, b.Size)
	if !ok || !ok2 || size == 0 || start != frame.Addr || count == 0 || count > uint64(c.remaining()/(2*size)) {
		return nil, false
	}
	return &searchTable{source: src, at: c.at, count: int(count), enc: enc, size: size, frame: frame.Addr}, true
}

// fixedSize returns the bytes that a pointer takes in a table, 0 when that depends on the pointer.
func fixedSize(enc ehtable.Encoding, addrSize int) int {
	if enc&ehtable.Indirect != 0 || enc.Relation() == ehtable.Aligned {
		return 0
	}
	switch enc.Format() {
	case ehtable.AbsPtr, ehtable.Signed:
		return addrSize
	case ehtable.UData2, ehtable.SData2:
		return 2
	case ehtable.UData4, ehtable.SData4:
		return 4
	case ehtable.UData8, ehtable.SData8:
		return 8
	}
	return 0
}

// pointer returns one of the two pointers of an entry; its bytes are known to be there.
func (x *searchTable) pointer(entry, which int) uint64 {
	c := cursor{data: x.source.data, at: x.at + (2*entry+which)*x.size, order: x.source.order}
	v, _ := c.pointer(x.enc, &x.source.bases)
	return v
}

// maxSameStart bounds how many entries with one start are looked at: of an empty
// FDE and the real one, say.
const maxSameStart = 8

// find searches the header and reads the FDE that it names.
func (x *searchTable) find(t *Table, pc uint64) (*FDE, bool) {
	k := sort.Search(x.count, func(k int) bool { return x.pointer(k, 0) > pc }) - 1
	if k < 0 {
		return nil, false
	}
	start := x.pointer(k, 0)
	for last := max(-1, k-maxSameStart); k > last && x.pointer(k, 0) == start; k-- {
		at := x.pointer(k, 1)
		if at < x.frame {
			continue
		}
		if f, err := t.cache.fde(&t.source, at-x.frame); err == nil && f.Contains(pc) {
			return f, true
		}
	}
	return nil, false
}
