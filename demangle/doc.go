// Package demangle turns the linkage names of C++ and Rust into the names that people wrote.
package demangle
