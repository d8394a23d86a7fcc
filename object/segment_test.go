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
		if got, ok := test.segment.Slide(test.start, test.offset, 0); got != test.want || ok != test.ok {
			t.Errorf("%s: %#x, %v, want %#x, %v", test.name, got, ok, test.want, test.ok)
		}
	}
	if from := code.MappedFrom(0); from != 0x2000 {
		t.Errorf("it is mapped from %#x", from)
	}
}

// With larger pages more of the file is mapped in front of a segment, up to the beginning of its page.
func TestSlideOfAMappingByLargerPages(t *testing.T) {
	const slide = 0xAAAA_0000_0000
	data := Segment{Type: SegmentLoad, Addr: 0x2FCE8, Off: 0x1FCE8, FileSize: 0x400}
	for page, offset := range map[uint64]uint64{0: 0x1F000, 4 << 10: 0x1F000, 16 << 10: 0x1C000, MaxPageSize: 0x10000} {
		if from := data.MappedFrom(page); from != offset {
			t.Errorf("pages of %#x: it is mapped from %#x, not %#x", page, from, offset)
		}
		start := slide + data.Addr - data.Off + offset
		if got, ok := data.Slide(start, offset, page); !ok || got != slide {
			t.Errorf("pages of %#x: %#x, %v", page, got, ok)
		}
		if got, ok := data.Slide(start-1, offset-1, page); ok {
			t.Errorf("pages of %#x: what is mapped from before that page has the slide %#x", page, got)
		}
	}
}
