// Package hugepage makes large tables whose memory the kernel gives in huge pages, where it does so for who asks
// (Linux's transparent_hugepage "madvise" or "always"). A table of a program with a million functions is some 100 MB; filling it by pages
// of 4 KiB takes longer than working out what to fill it with.
package hugepage

import "unsafe"

// Make returns a slice of n zero elements. It is an ordinary slice of the garbage collector's.
func Make[T any](n int) []T {
	var one T
	s := make([]T, n)
	Advise(unsafe.Pointer(unsafe.SliceData(s)), uintptr(n)*unsafe.Sizeof(one))
	return s
}

// Grow returns s, whose elements it keeps, with room for n more.
func Grow[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	grown := Make[T](max(len(s)+n, 2*cap(s)))[:len(s)]
	copy(grown, s)
	return grown
}
