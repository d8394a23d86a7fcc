//go:build !unix

package object

import (
	"io"
	"os"
)

// openNonblock is nothing where files have no such flag.
const openNonblock = 0

// reserve returns room for size bytes; there is nothing to free.
func reserve(size int) (data []byte, free func() error, err error) {
	return make([]byte, size), func() error { return nil }, nil
}

// mapFile reads the first size bytes of f; there is nothing to unmap.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}

// dropPages does nothing where the file was read, not mapped.
func dropPages([]byte) {}

// onDisk is the file's size where nothing tells holes.
func onDisk(info os.FileInfo) int64 { return info.Size() }

// onlyOurs says whether a file may be mapped.
func onlyOurs(os.FileInfo) bool { return false }
