package screen

import (
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// What terminals are told: xterm's control sequences, which all that matter know.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l" // alternate screen, no cursor, lines are cut and not wrapped
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	clean = "\x1b[m\x1b[K" // attributes off, the rest of the line empty
	below = "\x1b[m\x1b[J" // and all lines below
	plain = "\x1b[m"
)

// Screen is a terminal in use. Its methods may be called by any goroutine.
type Screen struct {
	in, out *os.File
	keyed   bool // in is a terminal, too
	keys    chan Key
	resized chan os.Signal
	stops   chan os.Signal
	wake    chan struct{} // there is something to be written

	mu      sync.Mutex // guards what follows
	before  *term.State
	open    bool
	stuck   bool          // it takes nothing any more
	entered bool          // the way in has been written
	pending string        // to be written
	writing chan struct{} // closed when what is being written has been
}

// Usable says whether a page can be shown there.
func Usable(out *os.File) bool {
	kind := os.Getenv("TERM")
	return term.IsTerminal(int(out.Fd())) && kind != "" && kind != "dumb"
}

// Open takes the terminal over. Keys come from in, none if that isn't a terminal. The caller must Close it.
func Open(in, out *os.File) (*Screen, error) {
	s := &Screen{
		in: in, out: out, keyed: term.IsTerminal(int(in.Fd())), keys: make(chan Key, 64),
		resized: make(chan os.Signal, 1), stops: make(chan os.Signal, 1), wake: make(chan struct{}, 1),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.takeOver(); err != nil {
		return nil, err
	}
	notify(s.resized, s.stops)
	go s.write()
	if s.keyed {
		go readKeys(s.in, s.keys)
	}
	return s, nil
}

// takeOver puts the terminal into raw mode.
func (s *Screen) takeOver() error {
	if s.keyed {
		before, err := term.MakeRaw(int(s.in.Fd()))
		if err != nil {
			return err
		}
		s.before = before
	}
	s.open = true
	s.offer(enter)
	return nil
}

// Keys delivers what is typed. It is closed when nothing more can come.
func (s *Screen) Keys() <-chan Key { return s.keys }

// Resized tells when the terminal has got another size.
func (s *Screen) Resized() <-chan os.Signal { return s.resized }

// Stops tells of SIGTSTP, which others may send: in raw mode Ctrl-Z is but a key. Suspend is what to do then.
func (s *Screen) Stops() <-chan os.Signal { return s.stops }

// Size is how many columns and lines there are.
func (s *Screen) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Draw shows lines, from the top on. It doesn't wait: a terminal that is slow gets what is newest.
func (s *Screen) Draw(lines []string) {
	var b strings.Builder
	b.WriteString(home)
	// A line is emptied before it is written: behind one as wide as the terminal the cursor still stands on its last character.
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if i < len(lines)-1 {
			b.WriteString(clean)
		} else {
			b.WriteString(below)
		}
		b.WriteString(line)
	}
	b.WriteString(plain)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.offer(b.String())
	}
}

// offer gives the writer something to write; what it hasn't begun with is not needed then, but for the way in.
func (s *Screen) offer(text string) {
	if strings.HasPrefix(s.pending, enter) {
		text = enter + text
	}
	s.pending = text
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write writes what is pending. A terminal may take as long as it likes to take it.
func (s *Screen) write() {
	for range s.wake {
		s.mu.Lock()
		text, done := s.pending, make(chan struct{})
		s.pending, s.writing = "", done
		s.entered = s.entered || strings.HasPrefix(text, enter)
		s.mu.Unlock()
		_, _ = s.out.WriteString(text) // a terminal that has gone sends SIGHUP
		close(done)
	}
}

// Close gives the terminal back as it was. It may be called more than once.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		signal.Stop(s.resized)
		signal.Stop(s.stops)
		s.giveBack()
	}
}

// Stuck says whether the terminal took nothing any more when it was given back: a write to it might wait for ever.
func (s *Screen) Stuck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stuck
}

// patience is how long a terminal that takes nothing is waited for.
const patience = time.Second

// giveBack restores the terminal's modes at once, and its screen if it still takes anything.
func (s *Screen) giveBack() {
	s.open, s.pending = false, ""
	if s.before != nil {
		_ = term.Restore(int(s.in.Fd()), s.before) // it may be gone
	}
	if !s.entered {
		return
	}
	s.entered = false
	select {
	case <-s.writing:
		_, _ = s.out.WriteString(leave)
	case <-time.After(patience):
		s.stuck = true
	}
}

// Suspend gives the terminal back, stops this process and others of its job as Ctrl-Z does, and takes the terminal again when the shell lets
// them go on.
func (s *Screen) Suspend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil
	}
	s.giveBack()
	stopJob(s.stops)
	return s.takeOver()
}
