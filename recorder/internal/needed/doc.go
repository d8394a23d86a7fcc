// Package needed finds the libraries that a program will load at its start, without starting it.
package needed
