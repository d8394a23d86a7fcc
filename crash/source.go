package crash

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"
	"unicode/utf16"
)

// maxPart bounds what is read of a file at once, beside memory of the process.
const maxPart = 64 << 20

// source is a binary report that is read piece by piece.
type source struct {
	name string
	r    io.ReaderAt
	size uint64
}

// part returns size bytes at an offset.
func (s *source) part(off, size uint64, what string) ([]byte, error) {
	if off > s.size || size > s.size-off {
		return nil, fmt.Errorf("crash: %s: %w: %s of %d bytes at offset %#x is beyond the end (%#x)", s.name, ErrDamaged, what, size, off, s.size)
	}
	if size > maxPart {
		return nil, fmt.Errorf("crash: %s: %w: %s of %d bytes at offset %#x, at most %d are read", s.name, ErrDamaged, what, size, off, maxPart)
	}
	b := make([]byte, size)
	if n, err := s.r.ReadAt(b, int64(off)); n < len(b) {
		return nil, fmt.Errorf("crash: %s: %s at offset %#x: %w", s.name, what, off, err)
	}
	return b, nil
}

// stored is a piece of memory that a file holds.
type stored struct {
	Range
	off uint64 // in the file
}

// fileMemory is memory in a file.
type fileMemory struct {
	source *source
	parts  []stored
}

// newFileMemory sorts the parts and drops what lies over others, or outside of the file. It
// returns how many bytes were lost so.
func newFileMemory(s *source, parts []stored) (*fileMemory, uint64) {
	lost := uint64(0)
	// Of two parts that begin alike the longer one counts.
	slices.SortStableFunc(parts, func(a, b stored) int {
		switch {
		case a.Start != b.Start:
			if a.Start < b.Start {
				return -1
			}
			return 1
		case a.End > b.End:
			return -1
		case a.End < b.End:
			return 1
		}
		return 0
	})
	kept := parts[:0]
	end := uint64(0)
	for _, p := range parts {
		if p.Start < end { // what is covered twice is read once
			cut := min(end, p.End) - p.Start
			p.Start, p.off = p.Start+cut, p.off+cut
		}
		if p.off > s.size || p.End-p.Start > s.size-p.off {
			have := s.size - min(p.off, s.size)
			lost += p.End - p.Start - have
			p.End = p.Start + have
		}
		if p.Start >= p.End {
			continue
		}
		kept, end = append(kept, p), p.End
	}
	return &fileMemory{s, kept}, lost
}

// ReadMemory implements [Memory].
func (m *fileMemory) ReadMemory(addr uint64, buf []byte) (int, error) {
	done := 0
	for done < len(buf) {
		at := addr + uint64(done)
		if at < addr {
			break
		}
		k := sort.Search(len(m.parts), func(k int) bool { return m.parts[k].Start > at }) - 1
		if k < 0 || at >= m.parts[k].End {
			break
		}
		p := &m.parts[k]
		part := buf[done : done+int(min(uint64(len(buf)-done), p.End-at))]
		n, err := m.source.r.ReadAt(part, int64(p.off+(at-p.Start)))
		done += n
		if n < len(part) {
			return done, err
		}
	}
	return done, nil
}

// Ranges implements [Memory].
func (m *fileMemory) Ranges() []Range {
	out := make([]Range, len(m.parts))
	for k := range m.parts {
		out[k] = m.parts[k].Range
	}
	return out
}

// utf16Text decodes little-endian UTF-16 up to a NUL.
func utf16Text(b []byte) string {
	units := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		u := binary.LittleEndian.Uint16(b)
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}
