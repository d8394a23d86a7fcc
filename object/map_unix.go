//go:build unix

package object

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openNonblock makes opening a FIFO or a device return at once. It also keeps a
// terminal from becoming the controlling one. Regular files are not affected.
const openNonblock = unix.O_NONBLOCK | unix.O_NOCTTY

// reserve returns room for size bytes, all zero, of which each page takes memory once
// it is written to.
func reserve(size int) (data []byte, free func() error, err error) {
	data, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|mapNoReserve)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

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

// onDisk is how many bytes a file occupies: holes don't count.
func onDisk(info os.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Blocks < 0 || int64(st.Blocks) > info.Size()>>9 {
		return info.Size()
	}
	return int64(st.Blocks) << 9 // in units of 512 bytes, whatever the file system's
}

// onlyOurs says whether nobody but root and the user whom we are may write to a file.
// With an access control list the group's bits are the most that any entry allows.
func onlyOurs(info os.FileInfo) bool {
	const othersMayWrite = 0o022
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid()) && info.Mode().Perm()&othersMayWrite == 0
}
