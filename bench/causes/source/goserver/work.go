package main

import (
	"fmt"
	"strings"
	"time"
)

// assistPlant: while the heap is marked, whoever allocates has to help.
func assistPlant() server {
	keepAlive = makeTree(18)
	go func() {
		for {
			time.Sleep(300 * time.Millisecond)
			loadCatalog()
		}
	}()
	return server{handle: buildPage, threads: 2, pause: 3 * time.Millisecond, slow: 4 * time.Millisecond}
}

type tree struct {
	left, right *tree
	rest        [6]*tree
}

var (
	keepAlive *tree
	catalog   []byte
)

// loadCatalog makes so much garbage that the heap is marked meanwhile.
//
//go:noinline
func loadCatalog() {
	for range 1500 {
		catalog = make([]byte, 64<<10)
	}
}

func makeTree(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	t := &tree{left: makeTree(depth - 1), right: makeTree(depth - 1)}
	t.rest[0] = t.left
	return t
}

//go:noinline
func buildPage(r *request) {
	readHeader(r)
	makeParts(r)
	writeReply(r)
}

//go:noinline
func makeParts(r *request) {
	for range 12 + r.draw()%8 {
		part := newPart()
		r.seed ^= uint64(len(part)) * 2
	}
}

//go:noinline
func newPart() []byte { return make([]byte, 24<<10) }

// latencyPlant: goroutines that compute leave no processor to one that has become ready.
func latencyPlant() server {
	go func() {
		for {
			time.Sleep(300 * time.Millisecond)
			for range 6 {
				go renderVideo()
			}
		}
	}()
	return server{handle: readShards, threads: 2, pause: 400 * time.Microsecond, slow: 8 * time.Millisecond}
}

//go:noinline
func renderVideo() {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		mix(1, 50)
	}
}

//go:noinline
func readShards(r *request) {
	readHeader(r)
	for range 4 {
		readShard(r)
	}
	writeReply(r)
}

//go:noinline
func readShard(r *request) {
	time.Sleep(30 * time.Microsecond) // a disk that is fast
	mix(r.seed, 5)
}

// encodePlant: one reply has some hundred times as many rows.
func encodePlant() server {
	return server{handle: sendReport, threads: 2, every: 300 * time.Millisecond, pause: 400 * time.Microsecond, slow: 4 * time.Millisecond}
}

//go:noinline
func sendReport(r *request) {
	readHeader(r)
	rows := 20 + int(r.draw()%30)
	if r.odd {
		rows = 30000
	}
	var b strings.Builder
	for i := range rows {
		encodeRow(&b, i)
	}
	r.seed ^= uint64(b.Len()) * 2
	writeReply(r)
}

//go:noinline
func encodeRow(b *strings.Builder, i int) { fmt.Fprintf(b, "%d,%q,%x\n", i, "name", i*7919) }

// controlPlant has no cause: the work of each request is drawn.
func controlPlant() server {
	return server{handle: handleAny, threads: 2, pause: time.Millisecond}
}

//go:noinline
func handleAny(r *request) {
	readHeader(r)
	for range 5 + r.draw()%20 + r.draw()%20*(r.draw()%2) {
		doStep(r)
	}
	writeReply(r)
}

//go:noinline
func doStep(r *request) { r.seed ^= mix(r.seed, 10) << 1 }
