package invoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/sampler"
)

// Call calls a function in a thread of a process, at a point where that does no harm as far as can be known, and returns what it has
// returned. Other threads run on.
//
// The errors, with nothing done, are ErrName, ErrArguments, ErrRefused, ErrSyntax for no function, and those of process.Open; ctx's, when
// it has ended before the function was called. Later its end is as if the time were over. The others are those of process.Thread.Invoke.
func Call(ctx context.Context, o Options) (_ *Result, err error) {
	if o.Call.Function == "" {
		return nil, fmt.Errorf("%w: no function", ErrSyntax)
	}
	if why := refused(o.Call.Function); why != "" {
		return nil, fmt.Errorf("%w: %s can't be called: %s", ErrRefused, o.Call.Function, why)
	}
	if err := process.CallsSupported(); err != nil {
		return nil, fmt.Errorf("callreel: process %d: %w", o.PID, err)
	}
	c := &caller{o: o, deadline: time.Now().Add(cmp.Or(o.Wait, DefaultWait))}
	err = c.untilUntraced(ctx, func() error {
		c.p, err = process.OpenForCode(o.PID)
		return err
	})
	if err != nil {
		return nil, err
	}
	p := c.p
	defer p.Close() // only read from
	if o.Memory == nil {
		o.Memory = object.NewAllowance(0)
	}
	p.LimitMemory(o.Memory.Limit())
	holder, err := sampler.NewHolder(ctx, p, sampler.Options{Memory: o.Memory, MaxFrames: maxFrames})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, holder.Close()) }()
	c.o, c.holder = o, holder
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	return c.run(ctx)
}

// maxFrames bounds a stack on which a function is called.
const maxFrames = 4096

// A caller is one call of a function.
type caller struct {
	o            Options
	p            *process.Process
	holder       *sampler.Holder
	call         process.Invocation
	kind         string // of the result
	result       Result
	why          map[int]string // threads in which it could not be called
	resolves     bool           // what is called is an IFUNC's resolver
	overdueSince time.Time
	deadline     time.Time // for finding a point where it can be called
}

// prepare finds the function and what it is passed.
func (c *caller) prepare(ctx context.Context) error {
	images, err := c.images()
	if err != nil {
		return err
	}
	f, err := findFunction(images, c.o.Call)
	if err != nil {
		return fmt.Errorf("process %d: %w", c.o.PID, err)
	}
	s, err := signatureOf(ctx, f, c.debugFiles())
	if err != nil {
		return err
	}
	if c.call.Arguments, err = s.passed(images, c.o.Call.Literals); err != nil {
		return err
	}
	c.kind = cmp.Or(c.o.Type, s.result)
	if e, err := findFunction(images, Expression{Function: "__errno_location"}); err == nil && isCLibrary(e.image.name()) && c.isCode(e.address()) == nil {
		c.call.ErrnoLocation = e.address()
	}
	c.resolves = f.symbol.Kind == object.IFunc
	c.call.Function = f.address()
	c.result.Function, c.result.Image, c.result.Address = f.symbol.Name, f.image.name(), f.address()
	return c.isCode(f.address())
}

func (c *caller) debugFiles() DebugFiles {
	if c.o.DebugFiles != nil {
		return c.o.DebugFiles
	}
	return &object.DebugSearch{}
}

// isCode checks that a function is where code is.
func (c *caller) isCode(addr uint64) error {
	maps, err := c.p.Maps()
	if err != nil {
		return err
	}
	for _, m := range maps {
		if m.Contains(addr) && m.Perm&process.PermExec != 0 && m.Perm&process.PermWrite == 0 {
			return nil
		}
	}
	return fmt.Errorf("process %d: %w: there is no code at %#x, where %s should be", c.o.PID, ErrRefused, addr, c.o.Call.Function)
}

// images are those that the process has loaded, and whose files can be read.
func (c *caller) images() ([]*image, error) {
	exe, _, err := c.p.Exe()
	if err != nil {
		return nil, err
	}
	var out []*image
	for _, im := range c.holder.Images() {
		file := im.File()
		if file == nil {
			continue
		}
		if im.Path == exe && file.Section(".go.buildinfo") != nil {
			return nil, fmt.Errorf("process %d: %w: it is a Go program: goroutines have small stacks, and the runtime knows nothing of such calls", c.o.PID, ErrRefused)
		}
		out = append(out, &image{path: im.Path, file: file, slide: im.Slide(), load: im.Load})
	}
	if !slices.ContainsFunc(out, func(im *image) bool { return isCLibrary(im.name()) && im.path != "[vdso]" }) {
		return nil, fmt.Errorf("process %d: %w: it is a static program, in which it can't be told what is the C library's", c.o.PID, ErrRefused)
	}
	return out, nil
}

// run calls the function, or what says which function it is and then that.
func (c *caller) run(ctx context.Context) (*Result, error) {
	call, kind := c.call, c.kind
	c.deadline = time.Now().Add(cmp.Or(c.o.Wait, DefaultWait)) // the debug information may have taken long
	if c.resolves {
		c.call.Arguments, c.call.ErrnoLocation, c.kind = nil, 0, "ptr"
		if err := c.find(ctx); err != nil {
			return nil, fmt.Errorf("%s is chosen by a function (IFUNC), and that: %w", c.result.Function, err)
		}
		if err := c.isCode(c.result.Value.Bits); err != nil {
			return nil, err
		}
		call.Function = c.result.Value.Bits
		c.result.Address = call.Function
	}
	c.call, c.kind = call, kind
	if err := c.find(ctx); err != nil {
		return nil, err
	}
	return &c.result, nil
}

