// Command goroutines counts the calls of its own that a recorder is to find:
//
//	goroutines rounds N   N rounds of everything, begun by a line on stdin; "counted" is printed after them
//	goroutines steady     rounds from the beginning until stdin ends
//
// A round grows stacks, panics at a nil pointer and recovers, spins until it is preempted, prints tracebacks and collects garbage, on
// goroutines that go from thread to thread, and calls assembly; all the while a CPU profile is taken. A few goroutines call marked a known number of times
// and print "goroutine ID calls".
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
)

var leaves, deeps, throwers, catchers, spins, marks, keepings atomic.Int64

//go:noinline
func leaf(x uint64) uint64 { leaves.Add(1); return x*3 + 1 }

//go:noinline
func deep(n int, x uint64) uint64 {
	deeps.Add(1)
	var pad [64]uint64
	pad[n&63] = x
	if n == 0 {
		return leaf(pad[x&63])
	}
	return deep(n-1, x+1) + pad[n&63]
}

//go:noinline
func thrower(n int, p *int) int {
	throwers.Add(1)
	switch {
	case n == 0 && throwers.Load()%5 == 0:
		return element(nil, n)
	case n == 0 && throwers.Load()%5 == 1:
		setElement(nil, n)
	case n == 0 && throwers.Load()%5 == 2:
		return outside([]int{1}, n+1)
	case n == 0 && throwers.Load()%5 == 3:
		return len(part([]int{1}, n+2))
	case n == 0:
		return load(p)
	}
	return thrower(n-1, p) + 1
}

// element and setElement fault beside the making and the end of a frame.
//
//go:noinline
func element(list *[]int, i int) int { return (*list)[i] }

//go:noinline
func setElement(list *[4]int, i int) { list[i] = i }

// outside and part panic by the runtime's functions for bounds.
//
//go:noinline
func outside(list []int, i int) int { return list[i] }

//go:noinline
func part(list []int, i int) []int { return list[i:] }

// load faults in a function without a frame.
//
//go:noinline
func load(p *int) int { return *p }

//go:noinline
func catcher(n int) (err any) {
	catchers.Add(1)
	defer func() { err = recover() }()
	thrower(n, nil)
	return nil
}

//go:noinline
func spin(n int) (x uint64) {
	spins.Add(1)
	for i := range n {
		x = x*7 + uint64(i)
	}
	return x
}

//go:noinline
func marked() { marks.Add(1) }

func main() {
	runtime.GOMAXPROCS(4)
	in := bufio.NewReader(os.Stdin)
	rounds := 0
	fmt.Println("ready")
	if os.Args[1] == "rounds" {
		rounds, _ = strconv.Atoi(os.Args[2])
		in.ReadString('\n')
	}
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		fail(err)
	}
	var stop atomic.Bool
	if rounds == 0 {
		go func() {
			if _, err := io.Copy(io.Discard, in); err != nil {
				fail(err)
			}
			stop.Store(true)
		}()
	}
	for i := 0; rounds == 0 && !stop.Load() || i < rounds; i++ {
		round()
	}
	for i := range 8 {
		name(100 + i)
	}
	pprof.StopCPUProfile()
	if rounds > 0 {
		fmt.Println("counted", leaves.Load())
		in.ReadString('\n')
	}
	fmt.Printf("calls main.leaf=%d main.deep=%d main.thrower=%d main.catcher=%d main.spin=%d main.marked=%d main.keeps=%d ok\n",
		leaves.Load(), deeps.Load(), throwers.Load(), catchers.Load(), spins.Load(), marks.Load(), keepings.Load())
}

func fail(what any) {
	fmt.Fprintln(os.Stderr, "wrong:", what)
	os.Exit(1)
}

func round() {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if got := deep(200, 1); got == 0 {
				fail("deep")
			}
			if err, ok := catcher(i & 7).(runtime.Error); !ok {
				fail(err)
			}
			runtime.Gosched()
			leaf(1)
			if !keepAll() {
				fail("keeps")
			}
		})
	}
	for range 6 {
		all.Go(func() { spin(2_000_000) })
	}
	all.Go(func() {
		runtime.Stack(make([]byte, 1<<16), true)
		runtime.GC()
	})
	all.Wait()
}

// name has a goroutine of its own call marked n times, and give its ID.
func name(n int) {
	done := make(chan []byte)
	go func() {
		for range n {
			marked()
			runtime.Gosched()
		}
		done <- ownStack()
	}()
	fmt.Printf("goroutine %s %d\n", bytes.Fields(<-done)[1], n)
}

func ownStack() []byte {
	b := make([]byte, 64)
	return b[:runtime.Stack(b, false)]
}
