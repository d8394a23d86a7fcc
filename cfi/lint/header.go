package lint

import (
	"fmt"
	"sort"

	"github.com/callreel/callreel/cfi"
)

// maxHeader bounds the findings about .eh_frame_hdr: one that belongs to other tables has one for each FDE.
const maxHeader = 100

// header compares .eh_frame_hdr with the FDEs.
func (l *linter) header(hdr cfi.Section) {
	left := maxHeader
	report := func(addr uint64, says, truth string) {
		if left--; left >= 0 {
			l.add(Finding{Kind: WrongHeader, Address: addr, Says: says, Truth: truth})
		}
	}
	opt := cfi.Options{ByteOrder: l.im.ByteOrder, AddrSize: l.im.Class.AddrSize(), Name: l.im.Name()}
	h, err := cfi.ParseEHFrameHdr(hdr.Data, hdr.Addr, opt)
	if err != nil {
		report(hdr.Addr, err.Error(), "the header cannot be read")
		return
	}
	base := l.table.Addr()
	if h.EHFramePtr != base {
		report(hdr.Addr, fmt.Sprintf(".eh_frame is at %#x", h.EHFramePtr), fmt.Sprintf(".eh_frame is at %#x", base))
		return
	}
	if len(h.Entries) == 0 {
		return // without a table unwinders read all FDEs
	}
	l.headerEntries(h, base, report)
}

// headerEntries compares each entry with the FDE that it names, and looks for FDEs that have none.
func (l *linter) headerEntries(h *cfi.Header, base uint64, report func(addr uint64, says, truth string)) {
	starts := make(map[uint64]uint64, len(l.fdes)) // by the FDE's address
	for k := range l.fdes {
		starts[base+l.fdes[k].Offset] = l.fdes[k].Start
	}
	for k, e := range h.Entries {
		start, ok := starts[e.FDE]
		switch {
		case !ok:
			report(e.Start, fmt.Sprintf("entry %d names an FDE at %#x", k, e.FDE), "no FDE is there")
		case start != e.Start:
			report(e.Start, fmt.Sprintf("entry %d: the FDE at %#x begins at %#x", k, e.FDE, e.Start), fmt.Sprintf("it begins at %#x", start))
		}
		if k > 0 && e.Start < h.Entries[k-1].Start {
			report(e.Start, fmt.Sprintf("entry %d begins before entry %d", k, k-1), "unwinders search a sorted table")
		}
	}
	listed := make([]uint64, len(h.Entries))
	for k, e := range h.Entries {
		listed[k] = e.Start
	}
	sort.Slice(listed, func(a, b int) bool { return listed[a] < listed[b] })
	for k := range l.fdes {
		f := &l.fdes[k]
		at := sort.Search(len(listed), func(n int) bool { return listed[n] >= f.Start })
		if f.Start < f.End && (at == len(listed) || listed[at] != f.Start) {
			report(f.Start, "no entry", fmt.Sprintf("an FDE for %#x..%#x", f.Start, f.End))
		}
	}
}
