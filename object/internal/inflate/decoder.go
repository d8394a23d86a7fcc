package inflate

// decoder is the state between two codes.
type decoder struct {
	in   []byte
	pos  int    // of the next byte to go into bits
	bits uint64 // the next bits of the stream, the first lowest
	have uint   // how many bits of the stream are in bits, up to 63
	out  []byte
	n    int // bytes of out that are decoded
	size int // the bytes that out may grow to
	sum  uint32
	done int // bytes of out that are in sum

	fixed bool // the tables are those of the fixed codes
	lit   [litTableSize]entry
	dist  [distTableSize]entry
}

// blocks decodes the blocks of a stream (RFC 1951 §3.2.3) and leaves pos behind its
// last byte.
func (d *decoder) blocks() error {
	for last := false; !last; {
		if !d.need(3) {
			return ErrTruncated
		}
		last = d.take(1) != 0
		var err error
		switch d.take(2) {
		case 0:
			err = d.stored()
		case 1:
			d.fixedTables()
			err = d.codes()
		case 2:
			if err = d.dynamicTables(); err == nil {
				err = d.codes()
			}
		default:
			err = ErrCorrupt
		}
		if err != nil {
			return err
		}
	}
	d.pos -= int(d.have / 8)
	d.bits, d.have = 0, 0
	return nil
}

// need makes sure that n bits, up to 56, are there.
func (d *decoder) need(n uint) bool {
	for d.have < n {
		if d.pos >= len(d.in) {
			return false
		}
		d.bits |= uint64(d.in[d.pos]) << d.have
		d.pos++
		d.have += 8
	}
	return true
}

// take drops n bits, which are there, and returns them.
func (d *decoder) take(n uint) uint32 {
	v := uint32(d.bits & (1<<n - 1))
	d.bits >>= n
	d.have -= n
	return v
}

// stored copies a block that is not compressed (RFC 1951 §3.2.4).
func (d *decoder) stored() error {
	d.take(d.have % 8)
	if !d.need(32) {
		return ErrTruncated
	}
	length, check := d.take(16), d.take(16)
	if length != ^check&0xffff {
		return ErrCorrupt
	}
	d.pos -= int(d.have / 8)
	d.bits, d.have = 0, 0
	n := int(length)
	if n > len(d.in)-d.pos {
		return ErrTruncated
	}
	if !d.reserve(n) {
		return ErrTooLong
	}
	copy(d.out[d.n:], d.in[d.pos:d.pos+n])
	d.pos += n
	d.n += n
	d.check()
	return nil
}

// reserve makes sure that n more bytes can be written.
func (d *decoder) reserve(n int) bool {
	for len(d.out)-d.n < n {
		if len(d.out) == d.size {
			return false
		}
		grown := make([]byte, d.size)
		copy(grown, d.out[:d.n])
		d.out = grown
	}
	return true
}

// check adds what has been decoded since the last time to the checksum.
func (d *decoder) check() {
	d.sum = updateAdler(d.sum, d.out[d.done:d.n])
	d.done = d.n
}

// fixedTables makes the tables of the fixed codes (RFC 1951 §3.2.6), unless they are
// there from the block before: a stream may have a block of them every ten bits.
func (d *decoder) fixedTables() {
	if d.fixed {
		return
	}
	var lens [maxLitCodes + maxDistCodes]uint8
	for k := range lens {
		switch {
		case k < 144:
			lens[k] = 8
		case k < 256:
			lens[k] = 9
		case k < 280:
			lens[k] = 7
		case k < maxLitCodes:
			lens[k] = 8
		default:
			lens[k] = 5
		}
	}
	buildTable(d.lit[:], lens[:maxLitCodes], litBits, litEntry)
	d.bakeLengths()
	buildTable(d.dist[:], lens[maxLitCodes:], distBits, distEntry)
	d.fixed = true
}

// codeLenOrder is the order in which the lengths of the codes for code lengths stand.
var codeLenOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamicTables reads the tables of a block with codes of its own (RFC 1951 §3.2.7).
func (d *decoder) dynamicTables() error {
	if !d.need(14) {
		return ErrTruncated
	}
	lits, dists, codeLens := int(d.take(5))+257, int(d.take(5))+1, int(d.take(4))+4
	if lits > usedLitCodes || dists > usedDistCodes {
		return ErrCorrupt
	}
	var lens [maxLitCodes + maxDistCodes]uint8
	for k := range codeLens {
		if !d.need(3) {
			return ErrTruncated
		}
		lens[codeLenOrder[k]] = uint8(d.take(3))
	}
	// The table is made where the distances' will be, which is large enough.
	if !buildTable(d.dist[:], lens[:len(codeLenOrder)], codeLenBits, codeLenEntry) {
		return ErrCorrupt
	}
	clear(lens[:len(codeLenOrder)])
	d.fixed = false
	if err := d.readLens(lens[:lits+dists]); err != nil {
		return err
	}
	if lens[endOfBlock] == 0 || !buildTable(d.lit[:], lens[:lits], litBits, litEntry) {
		return ErrCorrupt
	}
	d.bakeLengths()
	if !buildTable(d.dist[:], lens[lits:lits+dists], distBits, distEntry) {
		return ErrCorrupt
	}
	return nil
}

// readLens reads code lengths, in which runs are coded too.
func (d *decoder) readLens(lens []uint8) error {
	for k := 0; k < len(lens); {
		// A code of 7 bits and 7 more at most; the stream may end sooner.
		d.need(14)
		e := d.dist[d.bits&(1<<codeLenBits-1)]
		if e&flagSpecial != 0 || uint(e&dropMask) > d.have {
			return d.endOr(ErrCorrupt)
		}
		d.take(uint(e & dropMask))
		var value uint8
		run := 1
		extra := uint(0)
		switch symbol := e >> valuePos; symbol {
		case 16:
			if k == 0 {
				return ErrCorrupt
			}
			value, run, extra = lens[k-1], 3, 2
		case 17:
			run, extra = 3, 3
		case 18:
			run, extra = 11, 7
		default:
			value = uint8(symbol)
		}
		if extra > d.have {
			return ErrTruncated
		}
		if run += int(d.take(extra)); run > len(lens)-k {
			return ErrCorrupt
		}
		for ; run > 0; run-- {
			lens[k] = value
			k++
		}
	}
	return nil
}

// endOr is ErrTruncated when the input has ended, which explains any other error.
func (d *decoder) endOr(err error) error {
	if d.pos >= len(d.in) {
		return ErrTruncated
	}
	return err
}

// bakeLengths completes the table of literals and lengths: the entries of lengths
// whose extra bits are within the root's bits get the length that they tell. (To put
// two literals into one entry as well costs more in making tables than it saves:
// debug information is mostly matches.)
func (d *decoder) bakeLengths() {
	for k, e := range d.lit[:1<<litBits] {
		drop := e & dropMask
		if e&flagExtra != flagExtra || drop > litBits {
			continue
		}
		code := e >> codePos & codeMask
		extra := uint32(k) >> code & (1<<(drop-code) - 1)
		d.lit[k] = (e>>valuePos+extra)<<valuePos | drop
	}
}
