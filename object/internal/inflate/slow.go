package inflate

// slow decodes one code near the end of the input or of the output, looking before
// each step. Bits behind the end of the input are taken as 0 until it shows that one
// of them is needed.
func (d *decoder) slow() (end bool, err error) {
	// 48 bits hold the longest length and distance.
	d.need(48)
	e := d.lit[d.bits&(1<<litBits-1)]
	if e&flagSubtable == flagSubtable {
		if e, err = d.subtable(d.lit[:], e); err != nil {
			return false, err
		}
	}
	code, ok := d.drop(e)
	switch {
	case !ok:
		return false, ErrTruncated
	case e&flagLiteral != 0:
		return false, d.literal(e)
	case e&flagEnd == flagEnd:
		return true, nil
	case e&flagBad == flagBad:
		return false, d.endOr(ErrCorrupt)
	}
	length := int(e >> valuePos)
	if e&flagExtra == flagExtra {
		length += int(code >> (e >> codePos & codeMask))
	}
	return false, d.match(length)
}

// drop takes the bits of an entry; false when they are not all there.
func (d *decoder) drop(e entry) (code uint32, ok bool) {
	n := uint(e & dropMask)
	if n > d.have {
		return 0, false
	}
	return d.take(n), true
}

// subtable looks the next bits up in the subtable of a root's entry.
func (d *decoder) subtable(table []entry, e entry) (entry, error) {
	if _, ok := d.drop(e); !ok {
		return 0, ErrTruncated
	}
	at := e>>valuePos + uint32(d.bits)&(1<<(e>>codePos&codeMask)-1)
	if at >= uint32(len(table)) {
		return 0, ErrCorrupt
	}
	return table[at], nil
}

// literal writes one byte.
func (d *decoder) literal(e entry) error {
	if !d.reserve(1) {
		return ErrTooLong
	}
	d.out[d.n] = byte(e >> valuePos)
	d.n++
	return nil
}

// match reads a distance and copies.
func (d *decoder) match(length int) error {
	e := d.dist[d.bits&(1<<distBits-1)]
	var err error
	if e&flagSubtable == flagSubtable {
		if e, err = d.subtable(d.dist[:], e); err != nil {
			return err
		}
	}
	if e&flagSpecial != 0 {
		return d.endOr(ErrCorrupt)
	}
	code, ok := d.drop(e)
	if !ok {
		return ErrTruncated
	}
	back := int(e>>valuePos) + int(code>>(e>>codePos&codeMask))
	if back > d.n {
		return ErrCorrupt
	}
	if !d.reserve(length) {
		return ErrTooLong
	}
	for end := d.n + length; d.n < end; d.n++ {
		d.out[d.n] = d.out[d.n-back]
	}
	return nil
}
