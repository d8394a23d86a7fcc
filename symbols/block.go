package symbols

import (
	"encoding/binary"
	"math/bits"
)

// A block is a stretch of one function with at most maxRows rows, readable without
// any other block. Its bytes are a word of counts and widths, up to three varints,
// and fields of bits:
//
//	word     see packWord
//	varint   extent: bytes of code that the block covers, from its start
//	varint   back: bytes from the function's start to the block's; only with backBit
//	varint   bias: bytes from the first row to the block's start; only with biasBit
//	rows-1 × {advance: addrBits}     bytes of code to the next row, shifted right
//	rows   × {node: nodeBits, line: lineBits}
//	nodes  × {base: numberBits}      the first node has this only
//	       , {parent: nodeBits, call: numberBits} for the others, behind base
//	(to the next byte)
//	nodes  × {callee: header.calleeBits}
//
// A node is an open call: node 0 the function, the others calls inlined into their
// parent, which always has a lower number, at the line call. A row's line is counted
// from its node's base. Its file is that of the node's callee, a pair of name and
// file; where a function's code comes from several files, a node without a name
// stands below the function's own and only changes the file, for rows and for calls.
type block struct {
	rows, nodes          uint
	addrBits, shift      uint
	lineBits, numberBits uint
	nodeBits             uint
	extent, back, bias   uint64

	addrAt, rowAt, nodeAt, calleeAt uint64 // offsets in bits, in the section
}

const (
	maxRows  = 64       // in what the builder collects: lookups read half of them on average
	maxNodes = 1<<7 - 1 // what the word has room for, as it has for rows

	maxAddrBits   = 1<<4 - 1
	maxNumberBits = 1<<5 - 1 // lines, so below 2^31

	backBit = 1 << 30
	biasBit = 1 << 31
)

// packWord makes the word that begins a block, without backBit and biasBit.
func packWord(b *block) uint32 {
	return uint32(b.rows | b.nodes<<7 | b.addrBits<<14 | b.shift<<18 | b.lineBits<<20 | b.numberBits<<25)
}

// unpackWord is the reverse of packWord.
func (b *block) unpackWord(w uint32) {
	b.rows, b.nodes = uint(w&0x7f), uint(w>>7&0x7f)
	b.addrBits, b.shift = uint(w>>14&0xf), uint(w>>18&3)
	b.lineBits, b.numberBits = uint(w>>20&0x1f), uint(w>>25&0x1f)
	b.nodeBits = nodeBits(b.nodes)
}

// nodeBits is the width of the number of one of n nodes.
func nodeBits(n uint) uint {
	if n == 0 {
		return 0
	}
	return uint(bits.Len(n - 1))
}

// The widths of one row behind its address, and of one node but the first.
func (b *block) rowBits() uint64  { return uint64(b.nodeBits + b.lineBits) }
func (b *block) nodeSize() uint64 { return uint64(b.nodeBits + 2*b.numberBits) }

// bodyBits is the length of the fields before the callees.
func (b *block) bodyBits() uint64 {
	n := uint64(b.numberBits) + uint64(b.nodes-1)*b.nodeSize()
	if b.rows > 0 {
		n += uint64(b.rows-1)*uint64(b.addrBits) + uint64(b.rows)*b.rowBits()
	}
	return n
}

// open reads the block at a place in the section and checks that it lies inside
// with slack bytes behind it; all its fields may then be read.
func (b *block) open(data []byte, place uint64, calleeBits uint) bool {
	if place > uint64(len(data)) || uint64(len(data))-place < 4+slack {
		return false
	}
	data = data[:len(data)-slack]
	at := place + 4
	word := binary.LittleEndian.Uint32(data[place:])
	b.unpackWord(word)
	if b.nodes == 0 {
		return false
	}
	var ok bool
	if b.extent, at, ok = varint(data, at); !ok {
		return false
	}
	b.back, b.bias = 0, 0
	if word&backBit != 0 {
		if b.back, at, ok = varint(data, at); !ok {
			return false
		}
	}
	if word&biasBit != 0 {
		if b.bias, at, ok = varint(data, at); !ok {
			return false
		}
	}
	b.addrAt = at * 8
	b.rowAt = b.addrAt
	if b.rows > 0 {
		b.rowAt += uint64(b.rows-1) * uint64(b.addrBits)
	}
	b.nodeAt = b.rowAt + uint64(b.rows)*b.rowBits()
	at += bitBytes(b.bodyBits())
	b.calleeAt = at * 8
	return at+bitBytes(uint64(b.nodes)*uint64(calleeBits)) <= uint64(len(data))
}

// varint reads an unsigned LEB128 number that ends inside the slice.
func varint(b []byte, at uint64) (value, next uint64, ok bool) {
	if at < uint64(len(b)) && b[at] < 0x80 {
		return uint64(b[at]), at + 1, true
	}
	if at > uint64(len(b)) {
		return 0, at, false
	}
	v, n := binary.Uvarint(b[at:])
	return v, at + uint64(max(n, 0)), n > 0
}

// row returns the row that covers an offset from the first row's address. The block
// has rows.
func (b *block) row(data []byte, off uint64) uint64 {
	var row, at uint64
	pos := b.addrAt
	for last := uint64(b.rows - 1); row < last; row++ {
		at += bitsAt(data, pos, b.addrBits) << b.shift
		if at > off {
			break
		}
		pos += uint64(b.addrBits)
	}
	return row
}

// node returns the node and the line of a row; ok is false when there is no such node.
func (b *block) node(data []byte, row uint64) (node, line uint64, ok bool) {
	at := b.rowAt + row*b.rowBits()
	node = bitsAt(data, at, b.nodeBits)
	if node >= uint64(b.nodes) {
		return 0, 0, false
	}
	line = bitsAt(data, at+uint64(b.nodeBits), b.lineBits)
	return node, line + bitsAt(data, b.nodeOffset(node), b.numberBits), true
}

// nodeOffset is where a node's fields begin, base first.
func (b *block) nodeOffset(node uint64) uint64 {
	if node == 0 {
		return b.nodeAt
	}
	return b.nodeAt + uint64(b.numberBits) + (node-1)*b.nodeSize()
}

// parent returns the parent of a node other than 0 and the line of the call there;
// ok is false when the number is not lower than the node's.
func (b *block) parent(data []byte, node uint64) (parent, call uint64, ok bool) {
	at := b.nodeOffset(node) + uint64(b.numberBits)
	parent = bitsAt(data, at, b.nodeBits)
	call = bitsAt(data, at+uint64(b.nodeBits), b.numberBits)
	return parent, call, parent < node
}

// callee returns the number of a node's callee.
func (b *block) callee(data []byte, node uint64, calleeBits uint) uint64 {
	return bitsAt(data, b.calleeAt+node*uint64(calleeBits), calleeBits)
}
