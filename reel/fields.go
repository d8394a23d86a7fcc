package reel

import (
	"encoding/binary"
	"errors"
)

var errShortField = errors.New("payload ends inside a field")

func appendUvarint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// appendTagged appends a number as a tagged field: tag, length, 8 bytes
// little-endian without leading zeros.
func appendTagged(b []byte, tag uint64, v uint64) []byte {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], v)
	n := 8
	for n > 0 && raw[n-1] == 0 {
		n--
	}
	b = binary.AppendUvarint(b, tag)
	b = binary.AppendUvarint(b, uint64(n))
	return append(b, raw[:n]...)
}

func appendTaggedString(b []byte, tag uint64, s string) []byte {
	b = binary.AppendUvarint(b, tag)
	return appendString(b, s)
}

// fields reads the fields of a descriptive chunk. The first error sticks;
// every read after it returns zero, so callers check err once at the end.
type fields struct {
	b   []byte
	err error
}

func (d *fields) more() bool { return d.err == nil && len(d.b) > 0 }

func (d *fields) fail() {
	d.err = errShortField
	d.b = nil
}

func (d *fields) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// uint32 reads a varint that must fit into 32 bits.
func (d *fields) uint32() uint32 {
	v := d.uvarint()
	if v > 1<<32-1 {
		d.fail()
		return 0
	}
	return uint32(v)
}

// bytes reads a length-prefixed byte string; the result shares the payload.
func (d *fields) bytes() []byte {
	n := d.uvarint()
	if d.err != nil || n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *fields) string() string { return string(d.bytes()) }

// value is the content of a tagged field.
type value []byte

// number reads the content as an integer; bytes beyond the eighth are ignored.
func (v value) number() uint64 {
	var raw [8]byte
	copy(raw[:], v)
	return binary.LittleEndian.Uint64(raw[:])
}

func (d *fields) tagged() (tag uint64, v value) {
	tag = d.uvarint()
	return tag, d.bytes()
}
