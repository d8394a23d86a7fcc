//go:build unix && !linux

package screen

import "syscall"

// byDefault runs f; what there is to be shown is on Linux only.
func byDefault(_ syscall.Signal, f func()) { f() }
