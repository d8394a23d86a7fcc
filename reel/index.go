package reel

import (
	"encoding/binary"
	"errors"
	"math"
)

// indexEntry is a chunk's frame and where it is.
type indexEntry struct {
	frame
	offset int64
}

// end is where the next chunk begins.
func (e *indexEntry) end() int64 { return e.offset + frameSize + int64(e.length) }

// The payload of the index is, for each chunk before it, the 48 bytes of its
// frame without magic and check (40 bytes: kind … sum) and its offset in 8
// bytes. It ends with the trailer, the last 16 bytes of the file: the offset of
// the index's own frame in 8 bytes, and trailerMagic.
const (
	indexEntrySize = 48
	trailerSize    = 16
	trailerMagic   = "reelEND\n"
)

var errIndex = errors.New("the index does not fit the file")

// indexBlocks is an index that grows without being copied.
type indexBlocks struct {
	blocks [][]indexEntry
	count  int
}

func (x *indexBlocks) add(e indexEntry) {
	n := len(x.blocks)
	if n == 0 || len(x.blocks[n-1]) == cap(x.blocks[n-1]) {
		x.blocks = append(x.blocks, make([]indexEntry, 0, 64<<min(n, 6)))
		n++
	}
	x.blocks[n-1] = append(x.blocks[n-1], e)
	x.count++
}

// appendIndexEntries appends a part of the index.
func appendIndexEntries(b []byte, entries []indexEntry) []byte {
	le := binary.LittleEndian
	for i := range entries {
		e := &entries[i]
		b = append(b, byte(e.kind), byte(e.mode), 0, 0)
		b = le.AppendUint32(b, e.length)
		b = le.AppendUint32(b, e.thread)
		b = le.AppendUint32(b, e.count)
		b = le.AppendUint32(b, e.seq)
		b = le.AppendUint64(b, e.first)
		b = le.AppendUint64(b, e.last)
		b = le.AppendUint32(b, e.sum)
		b = le.AppendUint64(b, uint64(e.offset))
	}
	return b
}

// appendTrailer appends the trailer of an index that will be at offset.
func appendTrailer(b []byte, offset int64) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(offset))
	return append(b, trailerMagic...)
}

// parseIndex decodes the payload of an index that starts at limit. The chunks
// must follow one another from the start of the file to limit without a gap;
// anything else is an error, and the file is scanned instead.
func parseIndex(payload []byte, count uint32, limit int64) ([]indexEntry, error) {
	n := len(payload) - trailerSize
	if n < 0 || n%indexEntrySize != 0 || n/indexEntrySize != int(count) {
		return nil, errIndex
	}
	le := binary.LittleEndian
	entries := make([]indexEntry, 0, count)
	next := int64(0)
	for b := payload[:n]; len(b) > 0; b = b[indexEntrySize:] {
		e := indexEntry{
			frame: frame{
				kind:   ChunkKind(b[0]),
				mode:   ClockMode(b[1]),
				length: le.Uint32(b[4:]),
				thread: le.Uint32(b[8:]),
				count:  le.Uint32(b[12:]),
				seq:    le.Uint32(b[16:]),
				first:  le.Uint64(b[20:]),
				last:   le.Uint64(b[28:]),
				sum:    le.Uint32(b[36:]),
			},
		}
		offset := le.Uint64(b[40:])
		if offset > math.MaxInt64 || int64(offset) != next {
			return nil, errIndex
		}
		e.offset = next
		next += frameSize + int64(e.length)
		if next > limit {
			return nil, errIndex
		}
		entries = append(entries, e)
	}
	if next != limit {
		return nil, errIndex
	}
	return entries, nil
}
