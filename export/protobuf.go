package export

import "encoding/binary"

// protobuf is a message in the wire format of Protocol Buffers, as far as a profile needs
// it (Protocol Buffers documentation, "Encoding").
type protobuf []byte

// Wire types.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

func (p *protobuf) varint(v uint64) { *p = binary.AppendUvarint(*p, v) }

// number appends a field, unless it has its default.
func (p *protobuf) number(field, v uint64) {
	if v != 0 {
		p.varint(field<<3 | wireVarint)
		p.varint(v)
	}
}

// bytes appends a message, or packed numbers.
func (p *protobuf) bytes(field uint64, b []byte) {
	p.varint(field<<3 | wireBytes)
	p.varint(uint64(len(b)))
	*p = append(*p, b...)
}

// text appends a string, also when it is empty.
func (p *protobuf) text(field uint64, s string) {
	p.varint(field<<3 | wireBytes)
	p.varint(uint64(len(s)))
	*p = append(*p, s...)
}
