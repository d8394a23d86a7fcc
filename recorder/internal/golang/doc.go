// Package golang knows of Go what recording a Go program needs: its functions, where its runtime keeps threads and goroutines, and by which
// rules its code uses registers and stacks.
package golang
