// Package waitcalls knows the functions of C libraries in which threads wait, or let others go on, and what is kept of their arguments.
package waitcalls
