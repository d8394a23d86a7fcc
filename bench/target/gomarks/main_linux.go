// Command gomarks tells what a marker of package mark costs, in thread CPU time: it reads lines "MODE PASSES" from stdin until that ends, and
// prints nanoseconds a pass for each. Modes:
//
//	bare       a loop without any
//	instant    with an instant
//	int        with one that has an integer
//	span       with a begin and an end
//	made       with an instant whose name the program has made
//	recording  says whether somebody records, as 0 or 1, instead of a time
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/callreel/callreel/mark"
)

var sink uint64

// threadNS is the CPU time of this thread, in nanoseconds.
func threadNS() float64 {
	const clockThreadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&t)), 0)
	return float64(t.Nano())
}

func main() {
	runtime.LockOSThread()
	made := fmt.Sprint("made ", os.Getpid())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var mode string
		var passes int
		if _, err := fmt.Sscan(in.Text(), &mode, &passes); err != nil || passes < 1 {
			fmt.Fprintln(os.Stderr, "gomarks: MODE PASSES, not", in.Text())
			os.Exit(1)
		}
		x := sink
		began := threadNS()
		switch mode {
		case "bare":
			for range passes {
				x = x*3 + 1
			}
		case "instant":
			for range passes {
				mark.Instant("instant")
				x = x*3 + 1
			}
		case "int":
			for range passes {
				mark.InstantInt("int", int64(x))
				x = x*3 + 1
			}
		case "span":
			for range passes {
				mark.Begin("span")
				mark.End()
				x = x*3 + 1
			}
		case "made":
			for range passes {
				mark.Instant(made)
				x = x*3 + 1
			}
		case "recording":
			is := 0
			if mark.Recording() {
				is = 1
			}
			fmt.Println(is)
			continue
		default:
			fmt.Fprintln(os.Stderr, "gomarks: no mode", mode)
			os.Exit(1)
		}
		took := threadNS() - began
		sink = x
		fmt.Printf("%.3f\n", took/float64(passes))
	}
}
