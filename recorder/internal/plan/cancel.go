package plan

import (
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// cancellationPoints are system calls that a C library wraps in the same two calls, and that are small.
var cancellationPoints = []string{"read", "write", "poll", "pause", "recvfrom", "sendto"}

// markCancellation finds the functions that let a thread be cancelled at any instruction, and stop that again. The C
// library calls them before and after each system call that is a cancellation point, and a signal in between makes the
// unwinder run from where the thread is (pthreads(7), "Cancellation points"): in them, for an instruction or two.
// Their own names are local, so they are known by their callers.
func (im *Image) markCancellation() {
	seen := map[int]int{}
	for i := range im.chunks {
		c := &im.chunks[i]
		if !c.waits {
			continue
		}
		for _, to := range im.calledAroundSyscall(c) {
			seen[to]++
		}
	}
	for i, n := range seen {
		if n > 1 {
			im.chunks[i].cancels = true
		}
	}
}

// calledAroundSyscall returns the functions that c calls directly, none when it makes no system call.
func (im *Image) calledAroundSyscall(c *chunk) []int {
	t := im.textAt(c.start)
	var called []int
	syscalls := false
	for pc := c.start; pc < c.end; {
		code := t.data[pc-t.start : c.end-t.start]
		in, err := amd64.Decode(code)
		if err != nil {
			break
		}
		if to, direct := in.Target(pc); direct && in.Kind == amd64.Call {
			if i := im.chunkAt(to); i >= 0 && im.chunks[i].start == to && !slices.Contains(called, i) {
				called = append(called, i)
			}
		}
		syscalls = syscalls || len(code) >= 2 && code[0] == 0x0F && code[1] == 0x05
		pc += uint64(in.Len)
	}
	if !syscalls {
		return nil
	}
	return called
}
