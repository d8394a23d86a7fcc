package reel

import (
	"encoding/binary"
	"math/bits"
)

// bitWriter appends bits, the first in the highest place of a byte.
type bitWriter struct {
	b   []byte
	acc uint64 // the lower n bits wait to be written
	n   uint
}

// put appends the lower n bits of v, up to 32.
func (w *bitWriter) put(v uint64, n uint) {
	w.acc = w.acc<<n | v&(1<<n-1)
	w.n += n
	for w.n >= 8 {
		w.n -= 8
		w.b = append(w.b, byte(w.acc>>w.n))
	}
}

// wide is put of up to 64 bits.
func (w *bitWriter) wide(v uint64, n uint) {
	if n > 32 {
		w.put(v>>32, n-32)
		n = 32
	}
	w.put(v, n)
}

// unary appends so many zeros and a one.
func (w *bitWriter) unary(zeros uint) {
	for ; zeros >= 32; zeros -= 32 {
		w.put(0, 32)
	}
	w.put(1, zeros+1)
}

// gamma appends a number from 1 on (Elias gamma code).
func (w *bitWriter) gamma(v uint64) {
	n := uint(bits.Len64(v))
	w.unary(n - 1)
	w.wide(v, n-1)
}

// finish returns all, filled up to a byte with zeros.
func (w *bitWriter) finish() []byte {
	if w.n > 0 {
		w.put(0, 8-w.n)
	}
	return w.b
}

// bitReader reads what a bitWriter has written. Behind the end it reads zeros and says so by failed.
type bitReader struct {
	b      []byte
	acc    uint64 // the lower n bits come next
	n      uint
	failed bool
}

func (r *bitReader) fill(n uint) bool {
	if len(r.b) >= 4 && r.n <= 32 {
		r.acc = r.acc<<32 | uint64(binary.BigEndian.Uint32(r.b))
		r.b = r.b[4:]
		r.n += 32
		return true // nobody asks for more than 32
	}
	for r.n < n {
		if len(r.b) == 0 {
			r.failed = true
			return false
		}
		r.acc = r.acc<<8 | uint64(r.b[0])
		r.b = r.b[1:]
		r.n += 8
	}
	return true
}

// take reads up to 32 bits.
func (r *bitReader) take(n uint) uint64 {
	if r.n < n && !r.fill(n) {
		return 0
	}
	r.n -= n
	return r.acc >> r.n & (1<<n - 1)
}

// wide reads up to 64 bits.
func (r *bitReader) wide(n uint) uint64 {
	if n <= 32 {
		return r.take(n)
	}
	high := r.take(n - 32)
	return high<<32 | r.take(32)
}

// unary reads zeros up to a one, at most so many.
func (r *bitReader) unary(most uint) uint {
	zeros := uint(0)
	for {
		if r.n == 0 && !r.fill(1) {
			return 0
		}
		if rest := r.acc & (1<<r.n - 1); rest != 0 {
			first := uint(bits.Len64(rest))
			zeros += r.n - first
			r.n = first - 1
			if zeros > most {
				r.failed = true
				return 0
			}
			return zeros
		}
		zeros += r.n
		r.n = 0
		if zeros > most {
			r.failed = true
			return 0
		}
	}
}

func (r *bitReader) gamma() uint64 {
	n := r.unary(63)
	return 1<<n | r.wide(n)
}
