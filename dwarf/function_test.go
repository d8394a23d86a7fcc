package dwarf

import (
	"fmt"
	"testing"
)

func TestFunctionsInFunctionsKeepTheirInlinedCallsApart(t *testing.T) {
	const gone = 0 // no code lies there
	open := func(low uint64) []byte { return append(append([]byte{4}, u64(low)...), 0x10) }
	call := func(low uint64, line byte) []byte { return append(append([]byte{6}, u64(low)...), 1, line) }
	end, group := []byte{0}, []byte{5}
	for _, test := range []struct {
		name    string
		entries [][]byte
		want    string // each function's start, then its calls' lines and depths
	}{
		{"one in another", [][]byte{open(0x1000), call(0x1000, 1), open(0x1100), call(0x1100, 2), end, call(0x1004, 3), end}, "1000: 1/1 3/1; 1100: 2/1; "},
		{"three deep", [][]byte{open(0x1000), open(0x1100), call(0x1100, 1), open(0x1200), call(0x1200, 2), end, call(0x1104, 3), end, call(0x1004, 4), end},
			"1000: 4/1; 1100: 1/1 3/1; 1200: 2/1; "},
		{"in one that was dropped, in another", [][]byte{open(0x1000), call(0x1000, 1), open(gone), call(0x1000, 9), open(0x1100), call(0x1100, 2), end, end, call(0x1004, 3), end},
			"1000: 1/1 3/1; 1100: 2/1; "},
		{"in one that was dropped", [][]byte{open(gone), call(0x1000, 9), open(0x1100), call(0x1100, 2), end, end, open(0x1200), call(0x1200, 3), end}, "1100: 2/1; 1200: 3/1; "},
		{"in an inlined call", [][]byte{open(0x1000), group, call(0x1000, 1), open(0x1100), call(0x1100, 2), end, call(0x1004, 3), end, end}, "1000: 0/1 1/2 3/2; 1100: 2/1; "},
		{"calls without code", [][]byte{open(0x1000), group, group, end, end, call(0x1000, 1), group, call(0, 9), end, end}, "1000: 1/1; "},
	} {
		t.Run(test.name, func(t *testing.T) {
			entries := []byte{1, 0, 0, 0, 0}
			for _, e := range test.entries {
				entries = append(entries, e...)
			}
			d := parseData(t, elfWith(map[string][]byte{
				".debug_info": unit4(0, append(entries, 0)), ".debug_abbrev": abbrevs, ".debug_line": lineTable(3, 1, 1, 13, nil),
			}))
			var c Contents
			if err := d.Read(&d.Units()[0], &c); err != nil {
				t.Error(err)
			}
			checkContents(t, d, &c)
			got := ""
			for _, f := range c.Functions {
				got += fmt.Sprintf("%x:", c.Ranges[f.Ranges.First].Low)
				for _, call := range c.Inlines[f.Inlines.First:][:f.Inlines.Count] {
					got += fmt.Sprintf(" %d/%d", call.CallLine, call.Depth)
				}
				got += "; "
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
