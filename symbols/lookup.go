package symbols

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Lookup appends the frames at a link address to frames, innermost first, and returns
// the extended slice; it does not allocate when that has room. When nothing is there
// the slice is returned as it was, with the reason.
//
// The address is looked up as it is. For a return address ask for the byte before,
// which belongs to the call.
func (m *Map) Lookup(addr uint64, frames []Frame) ([]Frame, Reason) {
	frames, why, _ := m.lookup(addr, frames)
	return frames, why
}

// LookupCall is Lookup for the call before a return address. It also says whether what the call returns to is in the same
// function; if it says no, that is not known.
func (m *Map) LookupCall(ret uint64, frames []Frame) (found []Frame, why Reason, same bool) {
	frames, why, left := m.lookup(ret-1, frames)
	return frames, why, left > 1
}

// lookup is Lookup, and returns how many bytes of the function there are from the address on, as far as it has seen.
func (m *Map) lookup(addr uint64, frames []Frame) (found []Frame, why Reason, left uint64) {
	r, ok := m.region(addr)
	if !ok {
		if m.Stripped() {
			return frames, Stripped, 0
		}
		return frames, OutsideCode, 0
	}
	k, ok := m.blockAt(&r, uint32(addr-r.base))
	if !ok {
		if m.Stripped() {
			return frames, Stripped, 0
		}
		return frames, NoFunction, 0
	}
	var b block
	if !b.open(m.blocks, m.place(k), uint(m.head.calleeBits)) {
		return frames, Damaged, 0
	}
	start := r.base + m.start(k)
	if addr-start >= b.extent {
		return frames, NoFunction, 0
	}
	var node, line uint64
	if b.rows > 0 {
		if node, line, ok = b.node(m.blocks, b.row(m.blocks, addr-start+b.bias)); !ok {
			return frames, Damaged, 0
		}
	}
	frames, why = m.frames(&b, node, line, start-b.back, frames)
	return frames, why, b.extent - (addr - start)
}

// FunctionAt returns the linkage name of the function whose code is at a link address, "" where none is: the last of what
// Lookup finds, in a fraction of its time. It aliases the map.
func (m *Map) FunctionAt(addr uint64) string {
	r, ok := m.region(addr)
	if !ok {
		return ""
	}
	k, ok := m.blockAt(&r, uint32(addr-r.base))
	if !ok {
		return ""
	}
	var b block
	width := uint(m.head.calleeBits)
	if !b.open(m.blocks, m.place(k), width) || addr-r.base-m.start(k) >= b.extent {
		return ""
	}
	c, ok := m.callee(b.callee(m.blocks, 0, width))
	if !ok {
		return ""
	}
	return m.nameOf(c)
}

// region finds the region that holds the address.
func (m *Map) region(addr uint64) (region, bool) {
	lo, hi := 0, len(m.regions)/regionSize
	for lo < hi {
		mid := (lo + hi) / 2
		if binary.LittleEndian.Uint64(m.regions[mid*regionSize:]) <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return region{}, false
	}
	r := decodeRegion(m.regions, lo-1)
	return r, addr-r.base < r.size && addr-r.base < maxRegion
}

// blockAt finds the last block that starts at or before an offset in the region.
func (m *Map) blockAt(r *region, off uint32) (uint64, bool) {
	first := uint64(r.first)
	end := min(first+uint64(r.count), m.blockCount)
	bucket := uint64(r.buckets) + uint64(off)>>r.shift
	// The one wanted starts in this bucket, or is the last before it.
	lo := max(word(m.buckets, bucket), first+1) - 1
	hi := min(word(m.buckets, bucket+1), end)
	for lo < hi {
		mid := (lo + hi) / 2
		if m.start(mid) <= uint64(off) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || lo <= first || lo > end || m.start(lo-1) > uint64(off) {
		return 0, false
	}
	return lo - 1, true
}

// start and place are the parts of an index record; 0 when there is none.
func (m *Map) start(k uint64) uint64 { return word(m.index, 2*k) }
func (m *Map) place(k uint64) uint64 { return word(m.index, 2*k+1) }

// frames appends the chain of calls from a node outwards. Parents have lower numbers,
// so that it ends.
func (m *Map) frames(b *block, node, line, start uint64, frames []Frame) ([]Frame, Reason) {
	width := uint(m.head.calleeBits)
	before := len(frames)
	for {
		c, ok := m.callee(b.callee(m.blocks, node, width))
		file := c.file
		for ok && node > 0 && c.name == 0 { // a change of file: the function is further out
			if node, _, ok = b.parent(m.blocks, node); ok {
				c, ok = m.callee(b.callee(m.blocks, node, width))
			}
		}
		if !ok {
			return frames[:before], Damaged
		}
		f := Frame{Linkage: m.nameOf(c), Line: uint32(line), Inlined: node > 0, FunctionStart: start, NameID: uint32(c.name), FileID: uint32(file)}
		f.Dir, f.Base = m.file(file)
		frames = append(frames, f)
		if node == 0 {
			return frames, Found
		}
		if node, line, ok = b.parent(m.blocks, node); !ok {
			return frames[:before], Damaged
		}
	}
}

// calleeRecord is a decoded record of the callees.
type calleeRecord struct{ name, length, file uint64 }

// callee returns record k; ok is false when there is none.
func (m *Map) callee(k uint64) (c calleeRecord, ok bool) {
	if k >= m.calleeCount {
		return calleeRecord{}, false
	}
	h := &m.head
	width := h.calleeSize()
	v := bitsAt(m.callees, k*uint64(width), width)
	return calleeRecord{
		name: v & (1<<h.nameBits - 1), length: v >> h.nameBits & (1<<h.lengthBits - 1), file: v >> (h.nameBits + h.lengthBits),
	}, true
}

// nameOf returns a callee's name.
func (m *Map) nameOf(c calleeRecord) string {
	if c.length == 1<<m.head.lengthBits-1 {
		return m.text(c.name)
	}
	return m.textAt(c.name+prefixSize(c.length), c.length)
}

// file returns directory and base name of a file; both empty for file 0 and for
// numbers that no file has.
func (m *Map) file(k uint64) (dir, base string) {
	if k >= uint64(len(m.files))/fileSize {
		return "", ""
	}
	f := m.files[fileSize*k : fileSize*(k+1)]
	le := binary.LittleEndian
	return m.sized(le.Uint32(f), le.Uint16(f[8:])), m.sized(le.Uint32(f[4:]), le.Uint16(f[10:]))
}

// longText in place of a length says that only the one before the string is right.
const longText = math.MaxUint16

// sized returns the string of a length at an offset.
func (m *Map) sized(off uint32, length uint16) string {
	if length == longText {
		return m.text(uint64(off))
	}
	return m.textAt(uint64(off)+prefixSize(uint64(length)), uint64(length))
}

// prefixSize is the size of the length before a string: a varint.
func prefixSize(length uint64) uint64 {
	n := uint64(1)
	for ; length >= 0x80; length >>= 7 {
		n++
	}
	return n
}

// text returns the string at an offset, as much of it as the section holds. It
// aliases the map.
func (m *Map) text(off uint64) string {
	n, at, ok := varint(m.texts, off)
	if !ok {
		return ""
	}
	return m.textAt(at, n)
}

// textAt returns n bytes of the strings, as many as there are.
func (m *Map) textAt(at, n uint64) string {
	if at >= uint64(len(m.texts)) || n == 0 {
		return ""
	}
	return unsafe.String(&m.texts[at], min(n, uint64(len(m.texts))-at))
}
