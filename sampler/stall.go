package sampler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// MinOver is the shortest stall that can be asked for: below it, stopping the thread
// to look at it would be part of what is seen.
const MinOver = 10 * time.Millisecond

// ErrOver is wrapped by Stalls' error when less than MinOver was asked for.
var ErrOver = errors.New("the shortest stall that can be detected is " + MinOver.String())

// ErrThreadEnded is wrapped by Stalls' error when the thread has ended, but others of the
// process run on.
var ErrThreadEnded = errors.New("the thread has ended, but others of the process run on: choose one of them")

// StallOptions says which stalls are reported.
type StallOptions struct {
	Options
	// TID is the thread; 0 means the main one.
	TID int
	// Over is how long a thread must have stalled to be reported, at least MinOver.
	Over time.Duration
	// For is how long to go on once all is ready; 0 means until ctx ends.
	For time.Duration
	// Begun, if not nil, is told of each stall while it is under way, once it has lasted for Over: the thread, and when it last got on.
	Begun func(tid int, since time.Time)
	// Notice, if not nil, is told what cannot be done here, and what that means.
	Notice func(string)
}

// A Stall is a time in which a thread did not return to its wait.
type Stall struct {
	TID  int
	Name string // of the thread
	// Start is when the thread's wait ended, or was last seen to get on: it may have
	// been up to a quarter of Over earlier. The end is known to 20 ms.
	Start    time.Time
	Duration time.Duration
	// State is what most samples have found.
	State   StallState
	Samples int
	Partial int // samples whose outermost call was not reached
	// Stack is the heaviest stack, innermost call first.
	Stack []StallFrame
	// Ongoing says that the thread was still stalled when it was last looked at.
	Ongoing bool
}

// A StallFrame is one function of the heaviest stack.
type StallFrame struct {
	Function string // demangled; "" when not known
	Image    string // path; "" when no file is behind the code
	Address  uint64 // the one that most samples have
	Offset   uint64 // Address from the image's load address
	File     string // "" when not known
	Line     uint32 // 0 when not known
	Inlined  bool   // into the next frame
	Samples  int    // that have the frame, below the same callers
}

// Stalls observes one thread of a running process from outside, and reports each time in
// which it did not return to its wait for longer than Over. The wait is where the
// thread comes to rest again and again, as an event loop does in epoll_wait; it is
// learned meanwhile. As long as the thread returns there it isn't stopped: its counters
// are read, and a hardware breakpoint notices that it comes by, which is hit
// at most four times in Over. After half of Over without, its stack is taken every 10 to
// 20 ms until it goes on. While it waits it is stopped for that once at most, and not at all
// where a stop would prolong the wait: such a stack may not be whole.
//
// Stalls ends without an error when the thread or the process ends, or ctx does; a stall
// under way is reported then, too. An error of report ends it and is returned. The other
// errors are those of process.Open, process.Process.EachThread, ErrOver and
// ErrThreadEnded. Memory is bounded, however long it takes.
func Stalls(ctx context.Context, pid int, o StallOptions, report func(*Stall) error) (err error) {
	if o.Over < MinOver {
		return fmt.Errorf("%w, not %v", ErrOver, o.Over)
	}
	p, err := process.Open(pid)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	o.allow()
	p.LimitMemory(o.Memory.Limit())
	if o.TID == 0 {
		o.TID = pid
	}
	if o.MaxFrames == 0 {
		o.MaxFrames = maxStallFrames
	}
	a, err := p.Activity(o.TID)
	if err == nil && a.Ended() && p.Alive() {
		err = ErrThreadEnded
	}
	if err != nil {
		return fmt.Errorf("thread %d: %w", o.TID, err)
	}
	stacks := &stallStacks{live: live{p: p, o: o.Options, buf: make([]byte, unknownStack+4096)}}
	if err := stacks.refreshPrepared(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stacks.space.close()) }()
	stacks.prepare(ctx)
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	w := newStallDetector(p, o, stacks, report)
	defer func() { err = errors.Join(err, w.disarm()) }()
	return w.run(ctx)
}

// stallStacks takes stacks of one thread, time and again.
type stallStacks struct {
	live
	refreshed time.Time
}

// prepare asks for a name in every image, since the first may take as long as a stall:
// debug information is read for it.
func (s *stallStacks) prepare(ctx context.Context) {
	clear(s.buf)
	if s.o.Symbolizer == nil || s.o.NoNames {
		return
	}
	for _, im := range s.space.images {
		if ctx.Err() != nil {
			return
		}
		s.o.Symbolizer.Calls(im, im.Load-im.Slide())
	}
}

// renew lets the maps be read again if a walk fails, but not for each of many that do.
func (s *stallStacks) renew() error {
	if !s.outdated || time.Since(s.refreshed) < time.Second {
		return nil
	}
	s.outdated, s.refreshed = false, time.Now()
	return s.prune()
}

// waiting walks a thread that waits, while it does.
func (s *stallStacks) waiting(at *process.Waiting) unwind.End {
	end := s.walkWaiting(at)
	if !end.Complete() && s.changed() {
		end = s.walkWaiting(at)
	}
	return end
}

// stopped stops the thread for its registers and stack, and walks it.
func (s *stallStacks) stopped(ctx context.Context, tid int) (end unwind.End, err error) {
	s.frames = s.frames[:0]
	var failed error
	err = s.p.EachThread(ctx, process.StopOptions{Timeout: time.Second}, []int{tid}, func(t *process.Thread, err error) error {
		if failed = err; err == nil {
			failed = s.read(t)
		}
		return nil
	}, nil)
	if err = errors.Join(err, failed); err != nil {
		return end, err
	}
	snapshot := unwind.Snapshot{Regs: registers(&s.regs), Stack: s.stack, Addr: s.from, Memory: memory{s.p}}
	s.frames, end = s.walker.Walk(&snapshot, s.frames[:0])
	if !end.Complete() && s.changed() {
		s.frames, end = s.walker.Walk(&snapshot, s.frames[:0])
	}
	return end, nil
}

// prune closes images that are no longer mapped: over days there may be many.
func (s *stallStacks) prune() error {
	mapped := map[*Image]bool{}
	for _, m := range s.space.mapped {
		if im, ok := m.Image.(*Image); ok {
			mapped[im] = true
		}
	}
	var errs []error
	kept := s.space.images[:0]
	for _, im := range s.space.images {
		if mapped[im] {
			kept = append(kept, im)
			continue
		}
		if n, ok := s.o.Symbolizer.(*MapNames); ok {
			errs = append(errs, n.forget(im))
		}
		errs = append(errs, im.close())
	}
	clear(s.space.images[len(kept):])
	s.space.images = kept
	return errors.Join(errs...)
}

// forget closes the map of an image.
func (n *MapNames) forget(im *Image) error {
	m := n.maps[im]
	delete(n.maps, im)
	if m == nil {
		return nil
	}
	return m.Close()
}
