package cfi

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/callreel/callreel/internal/ehtable"
)

// maxDamage bounds the list of damaged records; what is beyond is only counted.
const maxDamage = 1000

// What records take of memory, in bytes.
const (
	cieCost = 1 << 10 // with its first row, and its place in a map
	fdeCost = 80
)

// errTruncated is what is wrong with a record that ends too early.
var errTruncated = errors.New("record ends too early")

// ParseEHFrame reads an .eh_frame section that is loaded at the link address addr
// (LSB Core 5.0 §10.6.1). Zero lengths, which end the section for some readers, are
// passed over: linkers leave them in the middle. The error is for options that make
// no sense; damage inside is reported by Table.Err.
func ParseEHFrame(data []byte, addr uint64, opt Options) (*Table, error) {
	return parse(data, addr, opt, true)
}

// ParseDebugFrame reads a .debug_frame section (DWARF 5 §6.4.1). Its address only
// matters for pc-relative pointers, which it does not use, so addr may be 0.
func ParseDebugFrame(data []byte, addr uint64, opt Options) (*Table, error) {
	return parse(data, addr, opt, false)
}

func parse(data []byte, addr uint64, opt Options, eh bool) (*Table, error) {
	src, err := newSource(data, addr, opt)
	if err != nil {
		return nil, err
	}
	if src.eh, src.part = eh, ".debug_frame"; eh {
		src.part = ".eh_frame"
	}
	t := &Table{source: src}
	if t.read(); t.over != nil {
		return nil, fmt.Errorf("%s: %w", src.where(), t.over)
	}
	return t, nil
}

// read reads all records.
func (t *Table) read() {
	p := parser{source: &t.source, contents: &t.contents, cies: make(map[uint64]*CIE)}
	fdes := p.readCIEs()
	if p.over == nil {
		p.over = t.source.take(uint64(fdes)*fdeCost, "a list of so many FDEs")
	}
	if p.over != nil {
		p.damaged(0, p.over)
		return
	}
	p.fdes = make([]FDE, 0, fdes)
	p.visitFDEs(func(f *FDE) bool {
		p.fdes = append(p.fdes, *f)
		return true
	})
	t.sortFDEs()
}

// VisitFDEs calls visit for the FDEs that can be read, in no particular order, until
// it returns false. A table of OpenEHFrame keeps none of them, so that those of a
// large image take no memory; an FDE is visit's until it returns.
func (t *Table) VisitFDEs(visit func(*FDE) bool) {
	if t.index == nil {
		for k := range t.fdes {
			if !visit(&t.fdes[k]) {
				return
			}
		}
		return
	}
	p := parser{source: &t.source, contents: &contents{}, cies: make(map[uint64]*CIE)}
	if p.readCIEs(); p.over == nil {
		p.visitFDEs(visit)
	}
}

// newSource checks the options and fills in their defaults.
func newSource(data []byte, addr uint64, opt Options) (source, error) {
	if opt.ByteOrder == nil {
		opt.ByteOrder = binary.LittleEndian
	}
	switch opt.AddrSize {
	case 0:
		opt.AddrSize = 8
	case 4, 8:
	default:
		return source{}, fmt.Errorf("cfi: %s: address size %d, want 4 or 8", opt.Name, opt.AddrSize)
	}
	return source{
		data: data, addr: addr, order: opt.ByteOrder, name: opt.Name,
		taking: opt.Take, bases: ehtable.Bases{Section: addr, Text: opt.TextAddr, Data: opt.DataAddr, Size: opt.AddrSize},
	}, nil
}

// take asks for memory.
func (s *source) take(n uint64, what string) error {
	if s.taking == nil {
		return nil
	}
	return s.taking(n, what)
}

// sortFDEs sorts the FDEs and prepares Find for overlapping ones.
func (t *contents) sortFDEs() {
	byStart := func(a, b FDE) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Offset, b.Offset))
	}
	if !slices.IsSortedFunc(t.fdes, byStart) {
		slices.SortFunc(t.fdes, byStart)
	}
	overlap := false
	end := uint64(0)
	for k := range t.fdes {
		overlap = overlap || t.fdes[k].Start < end
		end = max(end, t.fdes[k].End)
	}
	if !overlap {
		return
	}
	t.maxEnds = make([]uint64, len(t.fdes))
	end = 0
	for k := range t.fdes {
		end = max(end, t.fdes[k].End)
		t.maxEnds[k] = end
	}
}

// parser reads the records of a section into a table.
type parser struct {
	*contents
	source *source
	cies   map[uint64]*CIE // by offset
	last   *CIE            // the CIE that was used last, nearly always the right one
}

// record is the frame of a CIE or an FDE.
type record struct {
	offset uint64 // of its length
	idAt   uint64 // of the CIE ID or pointer
	id     uint64
	body   cursor // behind the ID, ending with the record
	isCIE  bool
}

// readCIEs reads the CIEs, since an FDE may come before its own, and counts the FDEs.
// A CIE counts only where a record begins: were FDEs to name any offset, each could
// have a CIE as long as the section.
func (p *parser) readCIEs() (fdes int) {
	var m Machine
	p.eachRecord(p.damaged, func(r *record) (bool, error) {
		if !r.isCIE {
			fdes++
			return true, nil
		}
		if p.over = p.source.take(cieCost, "a list of so many CIEs"); p.over != nil {
			return false, nil
		}
		cie, err := p.source.cie(r)
		if err != nil {
			return true, err
		}
		m.initialRow(cie)
		p.cies[r.offset] = cie
		return true, nil
	})
	return fdes
}

