//go:build !linux

package hugepage

import "unsafe"

// Advise does nothing here.
func Advise(unsafe.Pointer, uintptr) {}
