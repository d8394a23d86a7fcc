//go:build !unix

package symbols

import "os"

// mapFile reads the first size bytes of f.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	return readFile(f, size)
}
