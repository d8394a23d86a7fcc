// Package perf has the kernel's events of threads (perf_event_open(2)), which it writes
// into rings that it shares with us: samples by its software clock, with the registers of
// the program and a piece of its stack, and what else is needed to make sense of them;
// and when threads come onto a processor, leave it, and miss pages.
package perf
