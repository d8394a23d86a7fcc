package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// status is the line of progress, which only a terminal gets; notices go anywhere. It may be used by several goroutines at once.
type status struct {
	mu    sync.Mutex
	w     io.Writer
	tty   *os.File // nil where no line is to be shown
	open  bool
	drawn time.Time
}

// redraw is how often the line changes at most.
const redraw = 100 * time.Millisecond

// newStatus writes to w, where it shows progress if that is a terminal which knows how to clear a line.
func newStatus(w io.Writer) *status {
	s := &status{w: w}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		s.tty = f
	}
	return s
}

// quiet ends the line for good: the terminal is somebody else's.
func (s *status) quiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tty = nil
}

// notice writes a line that stays.
func (s *status) notice(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLine()
	fmt.Fprintln(s.w, "callreel: "+printable(fmt.Sprintf(format, args...)))
}

// show puts a text into the line, if the last was put there some time ago.
func (s *status) show(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty == nil || time.Since(s.drawn) < redraw {
		return
	}
	s.drawn = time.Now()
	text := []rune(printable(fmt.Sprintf(format, args...)))
	// A line that wraps, by itself or with the ^C that terminals show, could not be cleared.
	const spare = 3
	if width, _, err := term.GetSize(int(s.tty.Fd())); err == nil && width > spare && len(text) > width-spare {
		text = text[:width-spare]
	}
	s.open = true
	fmt.Fprintf(s.tty, "\r%s\x1b[K", string(text))
}

// clear takes the line away.
func (s *status) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLine()
}

func (s *status) clearLine() {
	if s.open {
		fmt.Fprint(s.tty, "\r\x1b[K")
		s.open = false
	}
}
