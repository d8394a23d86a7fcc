//go:build unix

package object

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openNonblock makes opening a FIFO or a device return at once. It also keeps a
// terminal from becoming the controlling one. Regular files are not affected.
const openNonblock = unix.O_NONBLOCK | unix.O_NOCTTY

// mapFile maps the first size bytes of f read-only.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// dropPages takes the whole pages of a part of a mapping out of memory; they are read
// again when they are needed. That it may not work costs nothing but memory.
func dropPages(part []byte) {
	page := uintptr(os.Getpagesize())
	start := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	skip := (start+page-1)&^(page-1) - start
	if uintptr(len(part)) < skip+page {
		return
	}
	part = part[skip:]
	_ = unix.Madvise(part[:uintptr(len(part))&^(page-1)], unix.MADV_DONTNEED)
}
