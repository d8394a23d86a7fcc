// waits: goroutines that compute, sleep and receive from one another. It begins when a line comes, says how many rounds it has made, and
// ends with its standard input.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"
)

var sum uint64

//go:noinline
func computes(n uint64) (s uint64) {
	for i := range n * 40_000 {
		s = s*31 + i
	}
	return s
}

//go:noinline
func sleeps() { time.Sleep(3 * time.Millisecond) }

//go:noinline
func receives(c <-chan uint64) uint64 { return <-c + 1 }

func main() {
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	_, _ = in.ReadString('\n')
	c := make(chan uint64)
	var all sync.WaitGroup
	const rounds = 60
	all.Go(func() {
		for range rounds {
			sum += receives(c)
		}
	})
	all.Go(func() {
		for i := range uint64(rounds) {
			sleeps()
			c <- computes(i % 3)
		}
	})
	all.Wait()
	fmt.Println("rounds", rounds)
	_, _ = in.ReadString('\n')
	if sum == 0 {
		os.Exit(1)
	}
	fmt.Println("waits ok")
}
