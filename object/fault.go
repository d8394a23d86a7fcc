package object

import (
	"fmt"
	"runtime/debug"
)

// GuardFaults calls do, and turns a memory fault into an error that wraps ErrChanged:
// the fault of a mapped section (see SectionsData) whose file was truncated, or whose
// disk failed. It holds for this goroutine only; each that reads such a section needs
// its own. Other panics go on.
func GuardFaults(do func() error) (err error) {
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
		err = fmt.Errorf("%w: there is nothing behind address %#x any more", ErrChanged, fault.Addr())
	}()
	return do()
}
