package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/callreel/callreel/object"
)

// ErrNoCode is wrapped by the error of CompactTable.Row when the size of a frame
// stands in an instruction and the code cannot be read.
var ErrNoCode = errors.New("code that holds the frame's size cannot be read")

// CompactOptions says what belongs to a __unwind_info section.
type CompactOptions struct {
	Arch object.Arch // AMD64 or ARM64; others have no compact unwind information
	Base uint64      // link address of __TEXT (object.Image.BaseAddr), which offsets count from
	Name string      // of the file, for errors

	// EHFrame is __eh_frame, to which encodings may refer. Nil when there is none.
	EHFrame *Table
	// Code reads n bytes of code at a link address. Without it the rows of
	// frames whose size stands in an instruction cannot be made (x86-64 only).
	Code func(addr, n uint64) ([]byte, error)
}

// CompactTable is a __unwind_info section of Mach-O
// (mach-o/compact_unwind_encoding.h): for each function one 32-bit word that says
// how its frame looks between prologue and epilogue. It keeps the section's bytes.
// Methods may be called from several goroutines at once.
type CompactTable struct {
	data          []byte
	opt           CompactOptions
	common        part // encodings, 4 bytes each
	personalities part // offsets of pointers, 4 bytes each
	pages         part // the first level, 12 bytes each
}

// part is an array in the section.
type part struct{ at, count int }

// CompactEntry is one function or several that share an encoding.
type CompactEntry struct {
	Start, End  uint64 // link addresses, End excluded
	Encoding    uint32
	Personality uint64 // address of the pointer to the personality routine, 0 for none
	LSDA        uint64 // address of the language-specific data, 0 for none
}

// Sizes of what stands in the section, and the kinds of second-level pages.
const (
	compactHeader  = 7 * 4
	firstLevelSize = 12
	lsdaSize       = 8

	pageRegular    = 2
	pageCompressed = 3

	maxPersonalities = 3 // what the two bits of an encoding can name
)

// Flags of an encoding, alike on all architectures.
const (
	compactLSDA            = 0x40000000
	compactPersonality     = 0x30000000
	compactPersonalityBits = 28
	compactMode            = 0x0f000000
)

// ParseUnwindInfo reads the header of a __unwind_info section. What it leads to is
// checked when it is asked for.
func ParseUnwindInfo(data []byte, opt CompactOptions) (*CompactTable, error) {
	t := &CompactTable{data: data, opt: opt}
	if opt.Arch != object.AMD64 && opt.Arch != object.ARM64 {
		return nil, t.errorf("no compact unwind encodings are known for %s", opt.Arch)
	}
	if len(data) < compactHeader {
		return nil, t.errorf("header: %w", errTruncated)
	}
	if v := t.u32(0); v != 1 {
		return nil, t.errorf("version %d, want 1", v)
	}
	for _, p := range []struct {
		part *part
		at   int
		size uint64
		what string
	}{
		{&t.common, 4, 4, "common encodings"},
		{&t.personalities, 12, 4, "personalities"},
		{&t.pages, 20, firstLevelSize, "pages"},
	} {
		at, count := uint64(t.u32(p.at)), uint64(t.u32(p.at+4))
		if at > uint64(len(data)) || count > (uint64(len(data))-at)/p.size {
			return nil, t.errorf("%d %s at %#x reach beyond the end (%#x)", count, p.what, at, len(data))
		}
		*p.part = part{int(at), int(count)}
	}
	if t.personalities.count > maxPersonalities {
		return nil, t.errorf("%d personalities, at most %d can be named", t.personalities.count, maxPersonalities)
	}
	return t, nil
}

func (t *CompactTable) u32(at int) uint32 { return binary.LittleEndian.Uint32(t.data[at:]) }

// errorf names file and section.
func (t *CompactTable) errorf(format string, args ...any) error {
	where := "cfi: "
	if t.opt.Name != "" {
		where += t.opt.Name + ": "
	}
	return fmt.Errorf(where+"__unwind_info: "+format, args...)
}

// page is one second-level page.
type page struct {
	kind      uint32
	base, end uint32 // offsets of the code from the image's base
	entries   part
	encodings part
	lsdas     part // of the page's functions
}

// page reads entry k of the first level, which is not the last, and the head of its page.
func (t *CompactTable) page(k int) (page, error) {
	at := t.pages.at + k*firstLevelSize
	p := page{base: t.u32(at), end: t.u32(at + firstLevelSize)}
	start := int(t.u32(at + 4))
	if start == 0 { // a gap without functions
		return p, nil
	}
	first, last := int(t.u32(at+8)), int(t.u32(at+firstLevelSize+8))
	if first <= last && last <= len(t.data) {
		p.lsdas = part{first, (last - first) / lsdaSize}
	}
	if start > len(t.data)-8 {
		return p, t.errorf("page %d at %#x: %w", k, start, errTruncated)
	}
	p.kind = t.u32(start)
	size := 4
	switch p.kind {
	case pageRegular:
		size = 8
	case pageCompressed:
		if start > len(t.data)-12 {
			return p, t.errorf("page %d at %#x: %w", k, start, errTruncated)
		}
		p.encodings = t.pagePart(start, start+8)
		if p.encodings.at > len(t.data)-4*p.encodings.count {
			return p, t.errorf("page %d at %#x: its encodings reach beyond the end", k, start)
		}
	default:
		return p, t.errorf("page %d at %#x: kind %d, want 2 or 3", k, start, p.kind)
	}
	p.entries = t.pagePart(start, start+4)
	if p.entries.at > len(t.data)-size*p.entries.count {
		return p, t.errorf("page %d at %#x: its entries reach beyond the end", k, start)
	}
	return p, nil
}

