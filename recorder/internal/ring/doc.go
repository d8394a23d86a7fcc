// Package ring is the memory that stubs in the target write events to and that the recorder drains: one memfd, mapped
// by both. It alone knows the layout; the stub code in package probe takes every offset from its constants.
//
// A thread owns a slot, found by its kernel thread ID, and the slot points into a chunk of the shared pool. Writing an
// event claims 16 bytes of the chunk by one XADD on the slot, which only its own thread ever does, and stores the
// event's last word last; a word of zero is an event that is not there yet. See docs/design/rings.md for the parts,
// and docs/design/ring-protocol.md for the order of stores and loads.
package ring
