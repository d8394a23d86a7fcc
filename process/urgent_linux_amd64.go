package process

import "golang.org/x/sys/unix"

// urgent lets the calling thread run before all that is not, because a process
// stands still until it is done, and returns what ends that. On a busy machine
// the process would stand for as long as we wait for our turn. What the thread
// does takes milliseconds, and it sleeps where it waits. Without the permission
// (CAP_SYS_NICE) it is a thread like others.
func urgent() (end func()) {
	const resetOnFork = 1
	fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: resetOnFork, Priority: 1}
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil || before.Policy != unix.SCHED_NORMAL || unix.SchedSetAttr(0, &fifo, 0) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetAttr(0, before, 0) } // less is always permitted
}
