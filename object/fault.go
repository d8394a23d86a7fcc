package object

import (
	"fmt"

	"github.com/callreel/callreel/internal/mapfault"
)

// CatchFaults calls do, and turns a memory fault into an error that wraps ErrChanged:
// the fault of a mapped section (see SectionsData) whose file was truncated, or whose
// disk failed. It holds for this goroutine only; each that reads such a section needs
// its own. Other panics go on.
func CatchFaults(do func() error) error {
	return mapfault.Catch(do, func(addr uintptr) error {
		return fmt.Errorf("%w: there is nothing behind address %#x any more", ErrChanged, addr)
	})
}
