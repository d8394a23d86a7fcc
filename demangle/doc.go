// Package demangle turns the linkage names of C++, Rust, Swift, D, OCaml, Ada and Fortran into
// the names that people wrote.
//
// Names come from untrusted files: what is made of one is bounded in length and in work,
// what cannot be read is returned unchanged, and nothing panics. For each language a parser
// reads a name once, from left to right, and a printer writes it in the full or the short
// form; neither allocates for names of the usual size, and both spend from one budget.
//
// C++ is read by the Itanium C++ ABI's grammar, and written as LLVM's demangler does, to the
// letter; Rust by the v0 mangling and the one before it, and written as Rust's own tools do
// without hashes; Swift in the mangling since 4.0 (Swift ABI, Mangling.rst) and in the one
// before it. D is written as GNU's c++filt does, Ada too; OCaml's modules with dots between
// them, and Fortran's with two colons.
package demangle
