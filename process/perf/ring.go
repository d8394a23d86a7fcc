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
// kernel is told that the ring has room again.
func (r *ring) take(head uint64, fn func(record []byte)) error {
	for r.tail != head {
		record, err := r.peek(head)
		if err != nil {
			r.tail = head
			return err
		}
		fn(record)
		r.tail += uint64(len(record))
	}
	return nil
}

// peek is the record at the tail, which is before head. Records are aligned to 8 bytes,
// so that a header never wraps.
func (r *ring) peek(head uint64) ([]byte, error) {
	size := uint64(len(r.data))
	unread := head - r.tail
	at := r.tail & (size - 1)
	if unread > size || unread < headerSize || size-at < headerSize {
		return nil, fmt.Errorf("perf: %w: %d bytes of %d are used", errRing, unread, size)
	}
	n := uint64(binary.NativeEndian.Uint16(r.data[at+6:]))
	if n < headerSize || n > unread {
		return nil, fmt.Errorf("perf: %w: record of %d bytes at %#x", errRing, n, at)
	}
	if at+n <= size {
		return r.data[at : at+n], nil
	}
	// There is one at most between tail and head.
	r.wrapped = append(append(r.wrapped[:0], r.data[at:]...), r.data[:at+n-size]...)
	return r.wrapped, nil
}
