package reel

import (
	"errors"
	"fmt"

	"github.com/callreel/callreel/internal/mapfault"
)

// ErrShorter is the error of a mapped file that somebody cut short while it was
// read.
var ErrShorter = errors.New("the file became shorter while it was read")

// CatchFaults calls do, and turns the memory fault of a mapped file that someone
// cuts short meanwhile into ErrShorter: the program, which may be recording, goes
// on. It holds for this goroutine only. Other panics go on.
func CatchFaults(do func() error) error {
	return mapfault.Catch(do, func(addr uintptr) error { return fmt.Errorf("%w (fault at %#x)", ErrShorter, addr) })
}
