// Package golang has what is known of Go: the functions of a program, the data of its runtime in a process's memory (threads, goroutines,
// where they were preempted), and the rules by which its code uses registers and stacks.
package golang
