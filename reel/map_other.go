//go:build !unix

package reel

import "os"

// mapFile reads the file; this system has no mapping that we use.
func mapFile(path string) (data []byte, unmap func([]byte) error, err error) {
	data, err = os.ReadFile(path)
	return data, func([]byte) error { return nil }, err
}
