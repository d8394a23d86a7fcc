// Package target holds one process that is recorded: it maps memory into it, writes its text and puts it back, and leaves what another
// callreel needs to undo that.
package target
