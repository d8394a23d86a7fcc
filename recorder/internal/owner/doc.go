// Package owner tells through shared memory whether the process that made it still runs. PIDs can't: they mean something else in
// another PID namespace.
package owner
