// Package target holds one process that is recorded: it maps memory into it, writes its text and puts it back, and leaves what another
// callreel needs to undo that.
//
// Target.Mu is its only lock; docs/design/locks.md has the order of all locks of a recording. Nothing else is locked while it is held.
package target
