package dwarf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/object"
)

func TestEveryKindOfRangeListEntryIsRead(t *testing.T) {
	const gone = 1<<64 - 1 // what linkers write for what they dropped
	entry := func(kind byte, operands ...[]byte) []byte { return append([]byte{kind}, slices.Concat(operands...)...) }
	for _, test := range []struct {
		name string
		list [][]byte
		want []Range
	}{
		{"startx_endx", [][]byte{entry(rleStartxEndx, leb(0), leb(1))}, []Range{{0x1000, 0x1100}}},
		{"startx_length", [][]byte{entry(rleStartxLength, leb(1), leb(0x20))}, []Range{{0x1100, 0x1120}}},
		{"start_end", [][]byte{entry(rleStartEnd, u64(0x1010), u64(0x1020))}, []Range{{0x1010, 0x1020}}},
		{"start_length", [][]byte{entry(rleStartLength, u64(0x1010), leb(0x300))}, []Range{{0x1010, 0x1310}}},
		{"offset_pair from base_address", [][]byte{entry(rleBaseAddress, u64(0x1200)), entry(rleOffsetPair, leb(1), leb(3)), entry(rleOffsetPair, leb(9), leb(0x80))},
			[]Range{{0x1201, 0x1203}, {0x1209, 0x1280}}},
		{"offset_pair from base_addressx", [][]byte{entry(rleBaseAddressx, leb(2)), entry(rleOffsetPair, leb(1), leb(3))}, []Range{{0x1201, 0x1203}}},
		{"empty ones", [][]byte{entry(rleStartEnd, u64(0x1010), u64(0x1010)), entry(rleStartLength, u64(0x1010), leb(0))}, nil},
		{"dropped code", [][]byte{entry(rleStartEnd, u64(0), u64(0x10)), entry(rleStartLength, u64(gone), leb(0x2000)), entry(rleStartLength, u64(gone-1), leb(0x2000))}, nil},
		{"offsets from dropped code", [][]byte{entry(rleBaseAddress, u64(gone)), entry(rleOffsetPair, leb(0x1002), leb(0x1004)), entry(rleBaseAddress, u64(0x1000)), entry(rleOffsetPair, leb(0), leb(4))},
			[]Range{{0x1000, 0x1004}}},
		{"no such address", [][]byte{entry(rleBaseAddressx, leb(77)), entry(rleOffsetPair, leb(1), leb(3)), entry(rleStartxLength, leb(1), leb(1))}, []Range{{0x1100, 0x1101}}},
	} {
		for _, form := range []uint64{formSecOffset, formRnglistx} {
			t.Run(fmt.Sprintf("%s, form %#x", test.name, form), func(t *testing.T) {
				h := new(handmade)
				list := append(slices.Concat(test.list...), rleEndOfList)
				// Two lists by number, of which the second is the one.
				header := len(h.unit([]byte{5, 0, 8, 0, 0, 0, 0, 0}))
				contents := append(slices.Concat([]byte{5, 0, 8, 0}, u32(2), u32(8), u32(9), []byte{rleEndOfList}), list...)
				h.more = map[string][]byte{".debug_rnglists": h.unit(contents)}
				value := attribute{attrRanges, formRnglistx, leb(1)}
				if form == formSecOffset {
					value = attribute{attrRanges, formSecOffset, u32(uint32(header + 9))}
				}
				h.entries = []handEntry{{tagSubprogram, []attribute{value}}}
				_, c := h.read(t, Options{})
				if !slices.Equal(c.Ranges, test.want) {
					t.Errorf("got %x, want %x", c.Ranges, test.want)
				}
			})
		}
	}
}

func TestRangeListsOfVersion4HaveBases(t *testing.T) {
	var list []byte
	for _, pair := range [][2]uint64{
		{0x1000, 0x1004},               // from the unit's base, which is 0
		{1<<64 - 1, 0x1100}, {4, 0x10}, // from another base
		{1<<64 - 1, 1<<64 - 2}, {0x1002, 0x1004}, // from that of dropped code
		{1<<64 - 1, 0}, {1, 1}, {0x1200, 0x1201},
		{0, 0}, {0x1300, 0x1301}, // behind the end
	} {
		list = append(append(list, u64(pair[0])...), u64(pair[1])...)
	}
	d := parseData(t, elfWith(map[string][]byte{
		".debug_info": unit4(0, []byte{1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0}), ".debug_abbrev": abbrevs, ".debug_ranges": list, ".debug_line": {0},
	}))
	var c Contents
	_ = d.Read(&d.Units()[0], &c) // of the line table, which is none
	if want := []Range{{0x1000, 0x1004}, {0x1104, 0x1110}, {0x1200, 0x1201}}; !slices.Equal(c.Ranges, want) {
		t.Errorf("got %x, want %x", c.Ranges, want)
	}
}

func TestRangeListsThatDoNotEndAreTold(t *testing.T) {
	for _, test := range []struct {
		list []byte
		says string
	}{
		{[]byte{rleStartLength, 0}, "unexpected end"},
		{[]byte{rleStartEnd, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0x10, 0, 0, 0, 0, 0, 0}, "unexpected end"},
		{[]byte{0x77, 0}, "unknown entry 0x77"},
		{nil, "outside of .debug_rnglists"},
	} {
		im, err := object.Parse("x", elfWith((&handmade{
			entries: []handEntry{{tagSubprogram, []attribute{{attrRanges, formSecOffset, u32(0)}}}}, more: map[string][]byte{".debug_rnglists": test.list},
		}).sections()))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Open(t.Context(), im, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var c Contents
		if err := d.Read(&d.Units()[0], &c); err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "dwarf: x: section .debug_info at 0x") {
			t.Errorf("error %v, want one that says %q", err, test.says)
		}
	}
}
