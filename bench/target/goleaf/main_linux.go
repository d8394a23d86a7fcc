// Command goleaf tells what a traced call of a Go function costs, in thread CPU time: it reads lines "MODE CALLS" from stdin until that
// ends, and prints nanoseconds a call for each. Modes:
//
//	leaf   calls of leaf from a loop
//	deep   the same under 8 callers, f8 → … → f1 → leaf
//	frame  calls of frame, which has a frame and a stack check
//
// Only leaf and frame are there to be traced.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

var sink uint64

//go:noinline
func leaf(x uint64) uint64 { return x*3 + 1 }

//go:noinline
func frame(x uint64) uint64 { return nothing(x) + 1 }

//go:noinline
func nothing(x uint64) uint64 { return x * 3 }

//go:noinline
func f1(x uint64) uint64 { return leaf(x+1) + 1 }

//go:noinline
func f2(x uint64) uint64 { return f1(x+1) + 1 }

//go:noinline
func f3(x uint64) uint64 { return f2(x+1) + 1 }

//go:noinline
func f4(x uint64) uint64 { return f3(x+1) + 1 }

//go:noinline
func f5(x uint64) uint64 { return f4(x+1) + 1 }

//go:noinline
func f6(x uint64) uint64 { return f5(x+1) + 1 }

//go:noinline
func f7(x uint64) uint64 { return f6(x+1) + 1 }

//go:noinline
func f8(x uint64) uint64 { return f7(x+1) + 1 }

// threadNS is the CPU time of this thread, in nanoseconds.
func threadNS() float64 {
	const clockThreadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&t)), 0)
	return float64(t.Nano())
}

func main() {
	runtime.LockOSThread()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var mode string
		var calls int
		if _, err := fmt.Sscan(in.Text(), &mode, &calls); err != nil || calls < 1 {
			fmt.Fprintln(os.Stderr, "goleaf: MODE CALLS, not", in.Text())
			os.Exit(1)
		}
		x := sink
		began := threadNS()
		switch mode {
		case "leaf":
			for range calls {
				x = leaf(x)
			}
		case "deep":
			for range calls {
				x = f8(x)
			}
		default:
			for range calls {
				x = frame(x)
			}
		}
		took := threadNS() - began
		sink = x
		fmt.Printf("%.3f\n", took/float64(calls))
	}
}
