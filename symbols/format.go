package symbols

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/callreel/callreel/object"
)

// A symbol map is, in this order and little-endian throughout: a header, and the
// sections that its table names, each at a multiple of eight bytes.
//
//	id        the image's ID, lower-case hexadecimal
//	name      the base name of the image's file
//	regions   the stretches of code, sorted by address, as fixed records
//	buckets   per region: for each 2^shift bytes the first block that starts there or later
//	index     per block: the offset of its code in the region (32 bits), by which they
//	          are sorted in each region, and of its bytes in blocks (32 bits)
//	blocks    the blocks' bytes, see block.go
//	callees   fixed-width records of bits: where the name is in strings and how long
//	          it is, so that lookups need not go there; which file
//	files     fixed records: where directory and base name are in strings (32 bits
//	          each) and their lengths (16 bits each)
//	strings   each a length as a varint and the bytes; at 0 the empty one, and at 1
//	          another: the name of functions that have none
const (
	magic   = "\x89symmap\n"
	version = 1

	// Extension is what the names of symbol maps end in.
	Extension = ".symmap"
)

// ErrNotMap is wrapped by the errors of Open and Parse when the bytes are no symbol
// map, one of another version, or a damaged one.
var ErrNotMap = errors.New("not a usable symbol map")

// The sections, in the order of the file.
const (
	sectionID = iota
	sectionName
	sectionRegions
	sectionBuckets
	sectionIndex
	sectionBlocks
	sectionCallees
	sectionFiles
	sectionStrings
	sectionCount
)

var sectionNames = [sectionCount]string{
	"id", "name", "regions", "buckets", "index", "blocks", "callees", "files", "strings",
}

// The sizes of the fixed parts in bytes.
const (
	headerSize     = 80 + 16*sectionCount
	checksumOffset = 16
	regionSize     = 32
	fileSize       = 12
	indexSize      = 8
	sectionAlign   = 8

	// maxLengthBits is the width of the length of names in callee records. Of the
	// longer ones, some of C++'s, the length stands before the string only.
	maxLengthBits = 8

	// maxIDSize bounds the image's ID, in characters: twice what package object
	// takes for a build ID.
	maxIDSize = 512
)

// The bits of header.flags.
const (
	flagDWARF       = 1 << iota // the image or its debug file had DWARF
	flagSymbols                 // there was a symbol table with functions
	flagRelocatable             // addresses are places, see object.Image
	flagLayout                  // the header says where the image's code lies, if it can
	flagFetched                 // a Fetcher has got what the map was made of
	flagChoices                 // choices are behind the strings, see choice.go
)

// extent is where one section lies in the file.
type extent struct{ off, size uint64 }

// header is the decoded header.
type header struct {
	arch      object.Arch
	format    object.Format
	class     object.Class
	flags     uint32
	base      uint64 // object.Image.BaseAddr
	total     uint64 // bytes of the whole file: a shorter one was cut off
	functions uint64
	inlines   uint64
	rows      uint64
	layout    uint64 // layoutOf the image, 0 for unknown; maps before flagLayout have 0 too

	// The widths in bits of the fields of a callee record, and of a reference to
	// one in a block.
	nameBits, lengthBits, fileBits, calleeBits uint8

	sections [sectionCount]extent
}

// calleeSize is the width of a callee record in bits.
func (h *header) calleeSize() uint { return uint(h.nameBits + h.lengthBits + h.fileBits) }

