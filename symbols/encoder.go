package symbols

import "math/bits"

// rank tells what a block was made from; of blocks at one address the lower wins.
type rank uint8

const (
	rankFunction rank = iota // a function of DWARF
	rankRows                 // a symbol that DWARF has no function for, with line rows
	rankSymbol               // a symbol, nothing else
)

// A record is a finished block but for what needs the whole map: its callees' final
// numbers and its place.
type record struct {
	start    uint64 // link address
	end      uint64
	function uint64 // start of the function's range, or of its symbol, at or before start
	fields   []byte
	callees  []uint32 // of each node, the number in encoder.callees
	unit     uint32   // what it comes from: of those that overlap the first wins
	word     uint32
	worker   uint16
	rank     rank
}

// A call is one inlined call of the function that is being encoded; number 0 is the
// function itself.
type call struct {
	name   nameRef
	parent int32 // lower than its own number
	depth  int32
	file   uint32 // where the parent calls
	line   uint32
}

// maxDepth bounds the chain of calls, so that one chain always fits into one block:
// each takes two nodes at most. What is further out between it and the function is
// left out. Compilers stop far earlier.
const maxDepth = maxNodes/2 - 2

// An encoder makes blocks from the rows of functions. Each worker has one.
type encoder struct {
	callees numbering[callee]
	recent  [recentCallees]recentCallee
	records []*record
	inlines uint64 // inlined calls in all functions
	rows    uint64

	fieldArena  arena[byte]
	calleeArena arena[uint32]
	recordArena arena[record]

	calls  []call     // of the function at hand
	nodeOf []nodeSlot // of each call

	unit     uint32
	rank     rank
	function uint64
	origin   uint32 // file of the function's code that no row tells
	root     uint32 // the callee of the last node 0

	// The block that is being filled.
	epoch uint32
	start uint64
	count int // of rows
	rowAt [maxRows]encoderRow
	made  int                       // nodes
	node  [maxNodes + 1]encoderNode // one more than there can be: any number of 7 bits is in range
	last  struct {
		call       int32
		file, line uint32
	}
}

type nodeSlot struct {
	epoch uint32 // that the node belongs to
	node  uint8
}

type encoderRow struct {
	addr uint64
	line uint32
	node uint8
}

type encoderNode struct {
	file, line, base uint32
	callee           uint32
	parent           uint8
	next             uint8 // the next node of the same call, with another file; 0 is none
}

// begin starts a new function or a part of it. The calls are those of e.calls; their
// number 0 bears the name. origin is the file of code that no row tells.
func (e *encoder) begin(start, function uint64, origin uint32) {
	for len(e.nodeOf) < len(e.calls) {
		e.nodeOf = append(e.nodeOf, nodeSlot{})
	}
	e.function, e.origin = function, origin
	e.reset(start)
}

// reset empties the block.
func (e *encoder) reset(start uint64) {
	if e.epoch++; e.epoch == 0 { // wrapped around: old slots could seem to be new
		clear(e.nodeOf)
		e.epoch = 1
	}
	e.start, e.count, e.made = start, 0, 0
}

// row adds a row: from addr on, code is of the call, from the line of the file.
// Addresses rise from row to row.
func (e *encoder) row(addr uint64, call int32, file, line uint32) {
	if line > 1<<maxNumberBits-1 {
		line = 0
	}
	if e.count > 0 {
		if call == e.last.call && line == e.last.line && file == e.last.file {
			return
		}
		if e.count == maxRows || addr-e.rowAt[e.count-1].addr >= 1<<maxAddrBits ||
			e.made+2*int(e.calls[call].depth+1) > maxNodes {
			e.flush(addr)
			e.reset(addr)
		}
	}
	e.last.call, e.last.file, e.last.line = call, file, line
	e.rowAt[e.count] = encoderRow{addr, line, e.nodeFor(call, file)}
	e.count++
}

// nodeFor returns the block's node for code of a call that comes from a file; it
// makes it and its parents when there is none yet.
func (e *encoder) nodeFor(call int32, file uint32) uint8 {
	if call == 0 && file == 0 {
		file = e.origin
	}
	slot := e.nodeOf[call]
	if slot.epoch != e.epoch {
		c := &e.calls[call]
		n := encoderNode{file: file}
		if call != 0 {
			n.parent = e.nodeFor(c.parent, c.file)
			n.line = c.line
		}
		k := e.addNode(n, max(c.name, nameless))
		e.nodeOf[call] = nodeSlot{e.epoch, k}
		return k
	}
	k := slot.node
	for e.node[k].file != file {
		if e.node[k].next == 0 {
			other := e.addNode(encoderNode{file: file, parent: slot.node}, 0)
			e.node[k].next = other
			return other
		}
		k = e.node[k].next
	}
	return k
}

