package object

import "testing"

func TestSlideOfAMapping(t *testing.T) {
	code := Segment{Type: SegmentLoad, Addr: 0x3420, Off: 0x2420, FileSize: 0x2000}
	for _, test := range []struct {
		name          string
		segment       Segment
		start, offset uint64
		want          uint64
		ok            bool
	}{
		{"its first page", code, 0x7f0000003000, 0x2000, 0x7f0000000000, true},
		{"a later page", code, 0x7f0000005000, 0x4000, 0x7f0000000000, true},
		{"the page before", code, 0x7f0000002000, 0x1000, 0, false},
		{"the page behind", code, 0x7f0000006000, 0x5000, 0, false},
		{"below the link address", code, 0x1000, 0x2000, 1<<64 - 0x2000, true},
		{"no bytes of the file", Segment{Type: SegmentLoad, Addr: 0x3420, Off: 0x2420}, 0x7f0000003000, 0x2000, 0x7f0000000000, true},
		{"not loaded", Segment{Type: SegmentNote, Addr: 0x3420, Off: 0x2420, FileSize: 0x2000}, 0x7f0000003000, 0x2000, 0, false},
	} {
		if got, ok := test.segment.Slide(test.start, test.offset); got != test.want || ok != test.ok {
			t.Errorf("%s: %#x, %v, want %#x, %v", test.name, got, ok, test.want, test.ok)
		}
	}
	if from := code.MappedFrom(); from != 0x2000 {
		t.Errorf("it is mapped from %#x", from)
	}
}