// pagePart reads an offset from the page's start and a count.
func (t *CompactTable) pagePart(start, at int) part {
	return part{start + int(binary.LittleEndian.Uint16(t.data[at:])), int(binary.LittleEndian.Uint16(t.data[at+2:]))}
}

// offset returns the code offset of an entry of a page.
func (t *CompactTable) offset(p *page, k int) uint32 {
	if p.kind == pageRegular {
		return t.u32(p.entries.at + 8*k)
	}
	return p.base + t.u32(p.entries.at+4*k)&0xffffff
}

// encoding returns the encoding of an entry of a page.
func (t *CompactTable) encoding(p *page, k int) (uint32, error) {
	if p.kind == pageRegular {
		return t.u32(p.entries.at + 8*k + 4), nil
	}
	n := int(t.u32(p.entries.at+4*k) >> 24)
	if n < t.common.count {
		return t.u32(t.common.at + 4*n), nil
	}
	if n -= t.common.count; n < p.encodings.count {
		return t.u32(p.encodings.at + 4*n), nil
	}
	return 0, t.errorf("entry at %#x: encoding %d does not exist", t.opt.Base+uint64(t.offset(p, k)), n+t.common.count)
}

// Find returns the entry of the function at pc; false when the table has none for
// it, or only an encoding of 0, which says that nothing is known. It looks at some
// 20 entries however long the table is.
func (t *CompactTable) Find(pc uint64) (CompactEntry, bool, error) {
	offset := pc - t.opt.Base
	if pc < t.opt.Base || offset > 1<<32-1 || t.pages.count < 2 {
		return CompactEntry{}, false, nil
	}
	at := uint32(offset)
	k := sort.Search(t.pages.count, func(k int) bool { return t.u32(t.pages.at+k*firstLevelSize) > at }) - 1
	if k < 0 || k == t.pages.count-1 { // the last one only ends the list
		return CompactEntry{}, false, nil
	}
	p, err := t.page(k)
	if err != nil {
		return CompactEntry{}, false, err
	}
	n := sort.Search(p.entries.count, func(n int) bool { return t.offset(&p, n) > at }) - 1
	if n < 0 {
		return CompactEntry{}, false, nil
	}
	e, err := t.entry(&p, n)
	return e, err == nil && e.Encoding != 0 && pc < e.End, err
}

// entry makes entry n of a page.
func (t *CompactTable) entry(p *page, n int) (CompactEntry, error) {
	enc, err := t.encoding(p, n)
	if err != nil {
		return CompactEntry{}, err
	}
	start, end := t.offset(p, n), p.end
	if n+1 < p.entries.count {
		end = min(end, t.offset(p, n+1))
	}
	e := CompactEntry{Start: t.opt.Base + uint64(start), End: t.opt.Base + uint64(max(start, end)), Encoding: enc}
	if who := int(enc & compactPersonality >> compactPersonalityBits); who > 0 {
		if who > t.personalities.count {
			return e, t.errorf("entry at %#x: personality %d does not exist", e.Start, who)
		}
		e.Personality = t.opt.Base + uint64(t.u32(t.personalities.at+4*(who-1)))
	}
	if enc&compactLSDA != 0 {
		l := p.lsdas
		k := sort.Search(l.count, func(k int) bool { return t.u32(l.at+k*lsdaSize) >= start })
		if k < l.count && t.u32(l.at+k*lsdaSize) == start {
			e.LSDA = t.opt.Base + uint64(t.u32(l.at+k*lsdaSize+4))
		}
	}
	return e, nil
}

// Entries calls yield for each entry in the order of the table, until it returns
// false; those with an encoding of 0, which say that nothing is known, included.
// Damage of a page ends it with an error.
func (t *CompactTable) Entries(yield func(CompactEntry) bool) error {
	budget := len(t.data) // an entry has four bytes: pages that overlap cost no more than that
	for k := range max(0, t.pages.count-1) {
		p, err := t.page(k)
		if err != nil {
			return err
		}
		for n := range p.entries.count {
			if budget -= 4; budget < 0 {
				return t.errorf("page %d: its entries are those of other pages", k)
			}
			e, err := t.entry(&p, n)
			if err != nil {
				return err
			}
			if !yield(e) {
				return nil
			}
		}
	}
	return nil
}
