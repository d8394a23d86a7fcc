// Package mapfault turns memory faults of mapped files into errors. A file faults when somebody truncates it or its
// disk fails; the program, which may be recording, goes on.
package mapfault

import "runtime/debug"

// Catch calls do. If it faults, and that is no fault of Go's own, the error is what changed returns for the address.
// It holds for this goroutine only; each that reads what is mapped needs its own. Other panics go on.
func Catch(do func() error, changed func(addr uintptr) error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		fault, ok := r.(interface{ Addr() uintptr })
		if !ok {
			panic(r)
		}
		err = changed(fault.Addr())
	}()
	return do()
}
