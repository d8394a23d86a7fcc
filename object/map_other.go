//go:build !unix

package object

import (
	"io"
	"os"
)

// openNonblock is nothing where files have no such flag.
const openNonblock = 0

// mapFile reads the first size bytes of f; there is nothing to unmap.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, err
	}
	return data, nil, nil
}

// dropPages does nothing where the file was read, not mapped.
func dropPages([]byte) {}
