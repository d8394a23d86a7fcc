package ehtable

import (
	"errors"
	"reflect"
	"testing"
)

// memory gives what is at an address on, as an image does: all bytes asked for, or none.
func memory(start uint64, bytes []byte) func(addr, n uint64) ([]byte, error) {
	return func(addr, n uint64) ([]byte, error) {
		if addr < start || addr-start > uint64(len(bytes)) || uint64(len(bytes))-(addr-start) < n {
			return nil, errors.New("not mapped")
		}
		return bytes[addr-start:][:n], nil
	}
}

func TestCallSites(t *testing.T) {
	const at, function = 0x5000, 0x1000
	sites := func(list ...CallSite) []CallSite { return list }
	for _, test := range []struct {
		name string
		lsda string
		most int
		want []CallSite
		ok   bool
	}{
		{"gcc's", "\xff\x9b\x15\x01\x0c" + "\x04\x05\x20\x01" + "\x09\x02\x00\x00" + "\x10\x01\x30\x00" + "\xaa", 100,
			sites(CallSite{0x1004, 0x1009, 0x1020}, CallSite{0x1010, 0x1011, 0x1030}), true},
		{"of four bytes", "\xff\xff\x03\x0d" + "\x04\x00\x00\x00\x05\x00\x00\x00\x20\x00\x00\x00\x01", 100,
			sites(CallSite{0x1004, 0x1009, 0x1020}), true},
		{"with a base of its own", "\x1b\xff\x0f\x00\x00\xff\x01\x04\x04\x05\x20\x01", 100,
			sites(CallSite{0x1004, 0x1009, 0x6020}), true},
		{"empty", "\xff\xff\x01\x00", 100, nil, true},
		{"cut in a site", "\xff\xff\x01\x08" + "\x04\x05\x20\x01" + "\x09\x02", 100, sites(CallSite{0x1004, 0x1009, 0x1020}), false},
		{"cut in the head", "\xff\xff", 100, nil, false},
		{"longer than may be read", "\xff\xff\x01\x08" + "\x04\x05\x20\x01" + "\x09\x02\x30\x00", 9, sites(CallSite{0x1004, 0x1009, 0x1020}), false},
		{"ends behind all addresses", "\xff\xff\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 100, nil, false},
		{"relative to text", "\x2b\x01\x00\x00\x00\xff\x01\x00", 100, nil, false},
		{"of an unknown format", "\xff\xff\x07\x04\x04\x05\x20\x01", 100, nil, false},
	} {
		var got []CallSite
		read, ok := CallSites(at, function, test.most, memory(at, []byte(test.lsda)), func(c CallSite) { got = append(got, c) })
		if !reflect.DeepEqual(got, test.want) || ok != test.ok {
			t.Errorf("%s: %x, %v, want %x, %v", test.name, got, ok, test.want, test.ok)
		}
		if read > len(test.lsda) || (read > test.most) != (test.name == "longer than may be read") {
			t.Errorf("%s: %d bytes read of %d and at most %d", test.name, read, len(test.lsda), test.most)
		}
	}
}

// A table may be larger than what is read at once, and a number may stand across.
func TestCallSitesOfALargeTable(t *testing.T) {
	const count = 3000
	lsda := []byte("\xff\xff\x01\x98\x75") // of 5 * count bytes
	for range count {
		lsda = append(lsda, 1, 1, 0x81, 0x00, 0)
	}
	n := 0
	read, ok := CallSites(0x7000, 0x1000, 1<<20, memory(0x7000, lsda), func(c CallSite) {
		n++
		if want := (CallSite{0x1001, 0x1002, 0x1001}); c != want {
			t.Fatalf("site %d is %x", n, c)
		}
	})
	if n != count || !ok || read != len(lsda) {
		t.Errorf("%d sites of %d, %d bytes of %d, %v", n, count, read, len(lsda), ok)
	}
}

func FuzzCallSites(f *testing.F) {
	f.Add([]byte("\xff\x9b\x15\x01\x0c\x04\x05\x20\x01\x09\x02\x00\x00\x10\x01\x30\x00"), uint64(0x1000), 100)
	f.Add([]byte("\x1b\xff\x0f\x00\x00\xff\x01\x04\x04\x05\x20\x01"), uint64(1<<64-4), 100)
	f.Fuzz(func(t *testing.T, lsda []byte, at uint64, most int) {
		if most < 0 {
			return
		}
		n := 0
		read, ok := CallSites(at, 0x1000, most, memory(at, lsda), func(CallSite) { n++ })
		if read < 0 || read > len(lsda) || 4*n > read || ok && read > most {
			t.Errorf("%d sites in %d bytes of %d, at most %d, %v", n, read, len(lsda), most, ok)
		}
	})
}
