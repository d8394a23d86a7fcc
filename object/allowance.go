package object

import (
	"errors"
	"fmt"
	"sync"
)

// ErrMemory is wrapped by the errors of what would take more memory than an
// Allowance has.
var ErrMemory = errors.New("over the memory limit")

// DefaultMemory is the limit of an Allowance that nobody has set, in bytes.
const DefaultMemory = 256 << 20

// creditFactor is how many bytes each byte that a file really has on disk adds to
// an allowance. Debug information is what grows most: .debug_str of C++ packs to a
// twentieth, whole files to a fifth, and what is kept of a symbol takes some eight
// times its 40 bytes. A file that a few bytes make large gains nothing by it.
const creditFactor = 8

// An Allowance bounds the memory that one file, or all files of one process, may
// take together: what is read of them, inflated from them and kept about them. The
// limit holds for small files; what a file really occupies on disk adds to it, so
// that a large one can be read while a small one that claims to be large cannot. It
// may be used by several goroutines at once.
type Allowance struct {
	mu    sync.Mutex
	limit int64 // as it was set
	extra int64 // by the files that are open
	used  int64
}

// NewAllowance makes one of limit bytes, DefaultMemory when limit is 0 or less.
func NewAllowance(limit int64) *Allowance {
	if limit <= 0 {
		limit = DefaultMemory
	}
	return &Allowance{limit: limit}
}

// A MemoryError says what would have gone beyond an Allowance. It wraps ErrMemory.
type MemoryError struct {
	What  string // needs the memory
	Want  int64  // bytes
	Used  int64  // bytes, before
	Limit int64  // bytes, with what the files' sizes add
}

// Error says how much is wanted and what is allowed.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs %s, with %s in use of %s allowed: %v (--memory-limit raises it)",
		e.What, inBytes(e.Want), inBytes(e.Used), inBytes(e.Limit), ErrMemory)
}

// Unwrap returns ErrMemory.
func (e *MemoryError) Unwrap() error { return ErrMemory }

func inBytes(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// Take counts n bytes for something, or returns a MemoryError when there is no room
// for them. A nil Allowance has room for anything.
func (a *Allowance) Take(n uint64, what string) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	const most = 1 << 62
	want := int64(min(n, most))
	if limit := a.limit + a.extra; want > limit-a.used {
		return &MemoryError{What: what, Want: want, Used: a.used, Limit: limit}
	}
	a.used += want
	return nil
}

// Give counts n bytes as free again.
func (a *Allowance) Give(n uint64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= int64(n)
}

// Limit is what the Allowance was made with.
func (a *Allowance) Limit() int64 { return a.limit }

// Used is how many bytes are taken.
func (a *Allowance) Used() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Total is how many bytes may be taken together: the limit, and what the files add.
func (a *Allowance) Total() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limit + a.extra
}

// Remaining is how many bytes may still be taken.
func (a *Allowance) Remaining() uint64 {
	if a == nil {
		return 1 << 62
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return uint64(max(0, a.limit+a.extra-a.used))
}

// credit notes that a file of n bytes on disk has been opened, or closed when n is
// negative.
func (a *Allowance) credit(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	const most = 1 << 50 // no sum of such can wrap
	a.extra += creditFactor * max(-most, min(n, most))
}
