// Package demangle turns the linkage names of C++ and Rust into the names that people wrote.
//
// Names come from untrusted files: what is made of one is bounded in length, what
// cannot be read is returned unchanged, and nothing panics.
package demangle
