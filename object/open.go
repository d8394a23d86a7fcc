package object

import (
	"fmt"
	"math"
	"os"
)

// Open maps the file read-only (or reads it, where the system cannot map) and
// parses its headers. The image must be closed.
//
// While a mapped file is in use it must not be truncated: on Unix the kernel
// answers an access behind the new end with SIGBUS, which no reader can turn into
// an error. Replacing the file by renaming another one over it, as package
// managers and linkers do, is safe.
//
// A fat file of one architecture is opened as that; for several the error is a
// FatError that lists them, and OpenArch opens one.
func Open(path string) (*Image, error) { return OpenArch(path, "") }

// OpenArch is Open for one architecture, "" for the only one; see ParseArch.
func OpenArch(path, arch string) (*Image, error) {
	m, err := mapPath(path)
	if err != nil {
		return nil, err
	}
	i, err := ParseArch(path, m.data, arch)
	if err != nil {
		m.release()
		return nil, err
	}
	i.unmap, i.path, i.file = m.unmap, path, m.info
	return i, nil
}

// FileInfo describes the file that was opened, as it was then; nil for an image that was not opened as a file.
func (i *Image) FileInfo() os.FileInfo { return i.file }

// Slices lists the architectures of a fat file; none, and no error, for any other.
func Slices(path string) ([]Slice, error) {
	m, err := mapPath(path)
	if err != nil {
		return nil, err
	}
	defer m.release()
	return ParseSlices(path, m.data)
}

// mapping is a file's contents.
type mapping struct {
	data  []byte
	unmap func() error // nil when there is nothing to unmap
	info  os.FileInfo
}

// release drops a mapping that no image has taken over; unmapping what was mapped
// cannot fail in a way that matters then.
func (m *mapping) release() {
	if m.unmap != nil {
		_ = m.unmap()
	}
}

// mapPath maps a regular file.
func mapPath(path string) (*mapping, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := info.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("object: %s: %d bytes do not fit into this system's address space", path, size)
	}
	if size == 0 {
		return &mapping{info: info}, nil // the kernel refuses an empty mapping
	}
	data, unmap, err := mapFile(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("object: %s: mapping %d bytes: %w", path, size, err)
	}
	return &mapping{data, unmap, info}, nil
}

// openRegular opens a regular file for reading and refuses everything else. The
// path is asked first, because opening some devices has effects, and then the open
// file, because the path may have come to mean another; that open does not wait for
// the writer of a FIFO.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = wantRegular(path, info)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("object: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("object: %w", err)
	}
	if info, err = f.Stat(); err == nil {
		err = wantRegular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("object: %w", err)
	}
	return f, info, nil
}

func wantRegular(path string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file (%s)", path, info.Mode().Type())
	}
	return nil
}

// Close unmaps the file. Slices that alias it must not be used afterwards; names
// and inflated data remain valid. A second Close does nothing.
func (i *Image) Close() error {
	unmap := i.unmap
	i.unmap, i.data = nil, nil
	if unmap == nil {
		return nil
	}
	if err := unmap(); err != nil {
		return i.errorf("unmapping: %w", err)
	}
	return nil
}
