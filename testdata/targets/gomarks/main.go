// Gomarks says what it does by package mark, in goroutines, and prints how often it said what.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"sync"

	"github.com/callreel/callreel/mark"
)

const (
	workers = 4
	jobs    = 250
)

func main() {
	fmt.Println("ready")
	if !bufio.NewScanner(os.Stdin).Scan() {
		return
	}
	said := map[string]int{}
	var mu sync.Mutex
	log := func(lines ...string) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range lines {
			said[l]++
		}
	}
	type job struct{ id, size int }
	queue := make(chan job, 16)
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			mark.InstantInt("worker", int64(w))
			log("InstantInt worker")
			for j := range queue {
				mark.FlowIn("job", uint64(j.id))
				work(j.size)
				mark.AsyncEnd("request", uint64(j.id))
				log("FlowIn job", "BeginInt work", "End", "AsyncEnd request")
			}
		})
	}
	for i := range jobs {
		s := mark.Start("make")
		mark.AsyncBegin("request", uint64(i))
		mark.FlowOut("job", uint64(i))
		queue <- job{i, i % 7}
		mark.Counter("queue", int64(len(queue)))
		mark.CounterFloat("share", float64(len(queue))/16)
		s.End()
		log("Begin make", "AsyncBegin request", "FlowOut job", "Counter queue", "CounterFloat share", "EndOf make")
	}
	close(queue)
	done.Wait()
	lines := make([]string, 0, len(said))
	for l := range said {
		lines = append(lines, l)
	}
	sort.Strings(lines)
	for _, l := range lines {
		fmt.Printf("said %d %s\n", said[l], l)
	}
	fmt.Println("done", mark.Recording())
	bufio.NewScanner(os.Stdin).Scan()
}

//go:noinline
func work(size int) {
	mark.BeginInt("work", int64(size))
	for range size * 100 {
	}
	mark.End()
}
