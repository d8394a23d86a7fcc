// Package probes knows which probes of a recording are made, and which are on.
//
// A Maker makes a function's probe when it is first called. Switches switch functions off and on while recording by exchanging the
// beginnings of their events, see [stub.Switch], and leave out of what threads write the events that functions have no pairs for which are
// or were off. docs/design/switching.md says in which order that is done, and why.
package probes
