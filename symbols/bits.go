package symbols

import "encoding/binary"

// slack is how many bytes must follow the last bit that bitsAt reads and a bitWriter
// writes: they load and store eight at once.
const slack = 8

// maxField is the widest field that one load of eight bytes holds at any bit offset.
const maxField = 64 - 7

// bitsAt reads a field of width bits (at most maxField) at a bit offset, the least
// significant bit first. The caller has checked that slack bytes follow.
func bitsAt(b []byte, at uint64, width uint) uint64 {
	return binary.LittleEndian.Uint64(b[at>>3:]) >> (at & 7) & (1<<width - 1)
}

// A bitWriter collects fields, the least significant bit first, and hands them out
// eight bytes at a time. It is a small value, and put and full return a new one, so that
// it stays in registers: the writing of fields is a twentieth of a build.
type bitWriter struct {
	pending uint64
	count   uint // bits in pending, below 64
	at      int  // where in the bytes pending goes
}

// put adds the low width bits of v, at most maxField; v has no others. Slack bytes must
// follow the last field in out.
func (w bitWriter) put(out []byte, v uint64, width uint) bitWriter {
	w.pending |= v << w.count
	if w.count += width; w.count >= 64 {
		binary.LittleEndian.PutUint64(out[w.at:], w.pending)
		w.at += 8
		w.count -= 64
		w.pending = v >> (width - w.count)
	}
	return w
}

// end writes what is pending, with zero bits to the end of eight bytes.
func (w bitWriter) end(out []byte) { binary.LittleEndian.PutUint64(out[w.at:], w.pending) }

// bitBytes is the number of bytes that n bits take.
func bitBytes(n uint64) uint64 { return (n + 7) / 8 }