func (e *encoder) addNode(n encoderNode, name nameRef) uint8 {
	c := callee{name, n.file}
	switch {
	case e.made > 0:
		n.callee = e.calleeNumber(c)
	case c == e.callees.list[e.root]:
		n.callee = e.root
	default: // hardly any other function has the same name, so it is not worth looking
		n.callee = e.callees.add(c)
		e.root = n.callee
	}
	e.node[e.made] = n
	e.made++
	return uint8(e.made - 1)
}

// recentCallees is the number of callees that are looked for before the large table,
// which is not in the processor's caches. A unit uses the same few over and over.
const recentCallees = 1 << 10

type recentCallee struct {
	callee
	number uint32 // + 1
}

// calleeNumber numbers a callee.
func (e *encoder) calleeNumber(c callee) uint32 {
	r := &e.recent[c.hash(0)%recentCallees]
	if r.callee != c || r.number == 0 {
		*r = recentCallee{c, e.callees.number(c) + 1}
	}
	return r.number - 1
}

// finish ends the part that begin started. It must cover something.
func (e *encoder) finish(end uint64) {
	if e.count == 0 {
		e.nodeFor(0, 0)
	}
	e.flush(end)
}

// flush writes the block.
func (e *encoder) flush(end uint64) {
	b := e.widths()
	size := int(bitBytes(b.bodyBits()))
	fields := e.fieldArena.take(size, slack) // what is written there is zero, as the next taker expects
	e.writeFields(&b, fields[:size+slack])
	callees := e.calleeArena.take(e.made, 0)
	for k := range callees {
		callees[k] = e.node[k].callee
	}
	r := &e.recordArena.take(1, 0)[0]
	*r = record{
		start: e.start, end: end, function: e.function, fields: fields, callees: callees,
		unit: e.unit, word: packWord(&b), rank: e.rank,
	}
	e.records = append(e.records, r)
	e.rows += uint64(e.count)
}

// writeFields writes the fields of a block but for the callees.
func (e *encoder) writeFields(b *block, out []byte) {
	var w bitWriter
	rows := e.rowAt[:e.count]
	for k := 1; k < len(rows); k++ {
		w = w.put(out, (rows[k].addr-rows[k-1].addr)>>b.shift, b.addrBits)
	}
	width := b.nodeBits + b.lineBits
	for k := range rows {
		r := &rows[k]
		w = w.put(out, uint64(r.node)|uint64(r.line-e.node[r.node&maxNodes].base)<<b.nodeBits, width)
	}
	width = b.nodeBits + b.numberBits
	for k := range e.node[:e.made] {
		n := &e.node[k]
		w = w.put(out, uint64(n.base), b.numberBits)
		if k > 0 {
			w = w.put(out, uint64(n.parent)|uint64(n.line)<<b.nodeBits, width)
		}
	}
	w.end(out)
}

// widths sets the bases of the nodes and finds the widths that the fields need.
func (e *encoder) widths() block {
	const none = ^uint32(0)
	b := block{rows: uint(e.count), nodes: uint(e.made), nodeBits: nodeBits(uint(e.made))}
	nodes, rows := e.node[:e.made], e.rowAt[:e.count]
	for k := range nodes {
		nodes[k].base = none
	}
	var advances uint64 // all of them, or-ed: as wide as the widest, and as even
	for k := range rows {
		n := &nodes[rows[k].node]
		n.base = min(n.base, rows[k].line)
		if k > 0 {
			advances |= rows[k].addr - rows[k-1].addr
		}
	}
	var numbers uint32
	for k := range nodes {
		if nodes[k].base == none {
			nodes[k].base = 0
		}
		numbers |= nodes[k].base | nodes[k].line
	}
	var lines uint32
	for k := range rows {
		lines |= rows[k].line - nodes[rows[k].node].base
	}
	if advances != 0 {
		b.shift = min(3, uint(bits.TrailingZeros64(advances)))
	}
	b.addrBits = uint(bits.Len64(advances >> b.shift))
	b.lineBits, b.numberBits = uint(bits.Len32(lines)), uint(bits.Len32(numbers))
	return b
}
