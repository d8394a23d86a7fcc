package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// oncePlant: rates are loaded once an hour, here every 300 ms, by who needs them first; the other waits.
func oncePlant() server {
	b := &rateBook{}
	b.current.Store(&hour{})
	go func() {
		for {
			time.Sleep(300 * time.Millisecond)
			h := &hour{}
			b.current.Store(h)
			h.rates() // somebody else is the first, so that requests wait
		}
	}()
	return server{handle: func(r *request) { renderInvoice(r, b) }, threads: 2, pause: 400 * time.Microsecond, slow: 8 * time.Millisecond}
}

type rateBook struct{ current atomic.Pointer[hour] }

type hour struct {
	once  sync.Once
	table [40]uint64
}

func (h *hour) rates() *[40]uint64 {
	h.once.Do(h.loadRates)
	return &h.table
}

//go:noinline
func (h *hour) loadRates() {
	for i := range h.table {
		h.table[i] = loadRate(i)
	}
}

//go:noinline
func loadRate(i int) uint64 { return mix(uint64(i), 900) }

//go:noinline
func currentRates(b *rateBook) *[40]uint64 { return b.current.Load().rates() }

//go:noinline
func renderInvoice(r *request, b *rateBook) {
	readHeader(r)
	r.seed ^= currentRates(b)[r.draw()%40] & ^uint64(1)
	writeReply(r)
}

// mapPlant: a large map is copied into one of another size.
func mapPlant() server {
	return server{handle: countVisitor, threads: 1, every: 300 * time.Millisecond, pause: 600 * time.Microsecond, slow: 3 * time.Millisecond}
}

//go:noinline
func countVisitor(r *request) {
	readHeader(r)
	n := 20 + int(r.draw()%20)
	if r.odd {
		n = 40000
	}
	seen := map[uint64]int{}
	for range n {
		remember(seen, r.draw())
	}
	writeReply(r)
}

//go:noinline
func remember(seen map[uint64]int, id uint64) { seen[id]++ }

// panicPlant: lines that aren't right are told by a panic, some thousands of them in one batch.
func panicPlant() server {
	return server{handle: parseBatch, threads: 2, every: 300 * time.Millisecond, pause: 600 * time.Microsecond, slow: 3 * time.Millisecond}
}

var errLine = errors.New("no number")

//go:noinline
func parseBatch(r *request) {
	readHeader(r)
	lines := 20
	if r.odd {
		lines = 3000
	}
	for i := range lines {
		lineOr(i, r.odd)
	}
	writeReply(r)
}

//go:noinline
func lineOr(i int, wrong bool) (n uint64) {
	defer func() {
		if recover() != nil {
			n = 0
		}
	}()
	return parseLine(i, wrong)
}

//go:noinline
func parseLine(i int, wrong bool) uint64 {
	if wrong {
		panic(errLine)
	}
	return mix(uint64(i), 1)
}

// concatPlant: a text is put together piece by piece, each time anew.
func concatPlant() server {
	return server{handle: joinNames, threads: 2, every: 300 * time.Millisecond, pause: 800 * time.Microsecond, slow: 3 * time.Millisecond}
}

//go:noinline
func joinNames(r *request) {
	readHeader(r)
	n := 10 + int(r.draw()%10)
	if r.odd {
		n = 4000
	}
	all := ""
	for range n {
		all = appendName(all, "somebody@example.org, ")
	}
	r.reply = append(r.reply[:0], all[:20]...)
	writeReply(r)
}

//go:noinline
func appendName(all, name string) string { return all + name }
