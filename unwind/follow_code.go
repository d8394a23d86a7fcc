package unwind

import "slices"

// codeReader reads the code that is followed, by chunks.
type codeReader struct {
	reader *reader
	code   []byte
	codeAt uint64
	buf    [followChunk]byte
}

func (c *codeReader) begin(r *reader) { c.reader, c.code, c.codeAt = r, nil, 0 }

func (c *codeReader) end() { c.reader = nil }

// at returns the code from an address on: as many bytes as one instruction has at most, or fewer where it ends.
func (c *codeReader) at(pc, most uint64) []byte {
	off := pc - c.codeAt
	if off >= uint64(len(c.code)) || uint64(len(c.code))-off < most {
		c.code, c.codeAt = c.reader.code(pc, c.buf[:]), pc
		off = 0
	}
	return c.code[off:]
}

// visits are the places that were jumped to, and the one that the code is followed from.
type visits struct {
	start uint64
	seen  []uint64
	full  bool // there was no room for one more
}

func (v *visits) begin(start uint64) { v.start, v.seen, v.full = start, v.seen[:0], false }

// first says whether a place was not yet jumped to.
func (v *visits) first(pc uint64) bool {
	if slices.Contains(v.seen, pc) {
		return false
	}
	if v.full = v.full || len(v.seen) == 4*maxBranches; v.full {
		return false
	}
	v.seen = append(v.seen, pc)
	return true
}
