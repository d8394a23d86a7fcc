package scheduling

import (
	"context"
	"errors"
	"strings"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/process/sched"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// Opening gets the kernel ready to tell of threads, which takes a quarter of a second of processor time where programs are loaded into it: so it
// is done while a recording is planned, by another goroutine.
type Opening struct {
	options sched.Options
	done    chan struct{} // closed when there is a watcher, or an error
	watcher *sched.Watcher
	err     error
}

// Prepare begins. Children says that the processes that a watched one starts are watched, too.
func Prepare(ctx context.Context, children bool) *Opening {
	o := &Opening{options: sched.Options{Children: children, Faults: sched.AllFaults}, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		o.watcher, o.err = sched.Open(ctx, o.options)
	}()
	return o
}

// Close lets go of what was made ready, if it isn't used.
func (o *Opening) Close() {
	if o == nil {
		return
	}
	<-o.done
	if o.watcher != nil {
		_ = o.watcher.Close(func(int, int, sched.Event) {}) // nobody wants to know
	}
}

// Watch begins to watch a process. That the scheduler's words aren't permitted is no error: see About.
func (o *Opening) Watch(ctx context.Context, pid int, ticksPerSecond uint64) (*Watch, error) {
	<-o.done
	if o.err != nil {
		return nil, o.err
	}
	if err := o.watcher.Add(pid); err != nil {
		o.Close()
		if o.watcher = nil; errors.Is(err, process.ErrNoProcess) {
			return nil, err
		}
		// It may be this process that may not be watched in that way.
		options := o.options
		options.PIDs = []int{pid}
		if o.watcher, err = sched.Open(ctx, options); err != nil {
			return nil, err
		}
	}
	w := newWatch()
	w.watcher = o.watcher
	w.leastWait = ring.TicksOf(leastWait, ticksPerSecond)
	w.leastLookup = ring.TicksOf(leastLookup, ticksPerSecond)
	w.about = reel.Scheduling{Source: w.watcher.Source(), WakeUps: w.watcher.WakeUps(), Faults: w.watcher.Faults()}
	w.tellsCalls = w.about.Source == sched.SourceBPF
	var reasons []string
	for _, r := range w.watcher.Reasons() {
		reasons = append(reasons, r.Error())
	}
	w.about.Reason = strings.Join(reasons, "; ")
	return w, nil
}
