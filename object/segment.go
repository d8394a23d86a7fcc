package object

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
)

// Perm is the access that a segment's pages are mapped with.
type Perm uint8

// The permissions, with ELF's values of PF_X, PF_W and PF_R.
const (
	PermX Perm = 1 << iota
	PermW
	PermR
)

// String returns the permissions as in a list of maps: "r-x".
func (p Perm) String() string {
	s := []byte("---")
	for k, bit := range [...]Perm{PermR, PermW, PermX} {
		if p&bit != 0 {
			s[k] = "rwx"[k]
		}
	}
	return string(s)
}

// SegmentType is what a segment is for, with ELF's numbers (gABI, chapter 5, p_type).
type SegmentType uint32

// The segment types that this package and its callers act on.
const (
	SegmentNull     = SegmentType(elf.PT_NULL)
	SegmentLoad     = SegmentType(elf.PT_LOAD)
	SegmentDynamic  = SegmentType(elf.PT_DYNAMIC)
	SegmentInterp   = SegmentType(elf.PT_INTERP)
	SegmentNote     = SegmentType(elf.PT_NOTE)
	SegmentTLS      = SegmentType(elf.PT_TLS)
	SegmentEHFrame  = SegmentType(elf.PT_GNU_EH_FRAME)
	SegmentGNUStack = SegmentType(elf.PT_GNU_STACK)
	SegmentRelro    = SegmentType(elf.PT_GNU_RELRO)
)

// String returns ELF's name of the type.
func (t SegmentType) String() string { return elf.ProgType(t).String() }

// A Segment is one program header of an ELF file or one segment of a Mach-O file.
// Addresses are link addresses; sizes and offsets are bytes and are not checked
// against the file. Mach-O segments are SegmentLoad, but for __DWARF, which is no
// part of the program and is SegmentNull.
type Segment struct {
	Name     string // "__TEXT"; "" in ELF files and in Mach-O object files
	Type     SegmentType
	Perm     Perm
	Addr     uint64
	MemSize  uint64
	Off      uint64
	FileSize uint64
	Align    uint64 // 0 in Mach-O files, which state none
}

// indexLoads fills the table that lookups by address search.
func (i *Image) indexLoads() {
	for _, s := range i.segments {
		if s.Type == SegmentLoad {
			i.loads = append(i.loads, s)
		}
	}
	slices.SortStableFunc(i.loads, func(a, b Segment) int { return cmp.Compare(a.Addr, b.Addr) })
}

// MinPageSize is the smallest page of the systems whose images are read. Linkers
// place segments so that larger pages work too.
const MinPageSize = 4096

// MaxPageSize is the largest page of theirs: arm64's, ppc64's and MIPS' kernels may have such.
const MaxPageSize = 64 << 10

// MappedFrom is the offset in the file from which loaders map the segment: that of its first page. page is the size of
// the kernel's pages in bytes, a power of two; 0 stands for the smallest.
func (s *Segment) MappedFrom(page uint64) uint64 { return s.Off &^ (max(page, MinPageSize) - 1) }

// Slide returns load address minus link address if a mapping that starts at an address and at an offset in the file
// is one of the segment, which ok says. Segments may share a page of the file: then it may be one of each. page is that
// of the kernel that has mapped it, see [Segment.MappedFrom].
func (s *Segment) Slide(start, offset, page uint64) (slide uint64, ok bool) {
	if s.Type != SegmentLoad || offset < s.MappedFrom(page) || offset >= s.Off+max(s.FileSize, 1) {
		return 0, false
	}
	return start - offset - (s.Addr - s.Off), true
}

// BaseAddr is the link address that belongs to the place where the image is said
// to be loaded, so that slide = load address - BaseAddr. For ELF it is the page of
// the first loadable segment in the table, for Mach-O the address of __TEXT, which
// holds the header. It is 0 for relocatable files.
//
// The table is to be in the order of addresses (gABI, chapter 5, PT_LOAD), and
// loaders take the first for the lowest. Linux' own vmlinux is not: behind its text
// it has a segment at address 0, a template of per-CPU data.
func (i *Image) BaseAddr() uint64 {
	if i.Format == MachO {
		return i.mach.baseAddr()
	}
	for k := range i.segments {
		if s := &i.segments[k]; s.Type == SegmentLoad {
			return s.Addr &^ (MinPageSize - 1)
		}
	}
	return 0
}

// ReadAddr returns n bytes of the file as they are loaded at a link address,
// before relocation. They must lie in one loadable segment and be backed by the
// file: zero-filled memory (.bss) is not. The slice is good until Close.
func (i *Image) ReadAddr(addr, n uint64) ([]byte, error) {
	off, size := i.fromAddr(addr)
	if n > size || size == 0 {
		return nil, i.errorf("address %#x, %d bytes: %w", addr, n, ErrNotMapped)
	}
	b, err := i.slice(off, n)
	if err != nil {
		return nil, i.errorf("address %#x, %d bytes %w", addr, n, err)
	}
	return b, nil
}

// fromAddr returns where the file has the bytes from a link address to the end of its
// segment, and how many they are: 0 when it has none.
func (i *Image) fromAddr(addr uint64) (off, size uint64) {
	k := sort.Search(len(i.loads), func(k int) bool { return i.loads[k].Addr > addr }) - 1
	if k < 0 {
		return 0, 0
	}
	s := &i.loads[k]
	at := addr - s.Addr
	if at >= s.FileSize || at >= s.MemSize {
		return 0, 0
	}
	// A truncated file still gives what it holds of the segment.
	if s.Off >= i.size || at >= i.size-s.Off {
		return 0, 0
	}
	return s.Off + at, min(s.FileSize-at, i.size-s.Off-at)
}
