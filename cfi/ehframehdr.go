package cfi

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/callreel/callreel/internal/ehtable"
)

// Header is a parsed .eh_frame_hdr: the table by which an unwinder finds an FDE
// without reading all of them (LSB Core 5.0 §10.6.2).
type Header struct {
	Version    uint8  // 1
	EHFramePtr uint64 // link address of .eh_frame
	Entries    []HeaderEntry
}

// HeaderEntry is one line of the search table.
type HeaderEntry struct {
	Start uint64 // link address where the FDE's code starts
	FDE   uint64 // link address of the FDE
}

// ParseEHFrameHdr reads an .eh_frame_hdr section that is loaded at the link address
// addr. Entries are in the file's order, which should be that of their addresses; a
// header without a table has none.
func ParseEHFrameHdr(data []byte, addr uint64, opt Options) (*Header, error) {
	src, err := newSource(data, addr, opt)
	if err != nil {
		return nil, err
	}
	src.part = ".eh_frame_hdr"
	h, err := src.header()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.where(), err)
	}
	return h, nil
}

var errHeaderTruncated = errors.New("ends too early")

func (s *source) header() (*Header, error) {
	if len(s.data) < 4 {
		return nil, errHeaderTruncated
	}
	version := s.data[0]
	ptrEnc, countEnc, tableEnc := ehtable.Encoding(s.data[1]), ehtable.Encoding(s.data[2]), ehtable.Encoding(s.data[3])
	if version != 1 {
		return nil, fmt.Errorf("version %d, want 1", version)
	}
	h := &Header{Version: version}
	c := cursor{data: s.data, at: 4, order: s.order}
	b := s.bases
	b.Data = s.addr // datarel means relative to the header here
	var ok bool
	if ptrEnc != ehtable.Omit {
		if h.EHFramePtr, ok = c.pointer(ptrEnc, &b); !ok {
			return nil, fmt.Errorf("pointer to .eh_frame with encoding %#x: %w", ptrEnc, errHeaderTruncated)
		}
	}
	if countEnc == ehtable.Omit || tableEnc == ehtable.Omit {
		return h, nil
	}
	count, ok := c.pointer(countEnc, &b)
	if !ok {
		return nil, fmt.Errorf("count with encoding %#x: %w", countEnc, errHeaderTruncated)
	}
	// The shortest entry has two bytes, so the bytes bound what is taken.
	if count > uint64(c.remaining())/2 || count > math.MaxInt32 {
		return nil, fmt.Errorf("%d entries do not fit into %d bytes", count, c.remaining())
	}
	h.Entries = make([]HeaderEntry, count)
	for k := range h.Entries {
		e := &h.Entries[k]
		var ok2 bool
		e.Start, ok = c.pointer(tableEnc, &b)
		e.FDE, ok2 = c.pointer(tableEnc, &b)
		if !ok || !ok2 {
			return nil, fmt.Errorf("entry %d with encoding %#x: %w", k, tableEnc, errHeaderTruncated)
		}
	}
	return h, nil
}

// Find returns the entry of the FDE that may describe the code at pc: the last one
// that starts at or before it. The FDE itself knows where its code ends.
func (h *Header) Find(pc uint64) (HeaderEntry, bool) {
	k := sort.Search(len(h.Entries), func(k int) bool { return h.Entries[k].Start > pc })
	if k == 0 {
		return HeaderEntry{}, false
	}
	return h.Entries[k-1], true
}
