package timeline

import (
	"encoding/binary"
	"errors"
)

var errBlock = errors.New("a summary in the index is damaged")

// wire reads uvarints. The first error sticks, and everything after it is 0.
type wire struct {
	b   []byte
	bad bool
}

func (w *wire) uvarint() uint64 {
	if len(w.b) > 0 && w.b[0] < 0x80 {
		v := w.b[0]
		w.b = w.b[1:]
		return uint64(v)
	}
	return w.long()
}

func (w *wire) long() uint64 {
	v, n := binary.Uvarint(w.b)
	if n <= 0 {
		w.fail()
		return 0
	}
	w.b = w.b[n:]
	return v
}

func (w *wire) fail() { w.b, w.bad = nil, true }

// atMost is a number no larger than limit.
func (w *wire) atMost(limit uint64) uint64 {
	v := w.uvarint()
	if v > limit {
		w.fail()
		return 0
	}
	return v
}
