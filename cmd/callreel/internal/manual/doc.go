// Package manual writes the manual pages of a tree of verbs, one page a verb, from the text that --help shows. It is
// for make dist and isn't part of the program.
package manual
