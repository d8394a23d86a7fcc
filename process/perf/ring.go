package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errRing = errors.New("ring is damaged")

// ring is the data part of a ring, whose size is a power of two. Positions count on
// without end.
type ring struct {
	data    []byte
	tail    uint64
	wrapped []byte // a record that begins at the end of data and goes on at its start
}

// take calls fn with each record up to head. The records stay as they are until the
// kernel is told that the ring has room again. Records are aligned to 8 bytes, so that
// a header never wraps.
func (r *ring) take(head uint64, fn func(record []byte)) error {
	size := uint64(len(r.data))
	for r.tail != head {
		unread := head - r.tail
		at := r.tail & (size - 1)
		if unread > size || unread < headerSize || size-at < headerSize {
			r.tail = head
			return fmt.Errorf("perf: %w: %d bytes of %d are used", errRing, unread, size)
		}
		n := uint64(binary.NativeEndian.Uint16(r.data[at+6:]))
		if n < headerSize || n > unread {
			r.tail = head
			return fmt.Errorf("perf: %w: record of %d bytes at %#x", errRing, n, at)
		}
		if at+n <= size {
			fn(r.data[at : at+n])
		} else {
			// There is one at most between tail and head.
			r.wrapped = append(append(r.wrapped[:0], r.data[at:]...), r.data[:at+n-size]...)
			fn(r.wrapped)
		}
		r.tail += n
	}
	return nil
}
