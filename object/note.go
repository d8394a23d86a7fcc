package object

import "debug/elf"

// ntGNUBuildID is the type of the note that holds the build ID, by owner "GNU".
const ntGNUBuildID = 3

// maxBuildID bounds what is taken for a build ID. Linkers write 8 to 20 bytes,
// and --build-id=0x… what the user wishes.
const maxBuildID = 256

// maxNotes bounds how many notes are looked at. Large programs have some thousand
// (.gnu.build.attributes), behind the build ID.
const maxNotes = 1 << 20

// BuildID returns the build ID from the GNU note, or the UUID of a Mach-O file, nil
// when the image has none. The slice aliases the mapping.
func (i *Image) BuildID() []byte {
	if i.Format == MachO {
		return i.mach.uuid
	}
	// Sections first: in a separate debug file the program headers still have
	// the offsets of the file that it was split from.
	budget := maxNotes
	for k := range i.sections {
		s := &i.sections[k]
		if elf.SectionType(s.Type) != elf.SHT_NOTE {
			continue
		}
		if raw, err := i.sectionBytes(s); err == nil {
			if id := i.buildIDNote(raw, s.Align, &budget); id != nil {
				return id
			}
		}
	}
	for _, s := range i.segments {
		if s.Type != SegmentNote {
			continue
		}
		if raw, err := i.slice(s.Off, s.FileSize); err == nil {
			if id := i.buildIDNote(raw, s.Align, &budget); id != nil {
				return id
			}
		}
	}
	return nil
}

// buildIDNote looks through a sequence of notes (gABI, chapter 5, Note Section).
// Name and descriptor are padded to 4 bytes, or to 8 where the section asks so.
func (i *Image) buildIDNote(b []byte, align uint64, budget *int) []byte {
	pad := uint64(4)
	if align == 8 {
		pad = 8
	}
	for ; len(b) >= 12 && *budget > 0; *budget-- {
		nameSize, descSize := uint64(i.ByteOrder.Uint32(b)), uint64(i.ByteOrder.Uint32(b[4:]))
		kind := i.ByteOrder.Uint32(b[8:])
		// The sizes have 32 bits: no sum below can wrap.
		desc := (12 + nameSize + pad - 1) &^ (pad - 1)
		next := (desc + descSize + pad - 1) &^ (pad - 1)
		if desc+descSize > uint64(len(b)) {
			return nil
		}
		if kind == ntGNUBuildID && string(b[12:12+nameSize]) == "GNU\x00" && descSize > 0 && descSize <= maxBuildID {
			return b[desc : desc+descSize : desc+descSize]
		}
		if next >= uint64(len(b)) {
			return nil
		}
		b = b[next:]
	}
	return nil
}