// untilUntraced does something again for as long as another tracer holds the process, within the time for that.
func (c *caller) untilUntraced(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, process.ErrTraced) || time.Now().After(c.deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tracedPause):
		}
	}
}

// tracedPause is how long a process is left to another tracer before it is looked at again.
const tracedPause = 5 * time.Millisecond

// errDone ends a round of threads.
var errDone = errors.New("the function was called")

// find looks for a thread that may call the function, and has it do so.
func (c *caller) find(ctx context.Context) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		var done bool
		err := c.untilUntraced(ctx, func() (err error) {
			done, err = c.round(ctx)
			return err
		})
		if done || err != nil {
			return err
		}
		if time.Now().After(c.deadline) {
			return c.refuse(cmp.Or(c.o.Wait, DefaultWait))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// round looks at all threads once. Those that stand well as they run by are stopped, looked at again and used.
func (c *caller) round(ctx context.Context) (done bool, err error) {
	infos, err := c.threads()
	if err != nil {
		return false, err
	}
	seen, err := c.holder.Look(ctx, infos)
	if err != nil {
		return false, err
	}
	c.why = map[int]string{}
	names := map[int]string{}
	var tids []int
	for k := range seen {
		t := &seen[k]
		names[t.TID] = t.Name
		if why := standingOf(t, t.State == "sleeping").unsafe(); why != "" {
			c.why[t.TID] = why
		} else {
			tids = append(tids, t.TID)
		}
	}
	if len(tids) == 0 {
		return false, nil
	}
	var callErr error
	err = c.p.EachThread(ctx, process.StopOptions{Timeout: stopTimeout}, tids, func(t *process.Thread, stopErr error) error {
		if stopErr != nil {
			c.why[t.TID] = stopErr.Error()
			return nil
		}
		c.result.TID, c.result.Thread = t.TID, names[t.TID]
		called, err := c.onThread(ctx, t)
		if !called {
			c.why[t.TID] = err.Error()
			return nil
		}
		callErr = err
		return errDone
	}, nil)
	if errors.Is(err, errDone) {
		return true, callErr
	}
	return false, err
}

// stopTimeout is how long a thread may take to stop.
const stopTimeout = time.Second

// threads are those that may be used: that which is asked for, or those that wait, the first one before the others, and then the rest.
func (c *caller) threads() ([]process.ThreadInfo, error) {
	all, err := c.p.Threads()
	if err != nil {
		return nil, err
	}
	infos := slices.DeleteFunc(all, func(t process.ThreadInfo) bool {
		return t.Worker || t.State == 'Z' || t.State == 'X' || c.o.TID != 0 && t.TID != c.o.TID
	})
	if len(infos) == 0 && c.o.TID != 0 {
		return nil, fmt.Errorf("process %d: %w: it has no thread %d", c.o.PID, ErrRefused, c.o.TID)
	}
	slices.SortStableFunc(infos, func(a, b process.ThreadInfo) int {
		rank := func(t process.ThreadInfo) int {
			if t.State == 'S' {
				return 0
			}
			return 1
		}
		return cmp.Compare(rank(a), rank(b))
	})
	return infos[:min(len(infos), maxThreads)], nil
}

// maxThreads bounds how many threads are looked at in a round.
const maxThreads = 256

// onThread calls the function in a thread that is stopped, if it stands well. called says that something was done.
func (c *caller) onThread(ctx context.Context, t *process.Thread) (called bool, err error) {
	begun := time.Now()
	stack, err := c.holder.Stack(t)
	if err != nil {
		return false, err
	}
	_, waits, err := t.InSyscall()
	if err != nil {
		return false, err
	}
	s := standingOf(&stack, waits)
	if why := s.unsafe(); why != "" {
		return false, errors.New(why)
	}
	call := c.call
	call.Room = room
	call.Timeout = cmp.Or(c.o.Timeout, DefaultTimeout)
	call.Returned = c.returned
	call.Overdue = c.overdue
	err = t.Invoke(ctx, call)
	c.result.Stopped, c.result.Where = time.Since(begun), s.where()
	return !errors.Is(err, process.ErrNotInvoked), err
}

// returned reads the result, while what it points to is as the function has left it.
func (c *caller) returned(r process.Returned) {
	c.result.Value = valueOf(r, c.kind, func(addr uint64, n int) []byte {
		buf := make([]byte, n)
		if n = c.p.ReadUpTo(buf, addr); n == 0 {
			return nil
		}
		return buf[:n]
	})
	c.result.Took, c.result.WaitsAnew = r.Took, r.WaitsAnew
	c.result.Float, c.result.Second = r.Float[0], r.Integer[1]
}

func (c *caller) refuse(wait time.Duration) error {
	e := &RefusedError{PID: c.o.PID, Waited: wait.String()}
	names := map[int]string{}
	if infos, err := c.p.Threads(); err == nil {
		for _, t := range infos {
			names[t.TID] = t.Name
		}
	}
	for tid, why := range c.why {
		e.Threads = append(e.Threads, ThreadRefusal{tid, names[tid], why})
	}
	slices.SortFunc(e.Threads, func(a, b ThreadRefusal) int { return cmp.Compare(a.TID, b.TID) })
	e.More = max(len(e.Threads)-maxRefusals, 0)
	e.Threads = e.Threads[:len(e.Threads)-e.More]
	return e
}
