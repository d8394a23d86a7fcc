package main

import (
	"sync"
	"time"
)

// channelPlant: a goroutine waits on a channel whose sender is slow.
func channelPlant() server {
	asks := make(chan ask)
	for range 2 {
		go quoteFeed(asks)
	}
	return server{handle: func(r *request) { priceOrder(r, asks) }, threads: 2, every: 300 * time.Millisecond, pause: 400 * time.Microsecond, slow: 10 * time.Millisecond}
}

type ask struct {
	odd    bool
	answer chan uint64
}

//go:noinline
func priceOrder(r *request, asks chan ask) {
	readHeader(r)
	awaitQuote(r, asks)
	writeReply(r)
}

//go:noinline
func awaitQuote(r *request, asks chan ask) {
	a := ask{r.odd, make(chan uint64)}
	asks <- a
	r.seed ^= <-a.answer | 1
}

func quoteFeed(asks chan ask) {
	for a := range asks {
		a.answer <- computeQuote(a.odd)
	}
}

//go:noinline
func computeQuote(stale bool) uint64 {
	if stale {
		refreshCurve()
	}
	return mix(7, 30)
}

//go:noinline
func refreshCurve() {
	for i := range 100 {
		fitPoint(i)
	}
}

//go:noinline
func fitPoint(i int) uint64 { return mix(uint64(i), 700) }

// mutexPlant: another goroutine holds a mutex for long.
func mutexPlant() server {
	rules := &ruleSet{}
	go func() {
		for {
			time.Sleep(300 * time.Millisecond)
			rules.reload()
		}
	}()
	return server{handle: func(r *request) { checkAccess(r, rules) }, threads: 2, pause: 400 * time.Microsecond, slow: 10 * time.Millisecond}
}

type ruleSet struct {
	mu    sync.Mutex
	rules [64]uint64
}

//go:noinline
func (s *ruleSet) reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.rules {
		s.parseRule(i)
	}
}

//go:noinline
func (s *ruleSet) parseRule(i int) { s.rules[i] = mix(uint64(i), 1000) }

//go:noinline
func (s *ruleSet) rule(i int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules[i%len(s.rules)]
}

//go:noinline
func checkAccess(r *request, s *ruleSet) {
	readHeader(r)
	for i := range 4 {
		r.seed ^= s.rule(r.id+i) | 1
	}
	writeReply(r)
}

// poolPlant: an export takes all the connections of a pool.
func poolPlant() server {
	pool := make(chan int, 2)
	pool <- 1
	pool <- 2
	go func() {
		for {
			time.Sleep(300 * time.Millisecond)
			exportAll(pool)
		}
	}()
	return server{handle: func(r *request) { listUsers(r, pool) }, threads: 2, pause: 400 * time.Microsecond, slow: 10 * time.Millisecond}
}

//go:noinline
func exportAll(pool chan int) {
	a, b := <-pool, <-pool
	for i := range 30 {
		exportPart(i)
	}
	pool <- a
	pool <- b
}

//go:noinline
func exportPart(i int) {
	mix(uint64(i), 1000)
	time.Sleep(500 * time.Microsecond)
}

//go:noinline
func takeConnection(pool chan int) int { return <-pool }

//go:noinline
func listUsers(r *request, pool chan int) {
	readHeader(r)
	c := takeConnection(pool)
	mix(r.seed, 30+int(r.draw()%20))
	pool <- c
	writeReply(r)
}

// retryPlant: a busy resource is tried again after longer and longer pauses.
func retryPlant() server {
	return server{handle: reserveRoom, threads: 2, every: 300 * time.Millisecond, pause: 400 * time.Microsecond, slow: 10 * time.Millisecond}
}

//go:noinline
func reserveRoom(r *request) {
	readHeader(r)
	for attempt := 0; !tryReserve(r, attempt); attempt++ {
		backOff(attempt)
	}
	writeReply(r)
}

//go:noinline
func tryReserve(r *request, attempt int) bool {
	mix(r.seed, 5)
	return !r.odd || attempt >= 4
}

//go:noinline
func backOff(attempt int) { time.Sleep(2 * time.Millisecond << attempt) }
