package inflate

import (
	"encoding/binary"
	"unsafe"
)

// What must be there for the fast loop to go round once without looking: input for
// two refills, and output for two literals and a match, whose copy may write up to two
// words too much.
const (
	fastInput  = 24
	fastOutput = maxMatch + 32
)

// checkEvery is after how many bytes the checksum is brought up to date: while they
// are in the cache.
const checkEvery = 32 << 10

// codes decodes the codes of one block to its end.
func (d *decoder) codes() error {
	for {
		if len(d.in)-d.pos >= fastInput && len(d.out)-d.n >= fastOutput {
			end, err := d.fast(min(len(d.out)-fastOutput, d.n+checkEvery))
			if err != nil {
				return err
			}
			d.check()
			if end {
				return nil
			}
			continue
		}
		end, err := d.slow()
		if end || err != nil {
			return err
		}
	}
}

// load reads eight bytes at an offset. The caller has checked that they are there.
// The compiler makes one instruction of it where words may be read at any address.
func load(base unsafe.Pointer, off uint) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(base, off))[:])
}

// store writes eight bytes at an offset.
func store(base unsafe.Pointer, off uint, v uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(base, off))[:], v)
}

// fast decodes codes while there is input and until out has limit bytes. It reads and
// writes through pointers, without bounds checks: each round begins with fastInput
// bytes of input, of which it takes up to 16, and ends at most maxMatch+2 bytes (and
// 16 of scratch) behind limit.
func (d *decoder) fast(limit int) (end bool, err error) {
	in, out := unsafe.Pointer(unsafe.SliceData(d.in)), unsafe.Pointer(unsafe.SliceData(d.out))
	lit, dist := &d.lit, &d.dist
	const litMask, distMask = 1<<litBits - 1, 1<<distBits - 1
	lastIn, lastOut := uint(len(d.in)-fastInput), uint(limit)
	pos, n := uint(d.pos), uint(d.n)
	bits, have := d.bits, d.have

	for pos <= lastIn && n <= lastOut {
		bits |= load(in, pos) << (have & 63)
		pos += (63 - have) >> 3
		have |= 56
		e := lit[bits&litMask]
		if e&flagLiteral != 0 {
			// Three literals of up to 11 bits each fit into the 56 bits.
			bits >>= e & dropMask
			have -= uint(e & dropMask)
			*(*byte)(unsafe.Add(out, n)) = byte(e >> valuePos)
			n++
			e = lit[bits&litMask]
			if e&flagLiteral != 0 {
				bits >>= e & dropMask
				have -= uint(e & dropMask)
				*(*byte)(unsafe.Add(out, n)) = byte(e >> valuePos)
				n++
				e = lit[bits&litMask]
				if e&flagLiteral != 0 {
					bits >>= e & dropMask
					have -= uint(e & dropMask)
					*(*byte)(unsafe.Add(out, n)) = byte(e >> valuePos)
					n++
					continue
				}
			}
			// A length and a distance take up to 48 bits.
			bits |= load(in, pos) << (have & 63)
			pos += (63 - have) >> 3
			have |= 56
		}
		length := uint(e >> valuePos)
		if e&flagSpecial != 0 {
			if e&flagSubtable == flagSubtable {
				bits >>= e & dropMask
				have -= uint(e & dropMask)
				at := e>>valuePos + uint32(bits)&(1<<(e>>codePos&codeMask)-1)
				if at >= litTableSize {
					err = ErrCorrupt
					break
				}
				e = lit[at]
				if e&flagLiteral != 0 {
					bits >>= e & dropMask
					have -= uint(e & dropMask)
					*(*byte)(unsafe.Add(out, n)) = byte(e >> valuePos)
					n++
					continue
				}
				length = uint(e >> valuePos)
			}
			if e&flagEnd == flagEnd {
				bits >>= e & dropMask
				have -= uint(e & dropMask)
				end = true
				break
			}
			if e&flagBad == flagBad {
				err = ErrCorrupt
				break
			}
			if e&flagExtra == flagExtra {
				length += uint(bits & (1<<(e&dropMask) - 1) >> (e >> codePos & codeMask))
			}
		}
		bits >>= e & dropMask
		have -= uint(e & dropMask)

		e = dist[bits&distMask]
		if e&flagSpecial != 0 {
			if e&flagSubtable != flagSubtable {
				err = ErrCorrupt
				break
			}
			bits >>= e & dropMask
			have -= uint(e & dropMask)
			at := e>>valuePos + uint32(bits)&(1<<(e>>codePos&codeMask)-1)
			if at >= distTableSize || dist[at]&flagSpecial != 0 {
				err = ErrCorrupt
				break
			}
			e = dist[at]
		}
		back := uint(e>>valuePos) + uint(bits&(1<<(e&dropMask)-1)>>(e>>codePos&codeMask))
		bits >>= e & dropMask
		have -= uint(e & dropMask)
		if back > n {
			err = ErrCorrupt
			break
		}

		from, to := n-back, n
		n += length
		if back >= 8 {
			store(out, to, load(out, from))
			store(out, to+8, load(out, from+8))
			for to += 16; to < n; to += 16 {
				from += 16
				store(out, to, load(out, from))
				store(out, to+8, load(out, from+8))
			}
			continue
		}
		if back == 1 {
			word := uint64(*(*byte)(unsafe.Add(out, from))) * 0x0101010101010101
			for ; to < n; to += 8 {
				store(out, to, word)
			}
			continue
		}
		// Eight bytes at once, of which the first back are right: the step is by that.
		for ; to < n; to += back {
			store(out, to, load(out, from))
			from += back
		}
	}
	d.pos, d.n, d.bits, d.have = int(pos), int(n), bits&(1<<have-1), have
	return end, err
}
