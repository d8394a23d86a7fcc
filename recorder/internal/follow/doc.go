// Package follow finds out which processes belong to a recording that follows children, and has the programs recorded that they start.
//
// A forked child writes into the rings of its parent's recording: a Family is one process with the children that it has forked. A
// process that replaces its program leaves its family, and its new program gets a recording of its own, with rings of its own: a Tree is
// all recordings that go into one reel. Process IDs come out of memory that the target can write, so that nothing is done to a process
// because somebody has named it; see docs/design/libraries.md, "Who belongs to a family".
package follow
