package object

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// ErrUnknownFormat is wrapped by the error of Open and Parse when the bytes are
// of no format that this package reads.
var ErrUnknownFormat = errors.New("neither an ELF nor a Mach-O file")

// ErrNotMapped is wrapped by the errors of lookups by address when no loadable
// segment holds file bytes for the whole range.
var ErrNotMapped = errors.New("address not backed by the file")

// Format is the container format of an image.
type Format uint8

// The formats that can be read.
const (
	ELF Format = iota + 1
	MachO
)

// String returns the usual name of the format.
func (f Format) String() string {
	switch f {
	case ELF:
		return "ELF"
	case MachO:
		return "Mach-O"
	}
	return fmt.Sprintf("format %d", uint8(f))
}

// Class is the width of an image's addresses in bits, 32 or 64.
type Class uint8

// The two classes.
const (
	Class32 Class = 32
	Class64 Class = 64
)

// AddrSize is the size of an address in bytes, 4 or 8.
func (c Class) AddrSize() int { return int(c) / 8 }

// Arch is an instruction set. Its value is the ELF machine number (System V gABI,
// chapter 4, e_machine), for other formats too, so an architecture without a
// constant here keeps its number.
type Arch uint16

// The architectures with a name.
const (
	I386  = Arch(elf.EM_386)
	ARM   = Arch(elf.EM_ARM)
	AMD64 = Arch(elf.EM_X86_64)
	ARM64 = Arch(elf.EM_AARCH64)
	PPC   = Arch(elf.EM_PPC)
	PPC64 = Arch(elf.EM_PPC64)
)

// String returns Go's name of the architecture, or "machine N" for others.
func (a Arch) String() string {
	switch a {
	case I386:
		return "386"
	case ARM:
		return "arm"
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	case PPC:
		return "ppc"
	case PPC64:
		return "ppc64"
	}
	return fmt.Sprintf("machine %d", uint16(a))
}

// Type says what an image is for.
type Type uint8

// The types. A position-independent ELF executable is Shared, as its header says;
// Interp tells it from a library.
const (
	OtherType Type = iota
	Executable
	Shared
	Relocatable // an object file
	Core
	Bundle         // a Mach-O plug-in or kernel extension
	DebugCompanion // the Mach-O file in a dSYM bundle: debug information without the code
)

// String returns the type in a word.
func (t Type) String() string {
	switch t {
	case Executable:
		return "executable"
	case Shared:
		return "shared"
	case Relocatable:
		return "relocatable"
	case Core:
		return "core"
	case Bundle:
		return "bundle"
	case DebugCompanion:
		return "dSYM"
	}
	return "other"
}

// An Image is one ELF or Mach-O file, on disk or in memory. Its methods may be called from
// several goroutines at once, except Close.
type Image struct {
	Format    Format
	Class     Class
	ByteOrder binary.ByteOrder
	Arch      Arch
	Type      Type

	name     string
	path     string      // where Open found the file, "" for Parse
	file     os.FileInfo // nil for Parse
	contents *contents   // of the file; of a fat one, from base on are the image's
	base     uint64
	size     uint64
	shared   bool // the contents are another's, who closes them
	entry    uint64
	segments []Segment
	sections []Section
	loads    []Segment // the loadable segments sorted by address
	placed   []int     // indices of the loaded sections sorted by address
	elf      elfFile
	mach     machFile

	texts struct { // of string tables, by section
		mu sync.Mutex
		at map[uint32]string
	}

	symbols struct {
		once sync.Once
		list []Symbol
		err  error
	}
}

// Parse reads the headers of an image that is in memory. The image keeps data,
// which must not change while it is in use. The name only appears in errors and
// as Name. Section and segment contents are checked when they are asked for. A fat
// file of several architectures is refused with a FatError; see ParseArch.
func Parse(name string, data []byte) (*Image, error) {
	return parseContents(name, memoryContents(data), "")
}