// visitFDEs reads the FDEs, whose CIEs are known. All are read into the same variable.
func (p *parser) visitFDEs(visit func(*FDE) bool) {
	known := func(uint64, error) {} // the round before reported the bad frames
	var f FDE
	p.eachRecord(known, func(r *record) (bool, error) {
		if r.isCIE {
			return true, nil
		}
		if err := p.fde(r, &f); err != nil {
			return true, err
		}
		return visit(&f), nil
	})
}

// eachRecord goes through the section until visit returns false. Without a good
// length there is no way to the next record, so that ends it. It hands frames that
// are damaged to bad, and those whose contents visit refuses to the list of damage.
func (p *parser) eachRecord(bad func(uint64, error), visit func(*record) (bool, error)) {
	var r record
	for at := uint64(0); at < uint64(len(p.source.data)); {
		next, err := p.source.record(at, &r)
		more := true
		if err != nil {
			bad(at, err)
		} else if next > at+4 {
			if more, err = visit(&r); err != nil {
				p.damaged(at, err)
			}
		}
		if next == 0 || !more {
			return
		}
		at = next
	}
}

func (p *parser) damaged(offset uint64, err error) {
	p.lost++
	if len(p.damage) < maxDamage {
		p.damage = append(p.damage, Damage{offset, err})
	}
}

// record reads the frame at an offset into r. next is the offset of the following
// record, 0 when it cannot be known; a zero length has no body and next = at+4.
func (s *source) record(at uint64, r *record) (next uint64, err error) {
	c := cursor{data: s.data, at: int(at), order: s.order}
	*r = record{offset: at}
	short, ok := c.u32()
	if !ok {
		return 0, errTruncated
	}
	if short == 0 {
		return at + 4, nil
	}
	length, idSize := uint64(short), 4
	switch {
	case short == math.MaxUint32: // 64-bit DWARF (DWARF 5 §7.4)
		if length, ok = c.u64(); !ok {
			return 0, errTruncated
		}
		if !s.eh {
			idSize = 8 // in .eh_frame it has 4 bytes always
		}
	case short >= 0xfffffff0:
		return 0, fmt.Errorf("reserved length %#x", short)
	}
	if length > uint64(c.remaining()) {
		return 0, fmt.Errorf("length %#x reaches beyond the section's end (%#x)", length, len(s.data))
	}
	next = uint64(c.at) + length
	c.data = c.data[:next]
	r.idAt = uint64(c.at)
	if r.id, ok = c.word(idSize); !ok {
		return next, errTruncated
	}
	switch {
	case s.eh:
		r.isCIE = r.id == 0
	case idSize == 4:
		r.isCIE = r.id == math.MaxUint32
	default:
		r.isCIE = r.id == math.MaxUint64
	}
	r.body = c
	return next, nil
}

// fde reads an FDE behind its CIE pointer into f.
func (p *parser) fde(r *record, f *FDE) error {
	at, err := p.source.cieOffset(r)
	if err != nil {
		return err
	}
	if p.last == nil || p.last.Offset != at {
		cie := p.cies[at]
		if cie == nil {
			return fmt.Errorf("no readable CIE at %#x", at)
		}
		p.last = cie
	}
	*f = FDE{CIE: p.last, Offset: r.offset}
	return p.source.fde(r, f)
}

// cieOffset returns where the CIE of an FDE is.
func (s *source) cieOffset(r *record) (uint64, error) {
	if !s.eh {
		return r.id, nil
	}
	if r.id > r.idAt { // the pointer is the distance back from itself
		return 0, fmt.Errorf("CIE pointer %#x leads before the section", r.id)
	}
	return r.idAt - r.id, nil
}

// fde reads what stands behind the CIE pointer into f, whose CIE is known.
func (s *source) fde(r *record, f *FDE) error {
	cie := f.CIE
	c, b := &r.body, s.bases
	b.Size = cie.addrSize
	var ok bool
	if f.Start, ok = c.pointer(cie.fdeEncoding, &b); !ok {
		return fmt.Errorf("cannot read the start address: %w", errTruncated)
	}
	// The length has the format of the address, but is relative to nothing.
	length, ok := c.value(cie.fdeEncoding.Format(), cie.addrSize)
	if !ok {
		return fmt.Errorf("cannot read the length of code: %w", errTruncated)
	}
	if length > truncate(math.MaxUint64, cie.addrSize)-f.Start {
		return fmt.Errorf("code of %#x bytes at %#x wraps around the address space", length, f.Start)
	}
	f.End = f.Start + length
	b.Function = f.Start
	if cie.sized {
		if err := f.augmentation(c, &b); err != nil {
			return err
		}
	}
	f.program = span{uint64(c.at), uint64(len(c.data))}
	return nil
}

// augmentation reads the augmentation data, of which the LSDA pointer is known.
func (f *FDE) augmentation(c *cursor, b *ehtable.Bases) error {
	size, ok := c.uleb()
	aug, fits := c.bytes(size)
	if !ok || !fits {
		return fmt.Errorf("augmentation: %w", errTruncated)
	}
	if enc := f.CIE.lsdaEncoding; enc != ehtable.Omit && len(aug) > 0 {
		a := cursor{data: c.data[:c.at], at: c.at - len(aug), order: c.order}
		if f.LSDA, ok = a.pointer(enc, b); !ok {
			return fmt.Errorf("LSDA pointer: %w", errTruncated)
		}
	}
	return nil
}
