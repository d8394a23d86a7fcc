// Package sched tells what the kernel's scheduler does with all threads of processes, on
// the processor's own clock: when each runs, on which processor, when it could run but
// doesn't, and when it waits, for what, and who ends that.
//
// Three sources tell it, each less than the one before:
//
//   - "bpf": programs of ours at the scheduler's tracepoints, written in memory that is
//     shared with us. It needs CAP_BPF and CAP_PERFMON, or root, and a kernel with BTF.
//   - "perf": events of perf_event_open(2) for each thread and processor. An ordinary
//     user may have them for processes of his own.
//   - "schedstat": only the kernel's own sums of each thread.
//
// With "bpf" the boundaries of what a thread runs are those of the kernel's own count, so
// that sums are the kernel's.
//
// Nothing is estimated. Where words of the kernel were lost, each thread that this
// may concern gets an event that says so.
package sched
