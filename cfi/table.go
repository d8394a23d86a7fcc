package cfi

import (
	"encoding/binary"
	"fmt"
	"sort"
	"sync"

	"github.com/callreel/callreel/internal/ehtable"
)

// Options says how to read a section of call frame information.
type Options struct {
	ByteOrder binary.ByteOrder // little-endian when nil
	AddrSize  int              // bytes of an address, 4 or 8; 8 when 0
	TextAddr  uint64           // link address that textrel pointers are relative to
	DataAddr  uint64           // link address that datarel pointers are relative to (the GOT)
	Name      string           // of the file, for errors

	// Take is asked before so many bytes are kept for the section's records; an error
	// ends reading, which returns it. Nil has room for anything. See object.Image.Take.
	Take func(n uint64, what string) error
}

// Table is the call frame information of one section. It keeps the section's
// bytes, which must stay as they are while it is in use. Methods may be called from
// several goroutines at once.
type Table struct {
	source source
	index  *searchTable // of OpenEHFrame, else nil
	once   sync.Once    // with index: reading all records
	cache  cache        // what was read one by one
	contents
}

// contents is what reading a whole section gives.
type contents struct {
	fdes    []FDE
	maxEnds []uint64 // for overlapping FDEs: the greatest End up to each; else nil
	damage  []Damage
	lost    int
	over    error // what Options.Take said
}

// all returns the contents, which a table of OpenEHFrame reads when it first has to.
func (t *Table) all() *contents {
	if t.index != nil {
		t.once.Do(t.read)
	}
	return &t.contents
}

// source is the section that CIEs and FDEs were read from.
type source struct {
	data   []byte
	addr   uint64
	order  binary.ByteOrder
	bases  ehtable.Bases
	name   string // of the file
	part   string // ".eh_frame" or ".debug_frame"
	eh     bool
	taking func(n uint64, what string) error // Options.Take
}

// A CIE holds what several FDEs have in common (DWARF 5 §6.4.1).
type CIE struct {
	Offset       uint64 // in the section
	Version      uint8
	Augmentation string
	CodeAlign    uint64 // factor of all advances
	DataAlign    int64  // factor of all offsets
	RAReg        uint32 // DWARF number of the column that holds the return address
	SignalFrame  bool   // a signal handler's frame: its PC is not a return address
	BKey         bool   // AArch64: return addresses are signed with the B key

	// Personality is the address of the personality routine, 0 for none. When
	// PersonalityIndirect is set it is the address of a pointer to it.
	Personality         uint64
	PersonalityIndirect bool

	source       *source
	program      span
	addrSize     int
	fdeEncoding  ehtable.Encoding
	lsdaEncoding ehtable.Encoding
	sized        bool // FDEs have an augmentation length ('z')
	initial      Row
	initialErr   error
}

// An FDE describes the frames of one range of code, a function or a part of one.
type FDE struct {
	Start, End uint64 // link addresses of the code, End excluded
	CIE        *CIE
	LSDA       uint64 // address of the language-specific data, 0 for none
	Offset     uint64 // in the section
	program    span
}

// span is a range of offsets in the section.
type span struct{ from, to uint64 }

// Program is the FDE's call frame instructions. The slice aliases the section.
func (f *FDE) Program() []byte { return f.CIE.source.data[f.program.from:f.program.to] }

// Program is the CIE's initial instructions. The slice aliases the section.
func (c *CIE) Program() []byte { return c.source.data[c.program.from:c.program.to] }

// Contains says whether the FDE describes the code at pc.
func (f *FDE) Contains(pc uint64) bool { return pc >= f.Start && pc < f.End }

// Damage is one record that could not be read.
type Damage struct {
	Offset uint64 // of the record in the section
	Err    error
}

// FDEs lists the FDEs sorted by Start, and by Offset where that is equal. The
// slice belongs to the table.
func (t *Table) FDEs() []FDE { return t.all().fdes }

// Damage lists the records that could not be read, the first thousand of them.
func (t *Table) Damage() []Damage { return t.all().damage }

// Err is nil when all records could be read, else an error that tells the number
// of lost ones and the first.
func (t *Table) Err() error {
	r := t.all()
	if r.lost == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d damaged records, the first at %#x: %w", t.source.where(), r.lost, r.damage[0].Offset, r.damage[0].Err)
}

// Section is the name of the section that was read: ".eh_frame" or ".debug_frame".
func (t *Table) Section() string { return t.source.part }

// Addr is the link address of the section.
func (t *Table) Addr() uint64 { return t.source.addr }

// where names file and section for errors.
func (s *source) where() string {
	if s.name == "" {
		return "cfi: " + s.part
	}
	return "cfi: " + s.name + ": " + s.part
}

// Find returns the FDE that describes the code at pc. Where FDEs overlap it is the
// one that starts last. The FDE belongs to the table.
func (t *Table) Find(pc uint64) (*FDE, bool) {
	if t.index != nil {
		return t.index.find(t, pc)
	}
	return t.contents.find(pc)
}

func (r *contents) find(pc uint64) (*FDE, bool) {
	k := sort.Search(len(r.fdes), func(k int) bool { return r.fdes[k].Start > pc }) - 1
	for ; k >= 0; k-- {
		if pc < r.fdes[k].End {
			return &r.fdes[k], true
		}
		if r.maxEnds == nil || r.maxEnds[k] <= pc {
			break
		}
	}
	return nil, false
}
