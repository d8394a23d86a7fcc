// Goserver is a server with one planted cause, which the first argument names.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A request is one of many. Odd is the rare one that meets the cause.
type request struct {
	id    int
	odd   bool
	seed  uint64
	reply []byte
}

type server struct {
	handle  func(*request)
	threads int
	every   time.Duration // between odd requests; 0 for none
	pause   time.Duration // between requests, on average
	slow    time.Duration // what counts as slow in the log
}

var plants = map[string]func() server{
	"channel": channelPlant, "mutex": mutexPlant, "assist": assistPlant, "latency": latencyPlant,
	"pool": poolPlant, "retry": retryPlant, "encode": encodePlant, "control": controlPlant,
	"waitgroup": waitGroupPlant, "rwmutex": rwmutexPlant, "select": selectPlant, "regexp": regexpPlant, "fsync": fsyncPlant,
	"collect": collectPlant, "syscall": pollPlant, "once": oncePlant, "mapgrow": mapPlant, "panic": panicPlant, "concat": concatPlant,
}

func (r *request) draw() uint64 {
	r.seed ^= r.seed << 13
	r.seed ^= r.seed >> 7
	r.seed ^= r.seed << 17
	return r.seed
}

func main() {
	if len(os.Args) < 3 || plants[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: goserver PLANT SECONDS [SEED]")
		os.Exit(2)
	}
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	seed := uint64(1)
	if len(os.Args) > 3 {
		n, _ := strconv.ParseUint(os.Args[3], 10, 64) // 0 is a seed, too
		seed += n
	}
	s := plants[os.Args[1]]()
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	var stop atomic.Bool
	go func() {
		select {
		case <-term:
		case <-time.After(time.Duration(seconds * float64(time.Second))):
		}
		stop.Store(true)
	}()
	fmt.Println("ready")
	var (
		ids     atomic.Int64
		nextOdd atomic.Int64
		workers sync.WaitGroup
		took    = make([][]time.Duration, s.threads)
		begin   = time.Now()
	)
	nextOdd.Store(int64(60 * time.Millisecond))
	for w := range s.threads {
		workers.Go(func() {
			own := &request{seed: seed*7919 + uint64(w)*104729 + 17}
			for !stop.Load() {
				time.Sleep(time.Duration(own.draw() % uint64(2*s.pause)))
				r := &request{id: int(ids.Add(1)), seed: own.draw() | 1}
				now := int64(time.Since(begin))
				if next := nextOdd.Load(); s.every > 0 && now >= next {
					r.odd = nextOdd.CompareAndSwap(next, now+int64(s.every))
				}
				start := time.Now()
				s.handle(r)
				took[w] = append(took[w], time.Since(start))
			}
		})
	}
	workers.Wait()
	printLog(slices.Concat(took...), s.slow)
}

func printLog(all []time.Duration, slow time.Duration) {
	slices.Sort(all)
	slows := 0
	for slow > 0 && slows < len(all) && all[len(all)-1-slows] >= slow {
		slows++
	}
	at := func(of []time.Duration, share float64) int64 {
		if len(of) == 0 {
			return 0
		}
		return of[min(len(of)-1, int(float64(len(of))*share))].Microseconds()
	}
	runtime.KeepAlive(keepAlive)
	runtime.KeepAlive(catalog)
	ordinary := all[:len(all)-slows]
	fmt.Printf(`{"requests":%d,"p50_us":%d,"p95_us":%d,"p99_us":%d,"slow":%d,"slow_p50_us":%d,"max_us":%d}`+"\n", len(all),
		at(ordinary, 0.5), at(ordinary, 0.95), at(ordinary, 0.99), slows, at(all[len(ordinary):], 0.5), at(all, 1))
}

var mixed atomic.Uint64

// mix is work whose time depends on n alone: about half a microsecond a unit.
//
//go:noinline
func mix(seed uint64, n int) uint64 {
	for range n * 512 {
		seed = (seed ^ 0x5a) * 1099511628211
	}
	mixed.Store(seed)
	return seed
}

//go:noinline
func readHeader(r *request) {
	for i := range 6 + r.draw()%8 {
		r.reply = append(r.reply, byte(mix(i, 3)))
	}
}

//go:noinline
func writeReply(r *request) {
	for i := range 8 + r.draw()%8 {
		r.reply = append(r.reply, byte(mix(i, 4+int(r.draw()%10))))
	}
}
