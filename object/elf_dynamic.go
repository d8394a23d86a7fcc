package object

import (
	"debug/elf"
	"fmt"
	"strings"
)

// elfFile is what only an ELF file has: its dynamic table, and the readers that
// go by it.
type elfFile struct {
	*Image
	dynamic []dynEntry
}

// dynEntry is one entry of the dynamic table (gABI, chapter 5, Dynamic Section).
type dynEntry struct {
	tag   elf.DynTag
	value uint64
}

// Tags that debug/elf has no name for (gABI, chapter 5, relative relocations).
const (
	dtRELRSZ  = elf.DynTag(35)
	dtRELR    = elf.DynTag(36)
	dtRELRENT = elf.DynTag(37)
)

// readDynamic reads the dynamic table. A separate debug file keeps the program
// header but not the bytes; it has no dynamic table.
func (e *elfFile) readDynamic() error {
	raw, err := e.dynamicBytes()
	if err != nil {
		return err
	}
	word := e.Class.AddrSize()
	for ; len(raw) >= 2*word; raw = raw[2*word:] {
		tag := elf.DynTag(e.word(raw))
		if tag == elf.DT_NULL {
			break
		}
		e.dynamic = append(e.dynamic, dynEntry{tag, e.word(raw[word:])})
	}
	return nil
}

func (e *elfFile) dynamicBytes() ([]byte, error) {
	for k := range e.sections {
		s := &e.sections[k]
		switch elf.SectionType(s.Type) {
		case elf.SHT_DYNAMIC:
			return e.sectionBytes(s)
		case elf.SHT_NOBITS:
			if s.Name == ".dynamic" {
				return nil, nil
			}
		}
	}
	for _, s := range e.segments {
		if s.Type != SegmentDynamic {
			continue
		}
		raw, err := e.slice(s.Off, s.FileSize)
		if err != nil {
			return nil, e.errorf("dynamic table at %#x: %#x bytes %w", s.Off, s.FileSize, err)
		}
		return raw, nil
	}
	return nil, nil
}

// dyn returns the value of the first entry with that tag.
func (e *elfFile) dyn(tag elf.DynTag) (uint64, bool) {
	for _, d := range e.dynamic {
		if d.tag == tag {
			return d.value, true
		}
	}
	return 0, false
}

// word reads an address-sized number; b is long enough.
func (i *Image) word(b []byte) uint64 {
	if i.Class == Class32 {
		return uint64(i.ByteOrder.Uint32(b))
	}
	return i.ByteOrder.Uint64(b)
}

// dynTable returns the bytes that an address and a size in the dynamic table
// denote. Both tags missing means an empty table.
func (e *elfFile) dynTable(addrTag, sizeTag elf.DynTag) (addr uint64, data []byte, err error) {
	addr, ok := e.dyn(addrTag)
	if !ok {
		return 0, nil, nil
	}
	size, _ := e.dyn(sizeTag)
	if size == 0 {
		return addr, nil, nil
	}
	data, err = e.ReadAddr(addr, size)
	if err != nil {
		return 0, nil, fmt.Errorf("%w (the dynamic table's %v)", err, addrTag)
	}
	return addr, data, nil
}

// dynStrings returns the string table that the dynamic table names.
func (e *elfFile) dynStrings() (*stringTable, error) {
	_, raw, err := e.dynTable(elf.DT_STRTAB, elf.DT_STRSZ)
	if err != nil {
		return nil, err
	}
	return newStrings(raw), nil
}

// dynNames returns the names of all entries with that tag. Names outside the
// table are passed over: the dynamic loader would refuse such a file.
func (e *elfFile) dynNames(tag elf.DynTag) []string {
	var names []string
	var table *stringTable
	for _, d := range e.dynamic {
		if d.tag != tag {
			continue
		}
		if table == nil {
			var err error
			if table, err = e.dynStrings(); err != nil {
				return nil
			}
		}
		if name, ok := table.at(uint32(d.value)); ok && d.value == uint64(uint32(d.value)) && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Dependencies lists the libraries that the image needs (DT_NEEDED; LC_LOAD_DYLIB
// and its kin), in order.
func (i *Image) Dependencies() []string {
	if i.Format == MachO {
		return i.mach.dependencies()
	}
	return i.elf.dynNames(elf.DT_NEEDED)
}

// SearchPaths are the folders that an ELF file has its libraries searched in, as it has them ($ORIGIN and such included), joined by colons:
// DT_RPATH, which also holds for the libraries that those need, and DT_RUNPATH.
func (i *Image) SearchPaths() (rpath, runpath string) {
	if i.Format != ELF {
		return "", ""
	}
	return strings.Join(i.elf.dynNames(elf.DT_RPATH), ":"), strings.Join(i.elf.dynNames(elf.DT_RUNPATH), ":")
}

// HasTextRelocations says whether the dynamic loader changes the image's code (DT_TEXTREL, DF_TEXTREL).
func (i *Image) HasTextRelocations() bool {
	if i.Format != ELF {
		return false
	}
	for _, d := range i.elf.dynamic {
		if d.tag == elf.DT_TEXTREL || d.tag == elf.DT_FLAGS && elf.DynFlag(d.value)&elf.DF_TEXTREL != 0 {
			return true
		}
	}
	return false
}

// SoName is the name that the image gives itself as a library (DT_SONAME,
// LC_ID_DYLIB), or "".
func (i *Image) SoName() string {
	if i.Format == MachO {
		return i.mach.firstName(lcIDDylib)
	}
	if names := i.elf.dynNames(elf.DT_SONAME); len(names) > 0 {
		return names[0]
	}
	return ""
}

// maxInterp bounds the path of the program interpreter (PATH_MAX).
const maxInterp = 4096

// Interp is the path of the program interpreter (the dynamic loader), "" when the
// image asks for none: a static program or a library.
func (i *Image) Interp() string {
	if i.Format == MachO {
		return i.mach.firstName(lcLoadDylinker)
	}
	for _, s := range i.segments {
		if s.Type != SegmentInterp {
			continue
		}
		if raw, err := i.slice(s.Off, min(s.FileSize, maxInterp)); err == nil {
			path, _ := newStrings(raw).at(0)
			return path
		}
	}
	return ""
}
