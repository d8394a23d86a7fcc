package ehtable

import (
	"encoding/binary"
	"testing"
)

func TestPointers(t *testing.T) {
	// The pointer stands at 0x1004; text is at 0x2000, data at 0x3000, the function at 0x4000.
	eight := Bases{Section: 0x1000, Text: 0x2000, Data: 0x3000, Function: 0x4000, Size: 8}
	four := eight
	four.Size = 4
	big := binary.ByteOrder(binary.BigEndian)
	for _, test := range []struct {
		bases *Bases
		order binary.ByteOrder
		enc   Encoding
		bytes string
		want  uint64
		ok    bool
	}{
		{&eight, nil, AbsPtr, "\x10\x20\x00\x00\x00\x00\x00\x00", 0x2010, true},
		{&eight, nil, ULEB, "\x90\x40", 0x2010, true},
		{&eight, nil, SLEB, "\x7f", 1<<64 - 1, true},
		{&eight, nil, UData2, "\xfe\xff", 0xfffe, true},
		{&eight, nil, SData2, "\xfe\xff", 1<<64 - 2, true},
		{&eight, nil, UData4, "\xfe\xff\xff\xff", 0xfffffffe, true},
		{&eight, nil, SData4, "\xfe\xff\xff\xff", 1<<64 - 2, true},
		{&eight, nil, UData8, "\x01\x00\x00\x00\x00\x00\x00\x80", 1<<63 + 1, true},
		{&eight, nil, SData8, "\xff\xff\xff\xff\xff\xff\xff\xff", 1<<64 - 1, true},
		{&eight, nil, Signed, "\xff\xff\xff\xff\xff\xff\xff\xff", 1<<64 - 1, true},
		{&eight, nil, PCRel | SData4, "\xfc\xff\xff\xff", 0x1000, true},
		{&eight, nil, TextRel | UData2, "\x10\x00", 0x2010, true},
		{&eight, nil, DataRel | SData4, "\xf0\xff\xff\xff", 0x2ff0, true},
		{&eight, nil, FuncRel | UData2, "\x04\x00", 0x4004, true},
		{&eight, nil, Aligned, "\xaa\xaa\xaa\xaa\x10\x20\x00\x00\x00\x00\x00\x00", 0x2010, true},
		{&eight, nil, PCRel | SData4, "\x00\x00\x00\x00", 0, true}, // none
		{&eight, nil, Indirect | PCRel | SData4, "\xfc\xff\xff\xff", 0x1000, true},
		{&eight, big, PCRel | SData4, "\xff\xff\xff\xfc", 0x1000, true},
		{&four, nil, AbsPtr, "\x10\x20\x00\x00", 0x2010, true},
		{&four, nil, Aligned, "\x10\x20\x00\x00", 0x2010, true},
		{&four, nil, Signed | PCRel, "\x00\xe0\xff\xff", 0xfffff004, true}, // wraps
		{&eight, nil, UData4, "\x01\x02\x03", 0, false},
		{&eight, nil, UData8, "", 0, false},
		{&eight, nil, ULEB, "\x80", 0, false},
		{&eight, nil, SLEB, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 0, false},
		{&eight, nil, Aligned, "\xaa\xaa", 0, false},
		{&eight, nil, 0x05, "\x01\x02\x03\x04\x05\x06\x07\x08", 0, false},
		{&eight, nil, 0x60 | UData4, "\x01\x02\x03\x04", 0, false},
		{&eight, nil, Omit, "\x01\x02\x03\x04\x05\x06\x07\x08", 0, false},
	} {
		order := test.order
		if order == nil {
			order = binary.LittleEndian
		}
		data := append(make([]byte, 4), test.bytes...)
		got, end := test.bases.Pointer(data, 4, order, test.enc)
		if (end >= 0) != test.ok || test.ok && (got != test.want || end != len(data)) {
			t.Errorf("encoding %#x of %x: %#x up to %d, want %#x, %v", test.enc, test.bytes, got, end, test.want, test.ok)
		}
	}
}

func FuzzPointer(f *testing.F) {
	f.Add([]byte("\xfc\xff\xff\xff"), 0, byte(PCRel|SData4), uint64(0x1000), false)
	f.Add([]byte("\x00\x10\x20\x00\x00\x00\x00\x00\x00"), 1, byte(Aligned), uint64(0x1001), false)
	f.Add([]byte("\x10\x20\x00\x00"), -3, byte(Aligned), uint64(0x1001), true)
	f.Add([]byte("\x90\x40"), 0, byte(ULEB), uint64(1<<63), true)
	f.Fuzz(func(t *testing.T, data []byte, at int, enc byte, section uint64, small bool) {
		b := Bases{Section: section, Text: 1 << 20, Data: 1 << 40, Function: 1 << 60, Size: 8}
		if small {
			b.Size = 4
		}
		v, end := b.Pointer(data, at, binary.LittleEndian, Encoding(enc))
		if end < 0 {
			return
		}
		if at < 0 || end <= at || end > len(data) {
			t.Errorf("a pointer at %d of %d bytes ends at %d", at, len(data), end)
		}
		if again, same := b.Pointer(data[:end], at, binary.LittleEndian, Encoding(enc)); again != v || same != end {
			t.Errorf("%#x up to %d, but %#x up to %d without what follows", v, end, again, same)
		}
	})
}
