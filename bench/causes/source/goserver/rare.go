package main

import (
	"bytes"
	"os"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

var words = regexp.MustCompile(`(\w+)@(\w+)\.(com|org|net)\b`)

// regexpPlant: one text is a hundred times as long.
func regexpPlant() server {
	text := bytes.Repeat([]byte("mail to anna@example.org or to bert at example.net "), 1200)
	return server{handle: func(r *request) { maskMails(r, text) }, threads: 2, every: 300 * time.Millisecond, pause: 800 * time.Microsecond, slow: 3 * time.Millisecond}
}

//go:noinline
func maskMails(r *request, text []byte) {
	readHeader(r)
	n := 150 + int(r.draw()%100)
	if r.odd {
		n = len(text)
	}
	r.seed ^= uint64(len(words.FindAllIndex(text[:n], -1))) * 2
	writeReply(r)
}

// fsyncPlant: now and then what was written is made sure of.
func fsyncPlant() server {
	f, err := os.CreateTemp("", "goserver-*")
	if err != nil {
		panic(err)
	}
	_ = os.Remove(f.Name()) // it ends with the program
	return server{handle: func(r *request) { storeVote(r, f) }, threads: 2, every: 350 * time.Millisecond, pause: 800 * time.Microsecond, slow: 4 * time.Millisecond}
}

var voteBlock = make([]byte, 24<<20)

//go:noinline
func storeVote(r *request, f *os.File) {
	readHeader(r)
	if r.odd {
		sealVotes(f)
	}
	writeReply(r)
}

//go:noinline
func sealVotes(f *os.File) {
	if _, err := f.WriteAt(voteBlock, 0); err != nil {
		panic(err)
	}
	if err := f.Sync(); err != nil {
		panic(err)
	}
}

// collectPlant: a request has the garbage collected, and waits for it.
func collectPlant() server {
	keepAlive = makeTree(18)
	return server{handle: importFile, threads: 2, every: 400 * time.Millisecond, pause: 800 * time.Microsecond, slow: 5 * time.Millisecond}
}

//go:noinline
func importFile(r *request) {
	readHeader(r)
	if r.odd {
		releaseMemory()
	}
	writeReply(r)
}

//go:noinline
func releaseMemory() { runtime.GC() }

// pollPlant: a system call that blocks its thread: a read of a pipe outside of the runtime's poller.
func pollPlant() server {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		panic(err)
	}
	asked := make(chan bool, 8)
	go func() {
		for late := range asked {
			if late {
				calibrate()
			}
			if _, err := syscall.Write(ends[1], []byte{1}); err != nil {
				panic(err)
			}
		}
	}()
	return server{handle: func(r *request) { readGauge(r, ends[0], asked) }, threads: 1, every: 300 * time.Millisecond, pause: 600 * time.Microsecond, slow: 8 * time.Millisecond}
}

//go:noinline
func calibrate() {
	for i := range 40 {
		calibratePoint(i)
	}
}

//go:noinline
func calibratePoint(i int) { mix(uint64(i), 700) }

//go:noinline
func readGauge(r *request, from int, asked chan bool) {
	readHeader(r)
	asked <- r.odd
	awaitGauge(from)
	writeReply(r)
}

//go:noinline
func awaitGauge(from int) {
	var b [1]byte
	if _, err := syscall.Read(from, b[:]); err != nil {
		panic(err)
	}
}
