package cfi

import (
	"encoding/binary"
	"testing"
)

// builder writes an .eh_frame or .debug_frame section for a test.
type builder struct {
	order binary.AppendByteOrder
	opt   Options
	addr  uint64
	eh    bool
	wide  bool // 64-bit DWARF
	data  []byte
}

func newBuilder() *builder {
	return &builder{order: binary.LittleEndian, opt: Options{ByteOrder: binary.LittleEndian, AddrSize: 8}, eh: true}
}

func (b *builder) word(out []byte, v uint64) []byte {
	if b.opt.AddrSize == 4 {
		return b.order.AppendUint32(out, uint32(v))
	}
	return b.order.AppendUint64(out, v)
}

// id appends a CIE ID or pointer.
func (b *builder) id(out []byte, v uint64) []byte {
	if b.wide && !b.eh {
		return b.order.AppendUint64(out, v)
	}
	return b.order.AppendUint32(out, uint32(v))
}

// record appends a record with its length and returns its offset.
func (b *builder) record(body []byte) uint64 {
	at := uint64(len(b.data))
	if b.wide {
		b.data = b.order.AppendUint32(b.data, 0xffffffff)
		b.data = b.order.AppendUint64(b.data, uint64(len(body)))
	} else {
		b.data = b.order.AppendUint32(b.data, uint32(len(body)))
	}
	b.data = append(b.data, body...)
	return at
}

// cie appends a CIE whose augmentation needs no data.
func (b *builder) cie(version uint8, augmentation string, codeAlign, dataAlign int8, ra uint8, program []byte) uint64 {
	id := uint64(0)
	if !b.eh {
		id = 1<<64 - 1
	}
	body := append(b.id(nil, id), version)
	body = append(append(body, augmentation...), 0)
	if version == 4 {
		body = append(body, byte(b.opt.AddrSize), 0)
	}
	body = append(body, byte(codeAlign)&0x7f, byte(dataAlign)&0x7f, ra)
	return b.record(append(body, program...))
}

// cieZ appends a CIE with a 'z' augmentation and its data.
func (b *builder) cieZ(augmentation string, aug, program []byte) uint64 {
	body := append(b.id(nil, 0), 1)
	body = append(append(body, augmentation...), 0)
	body = append(body, 1, 0x78, 16, byte(len(aug))) // code 1, data -8, RA 16
	return b.record(append(append(body, aug...), program...))
}

// fde appends an FDE with absolute addresses.
func (b *builder) fde(cie, start, length uint64, program ...byte) uint64 {
	body := b.word(b.word(b.id(nil, b.back(cie)), start), length)
	return b.record(append(body, program...))
}

// back gives what leads from the next record to its CIE.
func (b *builder) back(cie uint64) uint64 {
	if !b.eh {
		return cie
	}
	head := uint64(4)
	if b.wide {
		head = 12
	}
	return uint64(len(b.data)) + head - cie
}

func (b *builder) table(t testing.TB) *Table {
	t.Helper()
	read := ParseDebugFrame
	if b.eh {
		read = ParseEHFrame
	}
	table, err := read(b.data, b.addr, b.opt)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// parse parses what must be undamaged.
func (b *builder) parse(t testing.TB) *Table {
	t.Helper()
	table := b.table(t)
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	return table
}
