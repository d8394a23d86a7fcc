//go:build !unix

package reel

import (
	"io"
	"os"
)

// mapFile reads the file; this system has no mapping that we use.
func mapFile(path string) (data []byte, unmap func([]byte) error, err error) {
	data, err = os.ReadFile(path)
	return data, func([]byte) error { return nil }, err
}

// mapOpened reads a file that is open.
func mapOpened(_ string, f *os.File) (data []byte, unmap func([]byte) error, err error) {
	data, err = io.ReadAll(f)
	return data, func([]byte) error { return nil }, err
}

func forgetMapped([]byte) {}
