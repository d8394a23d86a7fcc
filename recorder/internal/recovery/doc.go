// Package recovery is what a recorder notes in memory that the target has too, so that whoever comes after it can undo its work: which
// memory is its own, and which bytes it has replaced.
package recovery