// newImage is the image of all of the contents.
func newImage(name string, c *contents) *Image {
	return &Image{name: name, contents: c, size: uint64(len(c.data))}
}

// parse reads the headers of a file of one architecture.
func (i *Image) parse() error {
	i.elf, i.mach = elfFile{Image: i}, machFile{Image: i}
	start, err := i.slice(0, min(i.size, 4))
	if err != nil {
		return i.errorf("header: %d bytes %w", len(start), err)
	}
	if isMachO(start) {
		return i.parseMachO()
	}
	return i.parseELF()
}

// Name is the path or name that the image was opened under.
func (i *Image) Name() string { return i.name }

// Entry is the link address of the first instruction, 0 when there is none.
func (i *Image) Entry() uint64 { return i.entry }

// Size is the number of bytes of the file, or of one slice of a fat file.
func (i *Image) Size() uint64 { return i.size }

// Bytes returns the bytes [off, off+size) of the file, or of one slice of a fat file.
// They are private and stay valid until Close.
func (i *Image) Bytes(off, size uint64) ([]byte, error) {
	b, err := i.slice(off, size)
	if err != nil {
		return nil, i.errorf("%#x bytes at %#x %w", size, off, err)
	}
	return b, nil
}

// Unchanged says whether the file is as it was when it was opened, as far as its size and time tell. It stays open, so that no other file can
// have its device and inode.
func (i *Image) Unchanged() bool { return i.contents.file != nil && i.contents.unchanged(nil) == nil }

// ReadAt reads the file's bytes into p (io.ReaderAt).
func (i *Image) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || uint64(off) >= i.size {
		return 0, io.EOF
	}
	n := min(uint64(len(p)), i.size-uint64(off))
	b, err := i.Bytes(uint64(off), n)
	if err != nil {
		return 0, err
	}
	if copy(p, b); n < uint64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// Take counts n bytes that are kept about the image until it is closed, or returns a
// MemoryError that names the image when there is no room for them.
func (i *Image) Take(n uint64, what string) error {
	if err := i.contents.take(n, what); err != nil {
		return i.errorf("%w", err)
	}
	return nil
}

// Allowance bounds the memory that the image, and others that it is shared with, may
// take. What Take is asked for beside what the image keeps itself is to be given back.
func (i *Image) Allowance() *Allowance { return i.contents.allowance }

// Segments lists the segments in file order. The slice belongs to the image.
func (i *Image) Segments() []Segment { return i.segments }

// Sections lists the sections in file order; the index is what Symbol.Section and
// Section.Link refer to. The slice belongs to the image.
func (i *Image) Sections() []Section { return i.sections }

// ID is the build ID or the UUID in lower-case hexadecimal without dashes, "" when
// the image has none.
func (i *Image) ID() string { return hex.EncodeToString(i.BuildID()) }

// ArchName is the name by which the image's architecture is asked for: Apple's for
// Mach-O, which tells arm64e from arm64 and x86_64h from x86_64, and Arch.String
// for ELF.
func (i *Image) ArchName() string {
	if i.Format == MachO {
		return machArchName(i.mach.cpu, i.mach.cpuSubtype)
	}
	return i.Arch.String()
}

// errorf makes an error that starts with the package and the file.
func (i *Image) errorf(format string, args ...any) error {
	return fmt.Errorf("object: %s: "+format, append([]any{i.name}, args...)...)
}

// slice returns the file's bytes [off, off+size). The error is the end of a sentence:
// so many bytes "reach beyond the end of the file", "can't be read".
func (i *Image) slice(off, size uint64) ([]byte, error) {
	if err := i.inside(off, size); err != nil {
		return nil, err
	}
	return i.contents.slice(i.base+off, size)
}

// inside checks that the image has the bytes [off, off+size). No sum of off and size
// is formed, so that none can wrap.
func (i *Image) inside(off, size uint64) error {
	if off > i.size || size > i.size-off {
		return errBeyond(i.size)
	}
	return nil
}
