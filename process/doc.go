// Package process is the live Linux process: its threads, registers, memory,
// maps, and how to stop it, make it call the kernel, and let it go unharmed.
//
// The rule above all others is that the target is never harmed, also when the
// tracing process is killed by SIGKILL between any two instructions. The means:
//
//   - Threads are seized (PTRACE_SEIZE) and stopped with PTRACE_INTERRUPT, never
//     by sending a signal. A tracer that dies leaves such threads running.
//   - Stops are looked at with WNOWAIT. A signal that is being delivered when
//     the tracer dies is then still delivered: consuming the stop would lose it.
//   - System-call stops and single steps are not used on an attached process.
//     The kernel turns both into a SIGTRAP for the target when the tracer dies
//     before it has waited for the stop. (Thread.Step and
//     StopOptions.UnsafeSyscall are the exceptions, and say so; Trace is for
//     commands of our own.) With PTRACE_O_TRACESYSGOOD it does so for steps and
//     breakpoints only: the way from an exec to the program's entry point
//     (AwaitExec, Launch) has stops for system calls and harmless signals only.
//     Thread.Invoke has system-call stops, too, of the one thread that calls a
//     function, and nothing but those.
//   - Remote system calls run as a chain of signal frames on the thread's own
//     stack that ends in the thread's own registers: once started it restores
//     everything by itself, whether its tracer still lives or not.
//   - PTRACE_O_EXITKILL is used only on a command that Launch has started and
//     not handed over yet, and on one that Trace runs to its end.
//
// Live processes need linux/amd64. Elsewhere everything that needs one returns
// ErrUnsupported; the readers of /proc text and of seccomp filters work
// everywhere.
package process
