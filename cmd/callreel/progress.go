package main

import (
	"fmt"
	"sync"
	"time"
)

// quickly is what needs no progress.
const quickly = time.Second

// progress tells a terminal how far a long work is, how fast it goes and how long it will
// still take. It may be used by several goroutines at once.
type progress struct {
	mu     sync.Mutex
	status *status
	start  time.Time
}

func newProgress(s *status) *progress { return &progress{status: s, start: time.Now()} }

// bytes shows that so much of total has been done of what.
func (p *progress) bytes(what string, done, total int64) {
	p.show(what, done, total, func(perSecond float64) string { return bytesText(int64(perSecond)) + "/s" })
}

// items shows that so many of total have been done.
func (p *progress) items(what string, done, total int64) {
	p.show(what, done, total, func(perSecond float64) string { return fmt.Sprintf("%.1f/s", perSecond) })
}

func (p *progress) show(what string, done, total int64, rate func(perSecond float64) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := time.Since(p.start)
	if took < quickly {
		return
	}
	if done <= 0 || total < done {
		p.status.show("%s   Ctrl-C ends", what)
		return
	}
	remaining := time.Duration(float64(took) / float64(done) * float64(total-done))
	p.status.show("%s: %d %%, %s, %s left   Ctrl-C ends", what, done*100/total, rate(float64(done)/took.Seconds()), remaining.Round(time.Second))
}

// clear takes the line away.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.clear()
}
