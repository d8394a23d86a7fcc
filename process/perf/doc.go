// Package perf samples threads by the kernel's software clock (perf_event_open(2)): on
// each tick the kernel copies the registers of the program and a piece of its stack
// into a ring that is shared with us, together with what else is needed to make sense
// of them: forks, new programs, new mappings of code.
package perf
