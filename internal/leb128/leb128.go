// Package leb128 reads the numbers of seven bits a byte, the lowest first, that DWARF, CFI, Mach-O and Go's tables are
// written in (DWARF 5 §7.6). It trusts no byte: a number that runs past the end is told, and nothing is read behind it.
package leb128

// Uint reads the unsigned number at b[at] and returns where it ends, -1 when it does not end. Bits above the 64th are
// dropped: producers pad with zeros.
func Uint(b []byte, at int) (v uint64, end int) {
	if uint(at) < uint(len(b)) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	for shift := uint(0); uint(at) < uint(len(b)); shift += 7 {
		c := b[at]
		at++
		v |= uint64(c&0x7f) << shift // a shift of 64 or more gives 0
		if c < 0x80 {
			return v, at
		}
	}
	return 0, -1
}

// Int reads a signed number in the same way.
func Int(b []byte, at int) (v int64, end int) {
	for shift := uint(0); uint(at) < uint(len(b)); {
		c := b[at]
		at++
		v |= int64(c&0x7f) << shift
		shift += 7
		if c < 0x80 {
			if shift < 64 && c&0x40 != 0 {
				v |= -1 << shift
			}
			return v, at
		}
	}
	return 0, -1
}

// Skip returns where the number at b[at] ends, -1 when it does not end.
func Skip(b []byte, at int) int {
	for uint(at) < uint(len(b)) {
		if b[at] < 0x80 {
			return at + 1
		}
		at++
	}
	return -1
}

// short is how many bytes hold no more than 64 bits.
const short = 9

// ExactUint is Uint, but a number that does not fit into 64 bits is none: end is then -1 too.
func ExactUint(b []byte, at int) (v uint64, end int) {
	v, end = Uint(b, at)
	if end < 0 || end-at <= short {
		return v, end
	}
	for k, c := range b[at+short : end] {
		if low := c & 0x7f; low > 1 || k > 0 && low != 0 {
			return 0, -1
		}
	}
	return v, end
}

// ExactInt is Int, but a number that does not fit into 64 bits is none: what stands behind the 64th bit may only
// repeat the sign.
func ExactInt(b []byte, at int) (v int64, end int) {
	v, end = Int(b, at)
	if end < 0 || end-at <= short {
		return v, end
	}
	sign := byte(v>>63) & 0x7f
	for _, c := range b[at+short : end] {
		if c&0x7f != sign {
			return 0, -1
		}
	}
	return v, end
}
