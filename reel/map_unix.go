//go:build unix

package reel

import (
	"fmt"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mapFile maps the file into memory, read-only, as long as it is now.
func mapFile(path string) (data []byte, unmap func([]byte) error, err error) {
	// A pipe that nobody writes to would be waited for, and a terminal become ours.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return mapOpened(path, f)
}

// mapOpened is mapFile for a file that is open, which may be closed then.
func mapOpened(path string, f *os.File) (data []byte, unmap func([]byte) error, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	unmap = func([]byte) error { return nil }
	switch size := info.Size(); {
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s: not a regular file", path)
	case size == 0:
		return nil, unmap, nil
	case size > math.MaxInt:
		return nil, nil, fmt.Errorf("%s: %d bytes do not fit into this machine's address space", path, size)
	default:
		data, err = syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: mapping %d bytes: %w", path, size, err)
		}
		return data, syscall.Munmap, nil
	}
}

// forgetMapped lets go of the pages of a mapping.
func forgetMapped(data []byte) {
	_ = unix.Madvise(data, unix.MADV_DONTNEED) // they stay as they were then
}
