package leb128

import (
	"encoding/binary"
	"math/big"
	"testing"
)

const none = -1

func TestNumbers(t *testing.T) {
	for _, test := range []struct {
		bytes      string
		unsigned   uint64
		signed     int64
		uend, send int // of the exact ones
		end        int
	}{
		{"\x00", 0, 0, 1, 1, 1},
		{"\x3f", 63, 63, 1, 1, 1},
		{"\x40", 64, -64, 1, 1, 1},
		{"\x7f", 127, -1, 1, 1, 1},
		{"\xff\x00", 127, 127, 2, 2, 2},
		{"\x80\x7f", 127 << 7, -128, 2, 2, 2},
		{"\x80\x7f\x01", 127 << 7, -128, 2, 2, 2}, // what follows is another's
		{"\x85\x80\x80\x00", 5, 5, 4, 4, 4},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1<<64 - 1, -1, 10, none, 10},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 1<<64 - 1, -1, none, 10, 10},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", 1<<63 - 1, 1<<63 - 1, 10, 10, 10},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 1 << 63, -1 << 63, none, 10, 10},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x40", 1 << 62, -1 << 62, 9, 9, 9},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 1<<64 - 1, -1, none, 11, 11},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x3f", 1<<64 - 1, -1, none, none, 11},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 0, 0, 12, 12, 12},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81\x00", 1 << 63, -1 << 63, 11, none, 11},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 0, 0, none, none, 11},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 1<<63 - 1, 1<<63 - 1, none, none, 10},
		{"\x80\x80", 0, 0, none, none, none},
		{"", 0, 0, none, none, none},
	} {
		const before = 3
		b := append(make([]byte, before), test.bytes...)
		moved := func(end int) int { // to where the number stands in b
			if end == none {
				return none
			}
			return before + end
		}
		if v, end := Uint(b, before); v != test.unsigned || end != moved(test.end) {
			t.Errorf("Uint of %x is %#x up to %d, want %#x up to %d", test.bytes, v, end, test.unsigned, moved(test.end))
		}
		if v, end := Int(b, before); v != test.signed || end != moved(test.end) {
			t.Errorf("Int of %x is %d up to %d, want %d up to %d", test.bytes, v, end, test.signed, moved(test.end))
		}
		if end := Skip(b, before); end != moved(test.end) {
			t.Errorf("Skip of %x goes to %d, want %d", test.bytes, end, moved(test.end))
		}
		if v, end := ExactUint(b, before); end != moved(test.uend) || end >= 0 && v != test.unsigned {
			t.Errorf("ExactUint of %x is %#x up to %d, want %#x up to %d", test.bytes, v, end, test.unsigned, moved(test.uend))
		}
		if v, end := ExactInt(b, before); end != moved(test.send) || end >= 0 && v != test.signed {
			t.Errorf("ExactInt of %x is %d up to %d, want %d up to %d", test.bytes, v, end, test.signed, moved(test.send))
		}
	}
}

func TestNothingIsReadOutside(t *testing.T) {
	b := []byte{1, 2}
	for _, at := range []int{2, 3, -1, -100} {
		_, u := Uint(b, at)
		_, i := Int(b, at)
		_, xu := ExactUint(b, at)
		_, xi := ExactInt(b, at)
		if u != none || i != none || xu != none || xi != none || Skip(b, at) != none {
			t.Errorf("at %d of %d bytes stands a number", at, len(b))
		}
	}
}

// FuzzNumbers checks all readers against numbers of any size.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 0)
	f.Add([]byte("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f"), 0)
	f.Add([]byte("\x01\x85\x80\x80\x00\x40"), 1)
	f.Add([]byte("\x01"), -21)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		want, stop := new(big.Int), none
		if at >= 0 && at < len(b) {
			for k, c := range b[at:] {
				want.Or(want, new(big.Int).Lsh(big.NewInt(int64(c&0x7f)), uint(7*k)))
				if c < 0x80 {
					stop = at + k + 1
					break
				}
			}
		}
		u, uend := Uint(b, at)
		i, iend := Int(b, at)
		if uend != stop || iend != stop || Skip(b, at) != stop {
			t.Fatalf("%x from %d ends at %d, %d and %d, want %d", b, at, uend, iend, Skip(b, at), stop)
		}
		xu, xuend := ExactUint(b, at)
		xi, xiend := ExactInt(b, at)
		if stop == none {
			if xuend != none || xiend != none {
				t.Fatalf("%x from %d has no end, but ends at %d and %d", b, at, xuend, xiend)
			}
			return
		}
		low := new(big.Int).And(want, new(big.Int).SetUint64(1<<64-1)).Uint64()
		if u != low {
			t.Errorf("%x from %d: %#x, want %#x", b, at, u, low)
		}
		if want.IsUint64() != (xuend == stop) || xuend == stop && xu != low {
			t.Errorf("%x from %d: exactly %#x up to %d, want %s", b, at, xu, xuend, want)
		}
		signed := want
		if b[stop-1]&0x40 != 0 {
			signed = new(big.Int).Sub(want, new(big.Int).Lsh(big.NewInt(1), uint(7*(stop-at))))
		}
		if signed.IsInt64() != (xiend == stop) || xiend == stop && (xi != signed.Int64() || i != xi) {
			t.Errorf("%x from %d: exactly %d up to %d, and %d, want %s", b, at, xi, xiend, i, signed)
		}
	})
}

func BenchmarkUint(b *testing.B) {
	var data []byte
	for k := range uint64(1 << 12) {
		data = binary.AppendUvarint(data, k*k%300)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for at := 0; at >= 0 && at < len(data); {
			_, at = Uint(data, at)
		}
	}
}
