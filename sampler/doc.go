// Package sampler takes the stacks of all threads of a process, live or from a core
// file, and names what is on them.
//
// A live thread is stopped for as long as it takes to read its registers and, with
// one system call, the part of its stack that is in use; it is walked while it runs
// on. What lies elsewhere, as the stack that a signal handler on an alternate stack
// has interrupted, is read later, and frames found so say it.
//
// Functions have the names that debuggers show: where there is debug information, of the
// definition and not of an alias. Code that a JIT compiler made has the names of the
// compiler's /tmp/perf-PID.map, if that is the process's own.
//
// Sample takes stacks at a rate: of threads that run by the kernel's clock, which copies
// registers and a piece of the stack, and of all threads, by stopping those that run and
// walking those that wait where they are.
//
// Everything read from the target, its files and cores is untrusted. Stacks never
// pass for whole when they are not: each has the reason why its walk ended.
package sampler
