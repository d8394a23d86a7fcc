package corefile

import (
	"bytes"
	"encoding/binary"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// maxHeader is how much of an image's first mapping is looked through for its ID, in bytes.
const maxHeader = 1 << 20

// elfLayout is where an ELF header and a program header have what is looked for here (System V ABI,
// chapters 4 and 5).
type elfLayout struct {
	shoff, shoffSize int // e_shoff
	shnum            int // e_shnum, and behind it e_shstrndx
	phoff, phnum     int
	phsize           int
}

var (
	elf64 = elfLayout{0x28, 8, 0x3c, 0x20, 0x38, 56}
	elf32 = elfLayout{0x20, 4, 0x30, 0x1c, 0x2c, 32}
)

const (
	class64    = 2
	headerSize = 64
	typeLoad   = 1
	typeNote   = 4
)

// An ImageHeader is what the beginning of a loaded image says of it.
type ImageHeader struct {
	ID   string // build ID, "" when it has none
	Size uint64 // of what is loaded, bytes
}

// ImageID returns the build ID of the image that is loaded at an address, "" when the core doesn't
// hold it. Kernels write the first page of each image, which mostly has the ID, and little else.
func (f *File) ImageID(addr uint64) string {
	h, _ := f.ImageHeader(addr)
	return h.ID
}

// ImageHeader reads the headers of a program or library that is loaded at an address, and says
// whether there are any.
func (f *File) ImageHeader(addr uint64) (ImageHeader, bool) {
	m := f.Mapping(addr)
	if m == nil || m.Start != addr || m.Offset != 0 && m.Path != "" {
		return ImageHeader{}, false
	}
	data := f.Bytes(addr, maxHeader)
	if len(data) < headerSize || !bytes.HasPrefix(data, []byte("\x7fELF")) {
		return ImageHeader{}, false
	}
	im, err := object.Parse(m.Path, onlyNotes(bytes.Clone(data)))
	if err != nil {
		return ImageHeader{}, false
	}
	defer im.Close() // nothing is behind it
	if im.Type != object.Executable && im.Type != object.Shared || unwind.ArchOf(im.Arch) != f.Arch {
		return ImageHeader{}, false
	}
	h := ImageHeader{ID: im.ID()}
	for _, s := range im.Segments() {
		if base := im.BaseAddr(); s.Type == object.SegmentLoad && s.Addr >= base && s.Addr+s.MemSize > s.Addr {
			h.Size = max(h.Size, s.Addr+s.MemSize-base)
		}
	}
	return h, true
}

// onlyNotes takes out of the headers at the beginning of an image what isn't loaded with them: section
// headers, and all segments but notes and what is loaded. The architectures of cores are little-endian.
func onlyNotes(data []byte) []byte {
	le, l := binary.LittleEndian, &elf32
	phoff := uint64(le.Uint32(data[elf32.phoff:]))
	if data[4] == class64 {
		l, phoff = &elf64, le.Uint64(data[elf64.phoff:])
	}
	clear(data[l.shoff : l.shoff+l.shoffSize])
	clear(data[l.shnum : l.shnum+4])
	for n := le.Uint16(data[l.phnum:]); n > 0 && phoff < uint64(len(data)) && uint64(len(data))-phoff >= uint64(l.phsize); n-- {
		if kind := le.Uint32(data[phoff:]); kind != typeLoad && kind != typeNote {
			clear(data[phoff : phoff+4])
		}
		phoff += uint64(l.phsize)
	}
	return data
}
