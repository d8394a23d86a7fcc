package ehtable

import (
	"encoding/binary"

	"github.com/callreel/callreel/internal/leb128"
)

// A CallSite is a range of a function's code whose calls may be left by an exception, and where that goes on.
type CallSite struct {
	Start, End uint64 // addresses
	Pad        uint64 // address
}

// CallSites calls visit with those call sites of a function that have a landing pad, in the order of the table in its
// language-specific data at the address lsda. The data is that of a little-endian processor of 64 bits; readAddr gives n
// bytes at an address, or an error where there are fewer. It returns how many bytes it has read, which is more than most
// when they were too many, and whether it could read all; what it has visited before stays.
func CallSites(lsda, function uint64, most int, readAddr func(addr, n uint64) ([]byte, error), visit func(CallSite)) (read int, ok bool) {
	r := reader{readAddr: readAddr, at: lsda, budget: most}
	base := function
	if enc := Encoding(r.byte()); enc != Omit {
		base = r.pointer(enc)
	}
	if Encoding(r.byte()) != Omit {
		r.uint() // where the types end
	}
	format := Encoding(r.byte()).Format()
	size := r.uint()
	end := r.at + size
	if end < r.at {
		r.failed = true
	}
	for r.at < end && !r.failed {
		start := r.pointer(format)
		length := r.pointer(format)
		pad := r.pointer(format)
		r.uint() // the action
		if pad != 0 && !r.failed {
			visit(CallSite{Start: function + start, End: function + start + length, Pad: base + pad})
		}
	}
	return most - r.budget, !r.failed
}

// reader reads on through memory; after a failure it gives zeros.
type reader struct {
	readAddr func(addr, n uint64) ([]byte, error)
	at       uint64
	budget   int    // so many bytes may still be read
	ahead    []byte // what follows, as far as it is known
	failed   bool
}

// aheadMost is how many bytes are read at once, where as many are there.
const aheadMost = 4096

// more reads anew what follows, at least n bytes.
func (r *reader) more(n int) bool {
	for size := uint64(aheadMost); !r.failed; size /= 2 { // what is mapped may end soon
		if b, err := r.readAddr(r.at, size); err == nil {
			r.ahead = b
			break
		}
		if size <= uint64(n) {
			break
		}
	}
	return len(r.ahead) >= n
}

// take steps over n bytes of those ahead; n is negative for what could not be read.
func (r *reader) take(n int) bool {
	if r.failed = r.failed || n < 0; r.failed {
		return false
	}
	if r.budget -= n; r.budget < 0 {
		r.failed = true
		return false
	}
	r.ahead = r.ahead[n:]
	r.at += uint64(n)
	return true
}

func (r *reader) byte() byte {
	if len(r.ahead) == 0 && !r.more(1) {
		r.failed = true
		return 0
	}
	b := r.ahead[0]
	if !r.take(1) {
		return 0
	}
	return b
}

func (r *reader) uint() uint64 {
	v, n := leb128.ExactUint(r.ahead, 0)
	if n < 0 && r.more(len(r.ahead)+1) {
		v, n = leb128.ExactUint(r.ahead, 0)
	}
	if !r.take(n) {
		return 0
	}
	return v
}

// pointer reads a value that is relative to nothing or to its own place, as compilers write them here.
func (r *reader) pointer(enc Encoding) uint64 {
	if relation := enc.Relation(); relation != 0 && relation != PCRel {
		r.failed = true
		return 0
	}
	bases := Bases{Section: r.at, Size: 8}
	v, n := bases.Pointer(r.ahead, 0, binary.LittleEndian, enc)
	if n < 0 && r.more(len(r.ahead)+1) {
		v, n = bases.Pointer(r.ahead, 0, binary.LittleEndian, enc)
	}
	if !r.take(n) {
		return 0
	}
	return v
}
