package main

import (
	"sync"
	"time"
)

// waitGroupPlant: of three goroutines that a request waits for one has a large shard.
func waitGroupPlant() server {
	return server{handle: countAll, threads: 2, every: 300 * time.Millisecond, pause: 800 * time.Microsecond, slow: 8 * time.Millisecond}
}

//go:noinline
func countAll(r *request) {
	readHeader(r)
	var shards sync.WaitGroup
	for i := range 3 {
		shards.Go(func() { countShard(r.odd && i == 1) })
	}
	awaitShards(&shards)
	writeReply(r)
}

//go:noinline
func awaitShards(shards *sync.WaitGroup) { shards.Wait() }

//go:noinline
func countShard(large bool) {
	if large {
		for i := range 40 {
			countSegment(i)
		}
	}
	mix(3, 40)
}

//go:noinline
func countSegment(i int) { mix(uint64(i), 700) }

// rwmutexPlant: who writes waits for one who reads for long.
func rwmutexPlant() server {
	t := &quotaTable{used: map[int]uint64{}}
	go func() {
		for {
			time.Sleep(300 * time.Millisecond)
			t.audit()
		}
	}()
	return server{handle: func(r *request) { chargeQuota(r, t) }, threads: 2, pause: 400 * time.Microsecond, slow: 10 * time.Millisecond}
}

type quotaTable struct {
	mu   sync.RWMutex
	used map[int]uint64
}

//go:noinline
func (t *quotaTable) audit() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range 50 {
		t.auditUser(i)
	}
}

//go:noinline
func (t *quotaTable) auditUser(i int) uint64 { return t.used[i] + mix(uint64(i), 900) }

//go:noinline
func (t *quotaTable) charge(user int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[user%64]++
}

//go:noinline
func chargeQuota(r *request, t *quotaTable) {
	readHeader(r)
	t.charge(r.id)
	writeReply(r)
}

// selectPlant: an answer is lost, and the request waits until its time is over.
func selectPlant() server {
	asks := make(chan chan int)
	lost := make(chan bool, 64)
	go func() {
		for answer := range asks {
			select {
			case <-lost:
			default:
				mix(5, 20)
				answer <- 1
			}
		}
	}()
	return server{handle: func(r *request) { findPrice(r, asks, lost) }, threads: 2, every: 300 * time.Millisecond, pause: 400 * time.Microsecond, slow: 12 * time.Millisecond}
}

//go:noinline
func findPrice(r *request, asks chan chan int, lost chan bool) {
	readHeader(r)
	if r.odd {
		lost <- true
	}
	awaitPrice(asks)
	writeReply(r)
}

//go:noinline
func awaitPrice(asks chan chan int) bool {
	answer := make(chan int, 1)
	asks <- answer
	select {
	case <-answer:
		return true
	case <-time.After(15 * time.Millisecond):
		return false
	}
}
