package object

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

// A Section is one section header. Addresses are link addresses (0 for ELF
// sections that are not loaded), Size is the size in memory and FileSize the bytes
// held by the file, which is 0 for .bss and smaller than the contents for a
// compressed section. Type and Flags have ELF's values (gABI, chapter 4, sh_type
// and sh_flags), for Mach-O too: Type is SHT_PROGBITS, or SHT_NOBITS for what the
// file does not hold, and Flags tell loaded, writable, executable and thread-local
// sections.
type Section struct {
	Name     string // as the file has it: ".debug_info", "__debug_info"
	Segment  string // "__DWARF"; "" in ELF files
	Type     uint32
	Flags    uint64
	Addr     uint64
	Size     uint64
	Off      uint64
	FileSize uint64
	Link     uint32
	Info     uint32
	EntSize  uint64
	Align    uint64
}

// Alloc says whether the section is part of the loaded image.
func (s *Section) Alloc() bool { return s.Flags&uint64(elf.SHF_ALLOC) != 0 }

// Executable says whether the section holds instructions.
func (s *Section) Executable() bool { return s.Flags&uint64(elf.SHF_EXECINSTR) != 0 }

// Writable says whether the section is writable at run time.
func (s *Section) Writable() bool { return s.Flags&uint64(elf.SHF_WRITE) != 0 }

// threadLocal says whether the section is the template of thread-local data.
func (s *Section) threadLocal() bool { return s.Flags&uint64(elf.SHF_TLS) != 0 }

// Contains says whether a loaded section covers the link address.
func (s *Section) Contains(addr uint64) bool {
	return s.Alloc() && addr >= s.Addr && addr-s.Addr < s.Size
}

// SectionAt returns the loaded section that covers the link address, nil when
// none does. Thread-local .tbss, which takes no addresses, is passed over.
func (i *Image) SectionAt(addr uint64) *Section {
	if k := i.sectionIndexAt(addr); k > 0 {
		return &i.sections[k]
	}
	return nil
}

// sectionIndexAt returns 0, the index of no section, when none covers addr.
func (i *Image) sectionIndexAt(addr uint64) int {
	n := sort.Search(len(i.placed), func(n int) bool { return i.sections[i.placed[n]].Addr > addr }) - 1
	if n < 0 || !i.sections[i.placed[n]].Contains(addr) {
		return 0
	}
	return i.placed[n]
}

// indexSections fills the table that sectionIndexAt searches.
func (i *Image) indexSections() {
	for k := range i.sections {
		s := &i.sections[k]
		// ELF's .tbss takes no addresses, Mach-O's __thread_bss does.
		if s.Alloc() && s.Size > 0 && (!s.threadLocal() || s.FileSize > 0 || i.Format == MachO) {
			i.placed = append(i.placed, k)
		}
	}
	slices.SortStableFunc(i.placed, func(a, b int) int { return cmp.Compare(i.sections[a].Addr, i.sections[b].Addr) })
}

// SectionData returns a section's contents: a slice of the file's bytes, or a copy
// inflated from a section compressed with zlib or zstd (gABI, SHF_COMPRESSED; or
// the older .zdebug_ form, which is __zdebug_ in Mach-O files). It is empty for .bss.
func (i *Image) SectionData(s *Section) ([]byte, error) {
	inflate := i.packing(s)
	if inflate == nil {
		return i.sectionBytes(s)
	}
	packed, err := i.packedBytes(s)
	if err != nil {
		return nil, err
	}
	raw, err := inflate(packed)
	if err != nil {
		return nil, i.sectionErrorf(s, "%w", err)
	}
	return raw, nil
}

// packing returns what inflates the section, nil when it isn't compressed.
func (i *Image) packing(s *Section) func(packed []byte) ([]byte, error) {
	switch {
	case s.Flags&uint64(elf.SHF_COMPRESSED) != 0:
		return i.inflateSection
	case strings.HasPrefix(s.Name, ".zdebug_"), i.Format == MachO && strings.HasPrefix(s.Name, "__zdebug_"):
		return i.inflateZdebug
	}
	return nil
}

// packedBytes returns what the file has of a compressed section.
func (i *Image) packedBytes(s *Section) ([]byte, error) {
	err := i.inside(s.Off, s.FileSize)
	var b []byte
	if err == nil {
		b, err = i.contents.copyOf(i.base+s.Off, s.FileSize)
	}
	if err != nil {
		return nil, i.sectionErrorf(s, "%#x bytes %w", s.FileSize, err)
	}
	return b, nil
}

// Release tells the system that a part of a mapped section (see SectionsData) that
// has been worked through is not needed for now: its pages count as the program's
// memory until then. It may still be read, and is then fetched again. What is not
// mapped is left alone.
func (i *Image) Release(part []byte) {
	mapped := i.contents.mapping.data
	if len(part) == 0 || len(mapped) == 0 {
		return
	}
	start, at := uintptr(unsafe.Pointer(&mapped[0])), uintptr(unsafe.Pointer(&part[0]))
	if at < start || at-start >= uintptr(len(mapped)) || uintptr(len(part)) > uintptr(len(mapped))-(at-start) {
		return
	}
	dropPages(part)
}

// sectionBytes returns the bytes that the file holds of the section.
func (i *Image) sectionBytes(s *Section) ([]byte, error) {
	b, err := i.slice(s.Off, s.FileSize)
	if err != nil {
		return nil, i.sectionErrorf(s, "%#x bytes %w", s.FileSize, err)
	}
	return b, nil
}

// sectionErrorf makes an error that names the file, the section and its offset.
func (i *Image) sectionErrorf(s *Section, format string, args ...any) error {
	return i.errorf("section %s at %#x: "+format, append([]any{s.Name, s.Off}, args...)...)
}
