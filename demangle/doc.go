// Package demangle turns the linkage names of C++, Rust and Swift into the names that
// people wrote.
//
// Names come from untrusted files: what is made of one is bounded in length, what
// cannot be read is returned unchanged, and nothing panics.
//
// Swift's names are read here, in the mangling since 4.0 (Swift ABI, Mangling.rst)
// and in the one before it: a parser makes a tree of a name, a printer writes it in
// the full or the short form, and neither allocates for names of the usual size.
package demangle
