package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cmd/callreel/internal/screen"
	"github.com/callreel/callreel/live"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder"
)

// drawInterval is how often the page is drawn, and how long stretches are whose sums it shows, unless --interval is long.
const drawInterval = 500 * time.Millisecond

// stretches is of how many stretches of what length an interval is.
func (f *topFlags) stretches() (n int, each time.Duration) {
	const most = 4
	n = int(min(max(f.interval/drawInterval, 1), most))
	return n, f.interval / time.Duration(n)
}

// page shows the page until it is ended.
func (f *topFlags) page(ctx context.Context, choice recorder.Choice, c *cobra.Command, status *status, in, out *os.File) (err error) {
	status.show("reading the files of process %d", f.pid)
	keep, each := f.stretches()
	said := &notices{before: status.notice}
	var tty *screen.Screen
	t := f.start(ctx, choice, each, said.add, func() { said.restore() })
	select {
	case <-t.started:
	case <-t.ended:
		status.clear()
		return t.end(ctx)
	}
	status.clear()
	if tty, err = screen.Open(in, out); err != nil {
		t.cancel()
		<-t.ended
		return fmt.Errorf("callreel top: the terminal: %w", err)
	}
	defer tty.Close()
	said.show(tty)
	p := newTopPage(f, live.NewRecent(t.meter, keep))
	p.plain = os.Getenv("NO_COLOR") != ""
	p.show(ctx, tty, t, said)
	tty.Close() // before the process is left: a second Ctrl-C must find the terminal as it was
	err = t.end(ctx)
	if tty.Stuck() {
		return err
	}
	said.restore()
	if t.result != nil {
		fmt.Fprintln(c.OutOrStdout(), farewell(t.result, time.Since(p.began)))
	}
	return err
}

// farewell is what stays on the terminal when the page is gone.
func farewell(r *recorder.Result, took time.Duration) string {
	text := fmt.Sprintf("%s in %s, %s dropped; ", things(r.Calls, "call"), took.Round(100*time.Millisecond), count(r.Dropped))
	if r.Ended {
		return text + "the process has ended"
	}
	return text + fmt.Sprintf("text verified: %v", r.TextVerified)
}

// notices are what the recorder says: on the page while it is shown, else as usual.
type notices struct {
	mu     sync.Mutex
	before func(string, ...any)
	tty    *screen.Screen
	last   string
	list   []string // for when the page is gone
}

// maxNotices is how many notices are kept for then.
const maxNotices = 20

func (n *notices) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tty == nil {
		n.before(format, args...)
		return
	}
	n.last = fmt.Sprintf(format, args...)
	if n.list = append(n.list, n.last); len(n.list) > maxNotices {
		n.list = n.list[1:]
	}
}

func (n *notices) show(tty *screen.Screen) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tty = tty
}

// restore gives the terminal back, and tells what there was no place for.
func (n *notices) restore() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tty == nil {
		return
	}
	n.tty.Close()
	n.tty = nil
	for _, text := range n.list {
		n.before("%s", text)
	}
}

func (n *notices) newest() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// topPage is what the page shows, and how.
type topPage struct {
	f      *topFlags
	recent *live.Recent
	plain  bool // no colours
	name   string
	began  time.Time

	sort    string
	all     bool // since the beginning
	threads bool
	off     bool // the functions that are off are shown
	paused  bool
	typing  bool // a filter
	filter  string
	from    int // rows that are scrolled past

	snap    *live.Snapshot
	notice  string
	dropped uint64 // since the beginning
}

func newTopPage(f *topFlags, w *live.Recent) *topPage {
	return &topPage{f: f, recent: w, sort: f.sort, off: f.off, began: time.Now(), name: processName(int(f.pid))}
}

// processName is what the kernel calls a process.
func processName(pid int) string {
	name, _ := process.ThreadName(pid, pid) // empty where it can't be read
	return name
}

// show draws the page until q, a signal, or the end of the process.
func (p *topPage) show(ctx context.Context, tty *screen.Screen, t *topRun, said *notices) {
	tick := time.NewTicker(drawInterval)
	defer tick.Stop()
	keys := tty.Keys()
	for draw := true; ; draw = true {
		if draw {
			p.notice = said.newest()
			width, height := tty.Size()
			tty.Draw(p.lines(width, height))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.ended:
			return
		case s := <-t.meter.Stretches():
			p.add(s)
			draw = false // the next tick does
		case <-tick.C:
			p.look()
		case <-tty.Resized():
		case <-tty.Stops():
			if tty.Suspend() != nil {
				return
			}
		case key, ok := <-keys:
			if !ok { // nothing can be typed any more
				keys = nil
				continue
			}
			switch p.press(key) {
			case pageEnd:
				return
			case pageSuspend:
				if tty.Suspend() != nil {
					return
				}
			}
		}
	}
}
