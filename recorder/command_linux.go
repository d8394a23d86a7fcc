package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/callreel/callreel/process"
)

// recordCommand starts a program and records it from its entry point on. While everything is prepared the program
// stands there: it has not begun yet, so nobody waits for it.
func recordCommand(ctx context.Context, opt Options) (*Result, error) {
	r := newRecording(opt)
	if err := r.out.check(); err != nil {
		return nil, err
	}
	if err := process.CodeSupported(); err != nil {
		return nil, fmt.Errorf("callreel: record: %w", err)
	}
	if err := r.fetchCommand(ctx); err != nil {
		return nil, err
	}
	r.prepareScheduler(ctx)
	begun := false
	l, err := process.Launch(ctx, process.Command{
		Path: opt.Command[0], Args: opt.Command, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Ignored: opt.Ignored, GoAtEntry: true,
	}, process.StopOptions{}, func(st *process.Stopped) error {
		if err := r.AtEntry(ctx, st); err != nil {
			return err
		}
		begun = true
		return nil
	})
	defer r.Close()
	if err != nil && !begun {
		return nil, err
	}
	res, err := r.run(ctx)
	if ctx.Err() != nil {
		// The recording was told to end, and so is what was started for it.
		if sig := endingSignal(ctx); sig != 0 && !process.FromTerminal(sig, l.Pid()) {
			_ = l.Signal(sig) // it may have ended by itself
		}
	}
	status, werr := l.Wait()
	res.ExitCode = status.Code
	if status.Signal != 0 {
		res.ExitCode = 128 + status.Signal
	}
	return res, errors.Join(err, werr)
}

// SignalCause is a context's cause that names the signal which has ended it: a command that was started for recording
// is sent the same.
type SignalCause interface {
	error
	Signal() os.Signal
}

// endingSignal is the signal that has ended ctx, 0 if it was none.
func endingSignal(ctx context.Context) syscall.Signal {
	var c SignalCause
	if errors.As(context.Cause(ctx), &c) {
		if s, ok := c.Signal().(syscall.Signal); ok {
			return s
		}
	}
	return 0
}
