package object

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// ErrNoArch is wrapped by the error of OpenArch and ParseArch when the file has no
// part for the architecture.
var ErrNoArch = errors.New("no such architecture")

// ErrSeveralArchs is wrapped by a FatError.
var ErrSeveralArchs = errors.New("fat file of several architectures, name one")

// A FatError says that a fat file has to be opened for one of its architectures.
// Which one is meant cannot be guessed: what runs here says nothing about where an
// address was captured.
type FatError struct {
	Name   string  // the file
	Slices []Slice // what it holds
}

// Error names the file and the architectures to choose from.
func (e *FatError) Error() string {
	return fmt.Sprintf("object: %s: %v: %s", e.Name, ErrSeveralArchs, sliceNames(e.Slices))
}

// Unwrap returns ErrSeveralArchs.
func (e *FatError) Unwrap() error { return ErrSeveralArchs }

// A Slice is one architecture's part of a fat file.
type Slice struct {
	Arch Arch
	Name string // Apple's name of the architecture: "arm64e"
	Off  uint64 // bytes from the start of the file
	Size uint64 // bytes
}

// The fat header (mach-o/fat.h), always big-endian. A Java class file starts with
// the same four bytes, and then with its version, which is 45 or more.
const (
	fatMagic32   = 0xcafebabe
	fatMagic64   = 0xcafebabf
	fatSize32    = 20
	fatSize64    = 32
	maxFatSlices = 44
)

// isFat says whether the bytes start like a fat file.
func isFat(data []byte) bool {
	if len(data) < 8 {
		return false
	}
	magic, count := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	return (magic == fatMagic32 || magic == fatMagic64) && count <= maxFatSlices
}

// ParseSlices lists the parts of a fat file; none, and no error, for any other file.
// Parts reach neither into the header nor beyond the end of the file.
func ParseSlices(name string, data []byte) ([]Slice, error) {
	return readSlices(name, memoryContents(data))
}

// readSlices is ParseSlices for the contents of a file.
func readSlices(name string, c *contents) ([]Slice, error) {
	length := uint64(len(c.data))
	data, err := c.slice(0, min(length, 8+maxFatSlices*fatSize64))
	if err != nil {
		return nil, fmt.Errorf("object: %s: header: %d bytes %w", name, len(data), err)
	}
	if !isFat(data) {
		return nil, nil
	}
	size := uint64(fatSize32)
	wide := binary.BigEndian.Uint32(data) == fatMagic64
	if wide {
		size = fatSize64
	}
	count := uint64(binary.BigEndian.Uint32(data[4:]))
	head := 8 + count*size
	if head > length {
		return nil, fmt.Errorf("object: %s: fat header: %d entries %w", name, count, errBeyond(length))
	}
	slices := make([]Slice, count)
	for k := range slices {
		s := fatSlice(data[8+uint64(k)*size:], wide)
		if s.Off < head || s.Off > length || s.Size > length-s.Off {
			return nil, fmt.Errorf("object: %s: fat header: %s at %#x: %#x bytes are not inside of the file (%#x)", name, s.Name, s.Off, s.Size, length)
		}
		slices[k] = s
	}
	return slices, nil
}

// fatSlice decodes fat_arch or fat_arch_64; b is long enough.
func fatSlice(b []byte, wide bool) Slice {
	o := binary.BigEndian
	cpu := o.Uint32(b)
	s := Slice{Arch: machArch(cpu), Name: machArchName(cpu, o.Uint32(b[4:])&^cpuSubtypeMask)}
	if wide {
		s.Off, s.Size = o.Uint64(b[8:]), o.Uint64(b[16:])
	} else {
		s.Off, s.Size = uint64(o.Uint32(b[8:])), uint64(o.Uint32(b[12:]))
	}
	return s
}

// selectOnlySlice narrows the image to the part of a fat file that has only one.
func (i *Image) selectOnlySlice(slices []Slice) error {
	switch len(slices) {
	case 0:
		return i.errorf("fat header: no architectures")
	case 1:
		i.selectSlice(slices[0])
		return nil
	}
	return &FatError{Name: i.name, Slices: slices}
}

// selectSlice narrows the image to one part, whose place has been checked.
func (i *Image) selectSlice(s Slice) {
	i.base, i.size = s.Off, s.Size
}

// ParseArch is Parse for one architecture: of a fat file it takes that part, and a
// file of a single architecture must be of it. Names are Apple's ("arm64e",
// "x86_64") or Go's ("arm64", "amd64"); an exact name goes before a more general
// one, so that "arm64" is not answered with arm64e when both are there. An empty
// arch means Parse.
func ParseArch(name string, data []byte, arch string) (*Image, error) {
	return parseContents(name, memoryContents(data), arch)
}

// parseContents is ParseArch for the contents of a file.
func parseContents(name string, c *contents, arch string) (*Image, error) {
	slices, err := readSlices(name, c)
	if err != nil {
		return nil, err
	}
	i := newImage(name, c)
	if slices != nil && arch == "" {
		if err := i.selectOnlySlice(slices); err != nil {
			return nil, err
		}
	} else if slices != nil {
		s, ok := chooseSlice(slices, arch)
		if !ok {
			return nil, i.errorf("%w as %s, it has %s", ErrNoArch, arch, sliceNames(slices))
		}
		i.selectSlice(s)
	}
	if err := i.parse(); err != nil {
		return nil, err
	}
	if arch != "" && arch != i.ArchName() && !matchesArch(i.Arch, arch) {
		return nil, i.errorf("%w as %s, it has %s", ErrNoArch, arch, i.ArchName())
	}
	return i, nil
}

// chooseSlice finds the part for an architecture by its name.
func chooseSlice(slices []Slice, arch string) (Slice, bool) {
	for _, s := range slices {
		if s.Name == arch {
			return s, true
		}
	}
	for _, s := range slices {
		if matchesArch(s.Arch, arch) {
			return s, true
		}
	}
	return Slice{}, false
}

// matchesArch says whether a general name, Go's or the one that most people use,
// means the architecture.
func matchesArch(a Arch, name string) bool {
	if a == 0 {
		return false
	}
	switch name {
	case "x86_64", "x86-64":
		return a == AMD64
	case "i386", "i686", "x86":
		return a == I386
	case "aarch64":
		return a == ARM64
	}
	return a.String() == name
}

// sliceNames lists the architectures for an error.
func sliceNames(slices []Slice) string {
	var names []string
	for _, s := range slices {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
