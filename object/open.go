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
func Open(path string) (*Image, error) {
	// Stat comes first because opening a FIFO would block until it has a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("object: %s: not a regular file (%s)", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	size := info.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("object: %s: %d bytes do not fit into this system's address space", path, size)
	}
	if size == 0 {
		return Parse(path, nil) // an empty mapping is refused by the kernel with a less telling word
	}
	data, unmap, err := mapFile(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("object: %s: mapping %d bytes: %w", path, size, err)
	}
	i, err := Parse(path, data)
	if err != nil {
		if unmap != nil {
			unmap()
		}
		return nil, err
	}
	i.unmap = unmap
	return i, nil
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
