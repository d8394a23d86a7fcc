// One portion of work for each line of input, answered by what came of it.
package main

import (
	"bufio"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

type tree struct {
	Left, Right *tree
	Value       int
}

func grow(depth, value int) *tree {
	if depth == 0 {
		return nil
	}
	return &tree{grow(depth-1, 2*value), grow(depth-1, 2*value+1), value}
}

func (t *tree) sum() int {
	if t == nil {
		return 0
	}
	return t.Value + t.Left.sum() + t.Right.sum()
}

var errDeep = errors.New("deep")

// deep needs a stack that grows, and leaves it by a panic.
func deep(n int) int {
	var room [64]int
	room[n%64] = n
	if n == 0 {
		panic(errDeep)
	}
	return deep(n-1) + room[n%64]
}

func recovers(n int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered: %w", r.(error))
		}
	}()
	deep(n)
	return nil
}

// faults is what the runtime makes a panic of a signal for.
func faults() (said string) {
	defer func() { said = fmt.Sprint(recover()) }()
	var none *tree
	return fmt.Sprint(none.Value)
}

func squares(workers, n int) int {
	in, out := make(chan int), make(chan int, 4)
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			for v := range in {
				runtime.Gosched()
				out <- v * v
			}
		}()
	}
	go func() {
		for i := range n {
			in <- i
		}
		close(in)
		all.Wait()
		close(out)
	}()
	sum := 0
	for {
		select {
		case v, more := <-out:
			if !more {
				return sum
			}
			sum += v
		case <-time.After(time.Minute):
			return -1
		}
	}
}

func packed(text string) (int, string) {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 6)
	io.WriteString(w, text)
	w.Close()
	size := b.Len()
	back, _ := io.ReadAll(flate.NewReader(&b))
	return size, fmt.Sprintf("%x", sha256.Sum256(back))[:16]
}

func portion() {
	t := grow(11, 1)
	runtime.GC()
	words := map[string]int{}
	seed := 42
	for range 3000 {
		seed = (seed*1103515245 + 12345) % 2147483648
		words[fmt.Sprintf("w%d", seed>>16%97)]++
	}
	var names []string
	for w := range words {
		names = append(names, w)
	}
	sort.Slice(names, func(i, k int) bool {
		return words[names[i]] > words[names[k]] || words[names[i]] == words[names[k]] && names[i] < names[k]
	})
	said, _ := json.Marshal(map[string]any{"words": words, "names": names[:20]})
	var back map[string]any
	err := json.Unmarshal(said, &back)
	grown := make(chan error)
	go func() { grown <- recovers(2000) }()
	fmt.Println(t.sum(), len(words), strings.Join(names[:3], ","), len(said), len(back), err, <-grown, faults(), squares(8, 200))
	fmt.Println(packed(string(said)))
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		portion()
		fmt.Println("~end")
	}
}
