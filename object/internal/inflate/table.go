package inflate

import "math/bits"

// The codes of DEFLATE (RFC 1951 §3.2.5 to §3.2.7).
const (
	maxCodeLen   = 15 // bits of a literal, length or distance code
	maxLitCodes  = 288
	maxDistCodes = 32
	endOfBlock   = 256
	maxMatch     = 258

	// Of these codes the last two each have no meaning, and only the fixed ones
	// give them lengths.
	usedLitCodes  = 286
	usedDistCodes = 30
)

// The bits that one look into a table decides. 11 bits hold nearly all literals and
// lengths that are met, and the table (8 KiB) leaves room in the first-level cache;
// with 10 more codes take two looks, with 12 building takes longer than it saves.
const (
	litBits     = 11
	distBits    = 8
	codeLenBits = 7
)

// The largest tables that codes of at most 15 bits can need with the bits above: the
// root and the subtables of the worst set of code lengths.
const (
	litTableSize  = 2342
	distTableSize = 402
)

// An entry of a table says what the next bits stand for. Its low six bits are how
// many bits to drop; what else it holds depends on its kind.
//
//	literal   flagLiteral, the byte from bit 16
//	length    the length from bit 16; with flagExtra its base, and the bits of
//	          the code alone from bit 8 (the extra bits follow them)
//	distance  the base from bit 16, the bits of the code alone from bit 8
//	subtable  flagSubtable, its index bits from bit 8, its place from bit 16
//	end       flagEnd
//
// A code without a meaning, which only damaged data has, is flagBad.
type entry = uint32

const (
	flagLiteral  entry = 1 << 7
	flagSpecial  entry = 1 << 6 // any of those below
	flagExtra    entry = 1<<12 | flagSpecial
	flagSubtable entry = 1<<13 | flagSpecial
	flagEnd      entry = 1<<14 | flagSpecial
	flagBad      entry = 1<<15 | flagSpecial

	dropMask = 63
	codePos  = 8
	codeMask = 15
	valuePos = 16
)

// A symbolEntry gives a symbol's entry, but for the bits to drop, and how many extra
// bits follow its code.
type symbolEntry func(symbol int) (e entry, extra uint32)

// litEntry is the entry of a literal or length code, but for the bits to drop.
func litEntry(symbol int) (e entry, extra uint32) {
	switch {
	case symbol < endOfBlock:
		return flagLiteral | entry(symbol)<<valuePos, 0
	case symbol == endOfBlock:
		return flagEnd, 0
	case symbol < 265:
		return entry(symbol-254) << valuePos, 0
	case symbol < 285:
		extra = uint32(symbol-261) / 4
		base := 3 + (4+uint32(symbol-261)%4)<<extra
		return flagExtra | base<<valuePos, extra
	case symbol == 285:
		return maxMatch << valuePos, 0
	}
	return flagBad, 0
}

// distEntry is the entry of a distance code, but for the bits to drop.
func distEntry(symbol int) (e entry, extra uint32) {
	switch {
	case symbol < 4:
		return entry(symbol+1) << valuePos, 0
	case symbol < 30:
		extra = uint32(symbol-2) / 2
		return (1 + (2+uint32(symbol)%2)<<extra) << valuePos, extra
	}
	return flagBad, 0
}

// codeLenEntry is the entry of a code for code lengths.
func codeLenEntry(symbol int) (e entry, extra uint32) { return entry(symbol) << valuePos, 0 }

// buildTable makes the table of the canonical code with the given lengths (RFC 1951
// §3.2.2): a root of 2^rootBits entries, and subtables behind it for longer codes.
// It is false for lengths that form no code: more codes than there is room for, or
// fewer, where only a single code of one bit, or none, is let pass.
func buildTable(table []entry, lens []uint8, rootBits uint32, entryOf symbolEntry) bool {
	var count [maxCodeLen + 1]int
	for _, n := range lens {
		count[n&maxCodeLen]++
	}
	longest := maxCodeLen
	for longest > 0 && count[longest] == 0 {
		longest--
	}
	left := 1
	var place [maxCodeLen + 2]int // where the symbols of each length begin in sorted
	for n := 1; n <= maxCodeLen; n++ {
		if left = left<<1 - count[n]; left < 0 {
			return false
		}
		place[n+1] = place[n] + count[n]
	}
	if left > 0 {
		return longest <= 1 && incompleteTable(table[:1<<rootBits], lens, entryOf)
	}
	var sorted [maxLitCodes]uint16
	for symbol, n := range lens {
		if n != 0 {
			sorted[place[n&maxCodeLen]] = uint16(symbol)
			place[n&maxCodeLen]++
		}
	}
	b := builder{table: table, rootBits: rootBits, entryOf: entryOf}
	return b.fill(&count, sorted[:], longest)
}

