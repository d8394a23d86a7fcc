// Gomarks THREADS ROUNDS says things by every function of package mark, in goroutines that go from thread to thread, and logs what it says. It
// starts when a line comes on stdin, prints its log, one line a mark, then "logged", and stays until stdin ends. A line of the log has, with tabs
// between:
//
//	said  goroutine  kind  title  arguments, with | between
//
// With ROUNDS 0 it begins at once, goes on until stdin ends, and logs nothing.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/mark"
)

// lane is the log of a goroutine.
type lane struct {
	id     uint64
	number int
	log    bytes.Buffer
}

func (l *lane) say(kind, title string, arguments ...any) {
	fmt.Fprintf(&l.log, "said\t%d\t%s\t%s\t", l.id, kind, title)
	for i, a := range arguments {
		if i > 0 {
			l.log.WriteByte('|')
		}
		fmt.Fprint(&l.log, a)
	}
	l.log.WriteByte('\n')
}

// goroutine is the ID of the one that calls it.
func goroutine() uint64 {
	var b [64]byte
	f := strings.Fields(string(b[:runtime.Stack(b[:], false)]))
	id, err := strconv.ParseUint(f[1], 10, 64)
	if err != nil {
		panic(err)
	}
	return id
}

// moves lets the goroutine go on on another thread, sooner or later.
func moves(n int) {
	for range n {
		runtime.Gosched()
	}
}

// deep grows the stack, so that it moves.
//
//go:noinline
func deep(l *lane, n int) int {
	var room [64]int
	for i := range room {
		room[i] = n + i
	}
	if n > 0 {
		return deep(l, n-1) + room[n%64]
	}
	mark.Instant("deep")
	l.say("instant", "deep")
	return room[1]
}

var kept int

func (l *lane) once(i int) {
	late, text := fmt.Sprintf("late %d", i%5), fmt.Sprintf("round %d of %d", i, l.number)
	id := uint64(l.number)<<40 | uint64(i)
	half := float64(i) / 2
	s := mark.Start("frame")
	l.say("begin", "frame")
	mark.BeginInt("numbered", int64(-i))
	l.say("begin", "numbered", -i)
	moves(i % 3)
	mark.BeginText("100% {odd|name}", text)
	l.say("begin", "100% {odd|name}", text)
	mark.Begin(late)
	l.say("begin", late)
	mark.AsyncBegin("request", id)
	l.say("async-begin", "request", id)
	mark.FlowOut("job", id)
	l.say("flow-out", "job", id)
	moves(i % 2)
	mark.Counter("queue", int64(i-100))
	l.say("counter", "queue", i-100)
	mark.Counter(late, int64(i))
	l.say("counter", late, i)
	mark.CounterFloat("share", half)
	l.say("counter", "share", half)
	mark.CounterFloat(late, -half)
	l.say("counter", late, strconv.FormatFloat(-half, 'g', -1, 64))
	mark.EndOf("100% {odd|name}")
	l.say("end", "100% {odd|name}")
	mark.AsyncStep("request", id)
	l.say("async-step", "request", id)
	kept += deep(l, i%40)
	mark.FlowIn("job", id)
	l.say("flow-in", "job", id)
	mark.FlowOut(late, id)
	l.say("flow-out", late, id)
	mark.FlowIn(late, id)
	l.say("flow-in", late, id)
	mark.Instant("")
	l.say("instant", "")
	mark.InstantInt("moment", int64(i)<<33)
	l.say("instant", "moment", int64(i)<<33)
	mark.InstantText(late, "constant")
	l.say("instant", late, "constant")
	mark.InstantText("constant", "")
	l.say("instant", "constant", "")
	mark.AsyncEnd("request", id)
	l.say("async-end", "request", id)
	if mark.Recording() {
		mark.Instant("recorded")
		l.say("instant", "recorded")
	}
	moves(1)
	mark.End()
	l.say("end", "")
	s.End()
	l.say("end", "frame")
}

func main() {
	number := func(i int) int {
		n, err := strconv.Atoi(os.Args[i])
		if err != nil {
			panic(err)
		}
		return n
	}
	lanes, rounds := make([]lane, number(1)), number(2)
	runtime.GOMAXPROCS(4)
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	var over atomic.Bool
	if rounds == 0 {
		go func() {
			for in.Scan() {
			}
			over.Store(true)
		}()
	} else if !in.Scan() {
		return
	}
	var done sync.WaitGroup
	for w := range lanes {
		l := &lanes[w]
		l.number = w
		done.Go(func() {
			l.id = goroutine()
			name := fmt.Sprintf("worker %d by its own name", w)
			mark.GoroutineName(name)
			l.say("instant", "goroutine name", name)
			for i := 0; i < rounds || rounds == 0 && !over.Load(); i++ {
				if l.once(i); rounds == 0 {
					l.log.Reset()
					time.Sleep(time.Millisecond) // there is no need for more
				}
			}
		})
	}
	done.Wait()
	out := bufio.NewWriter(os.Stdout)
	for w := range lanes {
		out.Write(lanes[w].log.Bytes())
	}
	fmt.Fprintln(out, "logged")
	out.Flush()
	if rounds > 0 {
		in.Scan()
	}
	semaphore := 0
	if mark.Recording() {
		semaphore = 1
	}
	fmt.Printf("says semaphore=%d ok\n", semaphore)
}
