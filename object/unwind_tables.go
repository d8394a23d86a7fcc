package object

import (
	"debug/elf"
	"math"

	"github.com/callreel/callreel/internal/ehtable"
)

// EHFrame returns the image's .eh_frame (__TEXT,__eh_frame of Mach-O) and its link
// address; nothing and no error when it has none. Without section headers it is found through the
// PT_GNU_EH_FRAME segment, and then ends before its terminating zero length.
func (i *Image) EHFrame() (data []byte, addr uint64, err error) {
	if s := i.filledSection(".eh_frame"); s != nil {
		data, err = i.SectionData(s)
		return data, s.Addr, err
	}
	if len(i.sections) > 0 {
		return nil, 0, nil
	}
	hdr, hdrAddr, err := i.EHFrameHdr()
	if err != nil || hdr == nil {
		return nil, 0, err
	}
	addr, ok := i.ehFramePointer(hdr, hdrAddr)
	if !ok {
		return nil, 0, i.errorf(".eh_frame_hdr at address %#x: cannot read its pointer to .eh_frame", hdrAddr)
	}
	off, available := i.fromAddr(addr)
	if available == 0 {
		return nil, 0, i.errorf(".eh_frame_hdr at address %#x: .eh_frame at %#x: %w", hdrAddr, addr, ErrNotMapped)
	}
	end, err := i.recordsEnd(off, available)
	if err == nil {
		data, err = i.slice(off, end)
	}
	if err != nil {
		return nil, 0, i.errorf(".eh_frame at address %#x: bytes %w", addr, err)
	}
	return data, addr, nil
}

// EHFrameHdr returns .eh_frame_hdr, the sorted table of functions (LSB Core 5.0
// §10.6.2), and its link address; nothing and no error when there is none.
func (i *Image) EHFrameHdr() (data []byte, addr uint64, err error) {
	if s := i.filledSection(".eh_frame_hdr"); s != nil {
		data, err = i.SectionData(s)
		return data, s.Addr, err
	}
	if len(i.sections) > 0 {
		return nil, 0, nil
	}
	for _, s := range i.segments {
		if s.Type == SegmentEHFrame {
			data, err = i.ReadAddr(s.Addr, s.FileSize)
			return data, s.Addr, err
		}
	}
	return nil, 0, nil
}

// UnwindInfo returns the compact unwind table of a Mach-O image
// (__TEXT,__unwind_info; mach-o/compact_unwind_encoding.h) and its link address;
// nothing and no error when it has none. Offsets to functions in it count from
// BaseAddr.
func (i *Image) UnwindInfo() (data []byte, addr uint64, err error) {
	if i.Format != MachO {
		return nil, 0, nil
	}
	s := i.sectionIn(segmentText, "__unwind_info")
	if s == nil || elf.SectionType(s.Type) == elf.SHT_NOBITS {
		return nil, 0, nil
	}
	data, err = i.SectionData(s)
	return data, s.Addr, err
}

// filledSection returns the section unless it is missing or, as in a separate
// debug file, holds no bytes.
func (i *Image) filledSection(name string) *Section {
	s := i.Section(name)
	if s == nil || elf.SectionType(s.Type) == elf.SHT_NOBITS {
		return nil
	}
	return s
}

// ehFramePointer reads eh_frame_ptr from the header. Only what linkers write there is known: absolute, relative to its own
// place or to the header (LSB Core 5.0 §10.6.2).
func (i *Image) ehFramePointer(hdr []byte, addr uint64) (uint64, bool) {
	const at = 4 // after version and three encodings
	if len(hdr) < at+8 || hdr[0] != 1 {
		return 0, false
	}
	enc := ehtable.Encoding(hdr[1])
	switch enc &^ enc.Format() {
	case 0, ehtable.PCRel, ehtable.DataRel:
	default:
		return 0, false
	}
	bases := ehtable.Bases{Section: addr, Data: addr, Size: 8}
	if i.Class == Class32 {
		bases.Size = 4
	}
	value, end := bases.Pointer(hdr, at, i.ByteOrder, enc)
	return value, end >= 0
}

// recordsEnd follows the lengths of CFI records, which start at an offset in the file,
// to the terminator, to a length that does not fit, or to the end of the room.
func (i *Image) recordsEnd(off, available uint64) (uint64, error) {
	at := uint64(0)
	for available-at >= 4 {
		b, err := i.slice(off+at, min(available-at, 12))
		if err != nil {
			return 0, err
		}
		n := uint64(i.ByteOrder.Uint32(b))
		head := uint64(4)
		if n == math.MaxUint32 { // 64-bit DWARF
			if len(b) < 12 {
				return at, nil
			}
			n, head = i.ByteOrder.Uint64(b[4:]), 12
		}
		if n == 0 || n > available-at-head {
			return at, nil
		}
		at += head + n
	}
	return at, nil
}
