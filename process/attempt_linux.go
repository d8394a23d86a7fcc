package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/callreel/callreel/internal/foremost"
)

// How long one attempt to stop a process waits for a thread that cannot stop, while
// those that have stopped stand: at first, and at most after doubling. What sleeps
// uninterruptibly for longer is waited for while all run.
const (
	firstSlice   = 30 * time.Millisecond
	longestSlice = 480 * time.Millisecond
)

// runnableSlices is how many times longer a thread is waited for that only wants for
// a processor: it does stop, and on a machine under load that takes its time.
const runnableSlices = 10

// foremostFor is how long the thread that all of the process waits for runs before the machine's others.
const foremostFor = 200 * time.Millisecond

// restFactor is how much longer the process runs between two attempts than it was stopped.
const restFactor = 4

// patience is how long an attempt still waits. It begins anew with each thread that
// stops, so that thousands of them have the time they need.
type patience struct {
	slice time.Duration
	since time.Time
}

// spent says whether a thread in that state was waited for long enough. A nil
// patience never is.
func (p *patience) spent(state byte) bool {
	if p == nil {
		return false
	}
	waited := time.Since(p.since)
	return waited >= p.slice && state == 'D' || waited >= runnableSlices*p.slice
}

func (p *patience) renew() {
	if p != nil {
		p.since = time.Now()
	}
}

// stop makes attempts until one has stopped every thread, at most for opts.Timeout.
// total is the sum of the times that the process was stopped.
func (p *Process) stop(ctx context.Context, opts StopOptions, fn func(*Stopped) error) (total time.Duration, err error) {
	end := time.Now().Add(opts.timeout())
	for slice := firstSlice; ; slice = min(2*slice, longestSlice) {
		s := newStopped(p, opts, ctx)
		if err := s.awaitCalm(end); err != nil {
			return total, err
		}
		if !opts.AtOnce {
			if err := p.sharing.look(p); err != nil {
				return total, err
			}
		}
		s.patience = &patience{slice: slice}
		took, ran, err := s.attempt(end, fn)
		total += took
		if ran || !errors.Is(err, ErrStopTimeout) || !time.Now().Add(restFactor*took).Before(end) {
			return total, err
		}
		if err := rest(ctx, restFactor*took); err != nil {
			return total, fmt.Errorf("process %d: stop: %w", p.pid, err)
		}
	}
}

// attempt stops all threads, runs fn and lets all go.
func (s *Stopped) attempt(end time.Time, fn func(*Stopped) error) (took time.Duration, ran bool, err error) {
	err = onTracerThread(func() (bool, error) {
		defer foremost.Come(foremostFor)()
		err := func() error {
			s.Since, s.until = time.Now(), end
			defer s.letGo(&took)
			if err := s.stopAll(end); err != nil {
				s.rememberRestarts()
				return err
			}
			ran = true
			return s.call(fn)
		}()
		return !s.leftover, err
	})
	return took, ran, err
}

// call runs fn with the process that stands. From here on nothing is given up halfway when s.ctx ends: what has become of a remote call
// would not be known.
func (s *Stopped) call(fn func(*Stopped) error) error {
	s.ctx = context.WithoutCancel(s.ctx)
	return fn(s)
}

// rest waits while the process runs.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A sighting is what /proc said about a thread before it was told to stop.
type sighting struct {
	worker  bool // the kernel's own, see ThreadInfo.Worker
	seccomp int
}

// longestLook bounds the pause between two looks at a thread that cannot stop.
const longestLook = 50 * time.Millisecond

// awaitCalm looks at all threads and waits, while they run, as long as one of them
// sleeps uninterruptibly without a move: in vfork(2), or for a file server that
// doesn't answer. One that sleeps so again and again, as for a disk, is left to the
// attempts.
func (s *Stopped) awaitCalm(end time.Time) error {
	asleep, err := s.lookAround()
	if err != nil {
		return err
	}
	for pause := time.Millisecond; len(asleep) > 0; pause = min(2*pause, longestLook) {
		if err := rest(s.ctx, pause); err != nil {
			return fmt.Errorf("process %d: stop: %w", s.p.pid, err)
		}
		for tid, moves := range asleep {
			if now, still := s.p.sleeps(tid); !still || now != moves {
				delete(asleep, tid)
			}
		}
		if len(asleep) > 0 && time.Now().After(end) {
			return s.timeoutError(slices.Min(slices.Collect(maps.Keys(asleep))))
		}
	}
	return nil
}

// lookAround notes what each thread is, and returns those that sleep uninterruptibly
// with the number of their moves.
func (s *Stopped) lookAround() (asleep map[int]uint64, err error) {
	tids, err := taskIDs(s.p.pid)
	if err != nil {
		return nil, err
	}
	s.sighted = make(map[int]sighting, len(tids))
	asleep = map[int]uint64{}
	for _, tid := range tids {
		st, err := readStat(s.p.pid, tid)
		if err != nil {
			continue // it has ended
		}
		seen := sighting{worker: st.worker()}
		if !seen.worker && !st.ended() {
			status, err := readStatus(s.p.pid, tid)
			if err != nil {
				continue
			}
			seen.seccomp = status.Seccomp
			if st.state == 'D' {
				asleep[tid] = status.Switches
			}
		}
		s.sighted[tid] = seen
	}
	return asleep, nil
}

// sleeps says whether a thread sleeps uninterruptibly, and how often it has left the
// processor so far.
func (p *Process) sleeps(tid int) (moves uint64, is bool) {
	st, err := readStat(p.pid, tid)
	if err != nil || st.state != 'D' {
		return 0, false
	}
	status, err := readStatus(p.pid, tid)
	return status.Switches, err == nil
}
