package hugepage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// size is that of a huge page on amd64. Elsewhere it may be another one, and the advice is worth less.
const size = 2 << 20

// Advise asks for huge pages for the memory at p, of n bytes, as far as it has room for whole ones. It changes nothing but what it
// costs to touch the memory first, so nothing comes of its failing.
func Advise(p unsafe.Pointer, n uintptr) {
	at := uintptr(p)
	skip := -at & (size - 1)
	if n < skip+size {
		return
	}
	n = (n - skip) &^ (size - 1)
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(p, skip)), n), unix.MADV_HUGEPAGE)
}
