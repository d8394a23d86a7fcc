package viewer

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// errShorter says that a mapped file has been cut short by somebody while it was read.
var errShorter = errors.New("the file became shorter while it was read")

// guarded calls do and turns the memory fault of a mapped file that someone cuts short meanwhile into an error: the program,
// which may be recording, goes on. It holds for this goroutine only.
func guarded(do func() error) (err error) {
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
		err = fmt.Errorf("viewer: %w (fault at %#x)", errShorter, fault.Addr())
	}()
	return do()
}
