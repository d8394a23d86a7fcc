package sampler

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// SampleOptions says what Sample does. One of PID and Command must be set.
type SampleOptions struct {
	PID     int
	Command []string // a program to start, with its arguments; it gets our standard files
	Ignored []syscall.Signal

	// Rate is the number of samples a second: of the time that a thread runs, or with
	// Wall of time. 0 means DefaultRate or DefaultWallRate.
	Rate int
	// Duration ends it; 0 means the end of the process, or of the context.
	Duration time.Duration
	// Wall samples all threads, whether they run or wait: those that run by stopping one
	// after the other, those that wait mostly without (see process.Waiting.StartsOver).
	// Processes that the process starts are not looked at then.
	Wall bool
	// StackSize is how many bytes of a stack are kept of a sample at most, up to
	// MaxStackSize; 0 means 32 KiB, less where the kernel lets us lock little memory.
	// Outer frames beyond are missing. With Wall it means nothing.
	StackSize int
	MaxFrames int // of a stack; 0 means unwind.DefaultMaxFrames
	// Memory bounds what the files of all processes may make us keep of them; nil means
	// object.DefaultMemory.
	Memory *object.Allowance

	// Names, if it isn't nil, may get ahead what it needs of the images of the process PID.
	Names Preparer

	Notice   func(format string, args ...any) // nil: nobody is told
	Progress func(Progress)                   // is called some times a second; may be nil
}

// The rates when none is asked for. They are no divisors of 1000 or 100, so as not to be
// in step with the timers of programs.
const (
	DefaultRate     = 99
	DefaultWallRate = 19
)

// The bounds of rates. Above, the kernel itself slows the clock down; and a stop costs
// each thread some tens of microseconds.
const (
	MaxRate     = 20_000
	MaxWallRate = 500
)

// MaxStackSize bounds SampleOptions.StackSize: a sample's size has 16 bits.
const MaxStackSize = 60 << 10

// Progress is how sampling stands.
type Progress struct {
	Elapsed       time.Duration
	Samples, Lost uint64
	Threads       int
}

// A Profile is how often each stack was seen. It must be closed.
type Profile struct {
	Wall     bool // all threads at all times, instead of those that run
	Rate     int  // samples a second
	Begun    time.Time
	Duration time.Duration

	Samples    uint64
	Lost       uint64 // samples that found no room, exactly as the kernel counts them
	Incomplete uint64 // samples whose outermost frame was not reached
	Throttled  uint64 // how often the kernel has held the clock since it was too fast
	Threads    int    // that were seen in samples
	// UserOnly says that time in the kernel is missing, which we were not permitted to
	// see.
	UserOnly bool
	OwnCPU   time.Duration // that we have used, user and system, without what names take
	// CPU is the processor time that the process itself has used meanwhile, as far as it is
	// known; it is not once the process has ended. Unseen is what samples do not stand for:
	// a thread is sampled each time that it has run for so long, so that many threads which
	// run for less each are not seen.
	CPU, Unseen time.Duration
	Ended       bool // the process has ended

	Stacks    []ProfileStack
	Locations []Location
	Problems  []error // files that could not be used

	command  *process.Launched
	signaled bool // the command was told to end
	closers  []func() error
}

// A ProfileStack is a stack that was seen.
type ProfileStack struct {
	Process string  // the process's name, at most 15 bytes; from outside
	Frames  []int32 // indices of Profile.Locations, innermost first
	Kernel  bool    // it was in the kernel, called by the innermost frame
	End     unwind.Reason
	Count   uint64
}

// A Location is a place in code.
type Location struct {
	// Address is inside the instruction that was at work: for a caller the last byte of
	// its call. Where several processes have the image it is that of the first one.
	Address uint64
	Image   *Image // nil when no file is behind the code
	Link    uint64 // link address in Image, for a Symbolizer
	Name    string // that the process's JIT compiler gives the code; "" for all other code
}

// Close closes the files of the images. What was named stays valid.
func (p *Profile) Close() error {
	var errs []error
	for _, c := range p.closers {
		errs = append(errs, c())
	}
	p.closers = nil
	return errors.Join(errs...)
}

// Wait waits for the end of the command that was sampled and returns its exit code as
// shells have it: 128 and the signal's number if one killed it. When ctx is ended by a
// signal (its cause has a method Signal), the command is sent the same. Without a command
// it returns 0 at once.
func (p *Profile) Wait(ctx context.Context) (int, error) {
	if p.command == nil {
		return 0, nil
	}
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			p.passOn(ctx)
		case <-over:
		}
	}()
	status, err := p.command.Wait()
	close(over)
	<-stopped
	if status.Signal != 0 {
		return 128 + status.Signal, err
	}
	return status.Code, err
}

// passOn sends the command the signal that has ended ctx, unless the terminal did.
func (p *Profile) passOn(ctx context.Context) {
	var cause interface{ Signal() os.Signal }
	if p.signaled || p.command == nil || !errors.As(context.Cause(ctx), &cause) {
		return
	}
	sig, ok := cause.Signal().(syscall.Signal)
	if p.signaled = true; ok && !process.FromTerminal(sig, p.command.Pid()) {
		_ = p.command.Signal(sig) // it may have ended by itself
	}
}
