//go:build !linux

package sched

import (
	"context"

	"github.com/callreel/callreel/process"
)

// A Watcher needs Linux.
type Watcher struct{}

// Stats counts what a Watcher has seen.
type Stats struct{ Events, Lost, Odd, MinorsEnded uint64 }

// Sums are the kernel's own of a thread, in nanoseconds.
type Sums struct{ Running, Ready uint64 }

// Open returns process.ErrUnsupported.
func Open(context.Context, Options) (*Watcher, error) { return nil, process.ErrUnsupported }

// Source is "".
func (w *Watcher) Source() string { return "" }

// Reasons are none.
func (w *Watcher) Reasons() []error { return nil }

// WakeUps is false.
func (w *Watcher) WakeUps() bool { return false }

// Faults is false.
func (w *Watcher) Faults() bool { return false }

// Add returns process.ErrUnsupported.
func (w *Watcher) Add(int) error { return process.ErrUnsupported }

// Drain returns process.ErrUnsupported.
func (w *Watcher) Drain(func(tid, pid int, e Event)) error { return process.ErrUnsupported }

// Bound is 0.
func (w *Watcher) Bound() uint64 { return 0 }

// Stats are none.
func (w *Watcher) Stats() Stats { return Stats{} }

// Sums are not known.
func (w *Watcher) Sums(int) (Sums, bool) { return Sums{}, false }

// Threads are none.
func (w *Watcher) Threads() map[int]int { return nil }

// Close does nothing.
func (w *Watcher) Close(func(tid, pid int, e Event)) error { return nil }
