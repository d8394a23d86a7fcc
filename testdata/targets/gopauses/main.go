// Gopauses pauses its own recording, and goes on, some thousand times, and says how many calls it has made while it was recorded.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/callreel/callreel/mark"
)

var sum atomic.Int64

//go:noinline
func work(n int64) { sum.Add(n) }

//go:noinline
func busy(n int64) { sum.Add(n) }

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	var line string
	fmt.Println("ready")
	_, _ = fmt.Scanln(&line)
	done := make(chan bool)
	var stop atomic.Bool
	go func() {
		for !stop.Load() {
			busy(1)
		}
		done <- true
	}()
	kept := 0
	for i := range rounds {
		for n := range i % 17 {
			work(int64(n))
			kept++
		}
		mark.Pause()
		for n := range i % 31 {
			work(int64(n))
			if n == 5 {
				runtime.Gosched()
			}
		}
		mark.Resume()
	}
	stop.Store(true)
	<-done
	fmt.Printf("gopauses kept=%d rounds=%d ok\n", kept, rounds)
}
