package crash

import "google.golang.org/protobuf/encoding/protowire"

// field is one field of a message in Protocol Buffers: its value, or its bytes.
type field struct {
	number protowire.Number
	wire   protowire.Type
	value  uint64
	bytes  []byte
}

// fields reads a message field by field. What it returns points into it.
type fields struct {
	rest    []byte
	damaged bool
}

// next returns the next field, and false at the end, or where the message can't be read. Groups, which are no longer written, can't.
func (m *fields) next() (field, bool) {
	if len(m.rest) == 0 || m.damaged {
		return field{}, false
	}
	var f field
	var n int
	f.number, f.wire, n = protowire.ConsumeTag(m.rest)
	if n > 0 {
		m.rest = m.rest[n:]
		switch f.wire {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(m.rest)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(m.rest)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(m.rest)
			f.value = uint64(v)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(m.rest)
		default:
			n = -1
		}
	}
	if n < 0 {
		m.damaged = true
		return field{}, false
	}
	m.rest = m.rest[n:]
	return f, true
}