// append appends the header's bytes.
func (h *header) append(b []byte) []byte {
	start := len(b)
	le := binary.LittleEndian
	b = append(b, magic...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint32(b, headerSize)
	b = le.AppendUint32(b, 0) // the checksum
	b = le.AppendUint16(b, uint16(h.arch))
	b = append(b, byte(h.format), byte(h.class))
	b = le.AppendUint32(b, h.flags)
	b = append(b, h.nameBits, h.lengthBits, h.fileBits, h.calleeBits)
	b = le.AppendUint64(b, h.base)
	b = le.AppendUint64(b, h.total)
	b = le.AppendUint64(b, h.functions)
	b = le.AppendUint64(b, h.inlines)
	b = le.AppendUint64(b, h.rows)
	b = le.AppendUint64(b, h.layout)
	for _, s := range h.sections {
		b = le.AppendUint64(b, s.off)
		b = le.AppendUint64(b, s.size)
	}
	le.PutUint32(b[start+checksumOffset:], headerChecksum(b[start:]))
	return b
}

// headerChecksum is the CRC-32C of the header without the checksum itself.
func headerChecksum(b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, b[:checksumOffset])
	return crc32.Update(sum, table, b[checksumOffset+4:headerSize])
}

// parse reads and checks the header of a whole map.
func (h *header) parse(data []byte) error {
	if len(data) < headerSize || string(data[:len(magic)]) != magic {
		return fmt.Errorf("%w: it does not begin like one", ErrNotMap)
	}
	le := binary.LittleEndian
	if v := le.Uint32(data[8:]); v != version {
		return fmt.Errorf("%w: version %d, this program reads %d", ErrNotMap, v, version)
	}
	if n := le.Uint32(data[12:]); n != headerSize {
		return fmt.Errorf("%w: header of %d bytes, want %d", ErrNotMap, n, headerSize)
	}
	if got, want := headerChecksum(data), le.Uint32(data[checksumOffset:]); got != want {
		return fmt.Errorf("%w: header checksum %#08x, the header says %#08x", ErrNotMap, got, want)
	}
	h.arch = object.Arch(le.Uint16(data[20:]))
	h.format, h.class = object.Format(data[22]), object.Class(data[23])
	h.flags = le.Uint32(data[24:])
	h.nameBits, h.lengthBits, h.fileBits, h.calleeBits = data[28], data[29], data[30], data[31]
	h.base, h.total = le.Uint64(data[32:]), le.Uint64(data[40:])
	h.functions, h.inlines, h.rows = le.Uint64(data[48:]), le.Uint64(data[56:]), le.Uint64(data[64:])
	h.layout = le.Uint64(data[72:])
	if h.total != uint64(len(data)) {
		return fmt.Errorf("%w: %d bytes long, the header says %d", ErrNotMap, len(data), h.total)
	}
	for k := range h.sections {
		at := data[80+16*k:]
		s := extent{le.Uint64(at), le.Uint64(at[8:])}
		if s.off > h.total || s.size > h.total-s.off {
			return fmt.Errorf("%w: section %s at %#x of %#x bytes reaches beyond the end (%#x)",
				ErrNotMap, sectionNames[k], s.off, s.size, h.total)
		}
		h.sections[k] = s
	}
	return h.check()
}

// check refuses sizes and widths that no builder writes. What the sections hold is
// checked when it is read.
func (h *header) check() error {
	if h.nameBits > 32 || h.lengthBits > maxLengthBits || h.fileBits > 24 || h.calleeSize() > maxField || h.calleeBits > 32 {
		return fmt.Errorf("%w: fields of %d, %d, %d and %d bits", ErrNotMap, h.nameBits, h.lengthBits, h.fileBits, h.calleeBits)
	}
	if h.sections[sectionID].size > maxIDSize {
		return fmt.Errorf("%w: an ID of %d characters", ErrNotMap, h.sections[sectionID].size)
	}
	if n := h.sections[sectionIndex].size; n/indexSize > math.MaxUint32 {
		return fmt.Errorf("%w: an index of %#x bytes", ErrNotMap, n)
	}
	for _, k := range [...]int{sectionBlocks, sectionCallees} {
		if h.sections[k].size < slack {
			return fmt.Errorf("%w: section %s of %d bytes, want %d at least", ErrNotMap, sectionNames[k], h.sections[k].size, slack)
		}
	}
	return nil
}
