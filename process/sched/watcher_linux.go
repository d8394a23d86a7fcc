package sched

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callreel/callreel/internal/ticks"
	"github.com/callreel/callreel/process"
)

// A Watcher tells what the scheduler does with the threads of processes. Its methods may be called from several goroutines,
// but not by the function that Drain is given.
type Watcher struct {
	mu      sync.Mutex
	source  source // nil when only the kernel's sums can be had
	reasons []error
	faults  bool
	clock   clock

	processes map[int32]*watched
	threads   map[int32]*thread
	gone      map[int32]departed
	yield     func(tid, pid int, e Event) // while draining
	heads     []head
	held      []*thread // whose wake-ups were kept; only while draining

	bound   uint64    // ticks: all before it was given
	limit   uint64    // the same on the source's clock
	coming  uint64    // ticks: what bound will be after this drain
	settled time.Time // when threads were last asked for their state
	holes   []window  // of this drain: disjoint, in order
	hole    int       // the first that may matter
	lossEnd uint64    // ticks: the last moment up to which something may be missing
	stats   Stats
	closed  bool
}

// watched is one process.
type watched struct {
	since   uint64            // ticks: from here on nothing of it is missed
	threads map[int32]*thread // that are known and haven't ended
}

// Stats counts what a Watcher has seen.
type Stats struct {
	Events uint64 // that were given
	Lost   uint64 // records of the kernel's that found no room
	Odd    uint64 // events that didn't fit the one before, so that something is missing between
	// MinorsEnded is when minor faults became too many (MinorFaultRate), in ticks: later ones aren't told. Else 0.
	MinorsEnded uint64
}

// Open begins to watch. What the processes do from its return on is told, and of what they do at that moment as soon as it
// is known. The error wraps process.ErrNoProcess where there is no such process. It is no error that a better source is not
// available: Reasons says so.
func Open(ctx context.Context, o Options) (*Watcher, error) {
	var reasons []error
	for _, c := range []struct {
		name string
		off  bool
		open func(Options) (source, error)
	}{
		{SourceBPF, o.NoBPF, func(o Options) (source, error) { s, err := openBPF(o); return s, err }},
		{SourcePerf, o.NoPerf, func(o Options) (source, error) { s, err := openPerf(o); return s, err }},
		{SourceSchedstat, false, func(Options) (source, error) { return nil, nil }},
	} {
		if c.off {
			reasons = append(reasons, fmt.Errorf("%s: %w: switched off", c.name, ErrUnavailable))
			continue
		}
		s, err := c.open(o)
		if err == nil {
			w := &Watcher{source: s, reasons: reasons, processes: map[int32]*watched{}, threads: map[int32]*thread{}, gone: map[int32]departed{}}
			if err = w.begin(ctx, o.PIDs); err == nil {
				if s != nil && s.faults() != nil {
					w.reasons = append(w.reasons, s.faults())
				}
				w.faults = s != nil && s.faults() == nil && o.Faults != NoFaults
				return w, nil
			}
		}
		if errors.Is(err, process.ErrNoProcess) || ctx.Err() != nil {
			return nil, err
		}
		if !errors.Is(err, ErrUnavailable) { // whatever it is, a lesser source may do
			err = fmt.Errorf("%s: %w: %w", c.name, ErrUnavailable, err)
		}
		reasons = append(reasons, err)
	}
	return nil, errors.Join(reasons...) // not reached: sums are always available
}

func (w *Watcher) begin(ctx context.Context, pids []int) (err error) {
	defer func() {
		if err != nil && w.source != nil {
			err = errors.Join(err, w.source.close())
		}
	}()
	if w.source != nil {
		w.clock.id = w.source.clock()
		if err := w.clock.start(); err != nil {
			return fmt.Errorf("sched: clock: %w", err)
		}
		w.limit, w.bound = w.clock.to.ns, w.clock.to.tick
	}
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.add(pid); err != nil {
			return err
		}
	}
	return nil
}

// Source is where the events come from: SourceBPF, SourcePerf or SourceSchedstat, which gives sums only.
func (w *Watcher) Source() string {
	if w.source == nil {
		return SourceSchedstat
	}
	return w.source.name()
}

// Reasons says of each source that is better than this one why it isn't used, and what would make it work. The errors
// wrap ErrUnavailable.
func (w *Watcher) Reasons() []error { return w.reasons }

// WakeUps says whether events of kind Woken come. If not, the time from being woken to running looks like waiting.
func (w *Watcher) WakeUps() bool { return w.source != nil && w.source.wakeUps() }

// Faults says whether page faults are told.
func (w *Watcher) Faults() bool { return w.faults }

// Add watches another process from now on.
func (w *Watcher) Add(pid int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	return w.add(pid)
}

var errClosed = errors.New("sched: the watcher is closed")

func (w *Watcher) add(pid int) error {
	tids, err := threadsOf(pid)
	if err != nil {
		return fmt.Errorf("sched: %w", err)
	}
	if w.source != nil {
		if err := w.source.add(pid, tids); err != nil {
			return fmt.Errorf("sched: process %d: %w", pid, err)
		}
	}
	// From here on each of its threads is in sight, but for those that end meanwhile.
	since := ticks.Now()
	p := w.process(int32(pid))
	p.since = since
	if tids, err = threadsOf(pid); err != nil {
		return fmt.Errorf("sched: %w", err)
	}
	for _, tid := range tids {
		if w.threads[int32(tid)] != nil {
			continue
		}
		t := &thread{pid: int32(pid), tid: int32(tid), since: since, last: since, processor: -1}
		base, alive := w.ask(t)
		if !alive {
			continue
		}
		t.base = base
		w.threads[t.tid], p.threads[t.tid] = t, t
	}
	return nil
}

func (w *Watcher) process(pid int32) *watched {
	p := w.processes[pid]
	if p == nil {
		p = &watched{threads: map[int32]*thread{}}
		w.processes[pid] = p
	}
	return p
}

// Drain gives all that has happened since the last one and is known to be complete; it doesn't wait. Events of one thread
// come in order of time, those of different threads nearly so: a wake-up comes with its thread's next event, if there is one. It should be called every 10 to 100 ms: the kernel's room is
// bounded, and the longer the time between two calls, the rougher its clock fits the processor's.
func (w *Watcher) Drain(yield func(tid, pid int, e Event)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	return w.drain(yield, false)
}

// Bound is a moment, in ticks: all events before it have been given. An exception is the first event of a thread, which says
// what it has been doing since it is watched: that may become known later.
func (w *Watcher) Bound() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bound
}

// Stats counts what was seen up to now.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Close ends the watching and gives what is left.
func (w *Watcher) Close(yield func(tid, pid int, e Event)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.source == nil {
		return nil
	}
	// What is not seen from here on must not look as if it had been: states are asked for once more before.
	w.settled = time.Time{}
	err := w.drain(yield, false)
	return errors.Join(err, w.source.stop(), w.drain(yield, true), w.source.close())
}

// noProcess is the error of what has ended.
func noProcess(pid int) error { return fmt.Errorf("process %d: %w", pid, process.ErrNoProcess) }