// incompleteTable makes the table of a code with no symbol or one of one bit, which
// encoders write for a block with no distance or a single one.
func incompleteTable(root []entry, lens []uint8, entryOf symbolEntry) bool {
	e := flagBad | 1
	for symbol, n := range lens {
		if n == 1 {
			e = finish(entryOf, symbol, 1)
		}
	}
	for k := 0; k < len(root); k += 2 {
		root[k], root[k+1] = e, flagBad|1
	}
	return true
}

// finish adds the bits to drop to a symbol's entry.
func finish(entryOf symbolEntry, symbol int, codeLen uint32) entry {
	e, extra := entryOf(symbol)
	if e&flagLiteral == 0 && e&(flagSubtable|flagEnd|flagBad)&^flagSpecial == 0 {
		e |= codeLen << codePos
	}
	return e | (codeLen + extra)
}

// builder fills a table code by code, in the order of the code.
type builder struct {
	table    []entry
	rootBits uint32
	entryOf  symbolEntry
}

// fill enters all codes of a complete code. Codes are kept bit-reversed, since
// DEFLATE stores them from their most significant bit on.
func (b *builder) fill(count *[maxCodeLen + 1]int, sorted []uint16, longest int) bool {
	code, at := uint32(0), 0
	size := uint32(1)
	// The root: all codes of n bits are entered once, in a table of 2^n entries;
	// doubling the table repeats them for every value of the bits behind.
	for n := uint32(1); n <= b.rootBits; n++ {
		copy(b.table[size:2*size], b.table[:size])
		size *= 2
		for range count[n] {
			b.table[code] = finish(b.entryOf, int(sorted[at]), n)
			at++
			code = nextCode(code, n)
		}
	}
	return b.fillSubtables(count, sorted[at:], code, longest)
}

// nextCode adds one to a bit-reversed code of n bits.
func nextCode(code, n uint32) uint32 {
	unset := ^code & (1<<n - 1)
	if unset == 0 {
		return 0 // past the last code
	}
	top := uint32(1) << (31 - bits.LeadingZeros32(unset))
	return code&(top-1) | top
}

// fillSubtables enters the codes that are longer than the root's bits; code is the
// first of them. It is false for codes that do not fit, of which there are none if
// the tables' sizes are right.
func (b *builder) fillSubtables(count *[maxCodeLen + 1]int, sorted []uint16, code uint32, longest int) bool {
	end := uint32(1) << b.rootBits // of the table so far
	prefix := ^uint32(0)           // root bits of the current subtable
	var start, subBits uint32
	at := 0
	for n := b.rootBits + 1; n <= uint32(longest); n++ {
		for left := count[n]; left > 0; left-- {
			if p := code & (1<<b.rootBits - 1); p != prefix {
				prefix, start = p, end
				subBits = subtableBits(count, n, left, b.rootBits, longest)
				if end += 1 << subBits; end > uint32(len(b.table)) {
					return false
				}
				b.table[prefix] = flagSubtable | subBits<<codePos | start<<valuePos | b.rootBits
			}
			e := finish(b.entryOf, int(sorted[at]), n-b.rootBits)
			for k := code >> b.rootBits; k < 1<<subBits; k += 1 << (n - b.rootBits) {
				b.table[start+k] = e
			}
			at++
			code = nextCode(code, n)
		}
	}
	return true
}

// subtableBits is how many bits a subtable must decide, whose first code has n bits
// and left codes of that length follow: codes are entered in order, so that it is
// full when the codes from here on fill it.
func subtableBits(count *[maxCodeLen + 1]int, n uint32, left int, rootBits uint32, longest int) uint32 {
	size := n - rootBits
	free := 1<<size - left
	for free > 0 && int(size+rootBits) < longest {
		size++
		free = free<<1 - count[size+rootBits]
	}
	return size
}
