package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signalCause is the cause of a context that a signal has ended; it is a recorder.SignalCause.
type signalCause struct{ sig os.Signal }

func (c signalCause) Error() string     { return fmt.Sprintf("ended by a signal: %v", c.sig) }
func (c signalCause) Signal() os.Signal { return c.sig }

// exitCode is the one that shells give to what a signal has ended.
func (c signalCause) exitCode() int {
	if s, ok := c.sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitFailed
}

// twiceAtOnce is how long after a signal another one is taken for the same: timeout(1) sends two, one to the process and
// one to its group, and so do terminals where a wrapper such as sudo passes its own on.
const twiceAtOnce = time.Second

// untilSignal returns a context that SIGINT, SIGTERM, SIGQUIT or SIGHUP ends, unless nohup or a shell's background job has
// the last two ignored. One that comes later has its default effect again: it ends the program at once, which is safe at
// any instant.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 1)
	ending := endingSignals()
	signal.Notify(ch, ending...)
	go func() {
		select {
		case s := <-ch:
			time.AfterFunc(twiceAtOnce, func() { signal.Stop(ch) })
			cancel(signalCause{s})
		case <-ctx.Done():
			signal.Stop(ch)
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// endingSignals are those that end what is done.
func endingSignals() []os.Signal {
	// Scripts end recordings that they have put in the background by SIGINT, though sh lets those ignore it.
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ending = append(ending, syscall.SIGHUP)
	}
	if !signal.Ignored(os.Interrupt) {
		ending = append(ending, syscall.SIGQUIT)
	}
	return ending
}

// endedEarly is the error of a recording that wasn't on yet: the signal that has ended it, and what has gone wrong besides.
func endedEarly(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return err
	case errors.Is(err, context.Canceled) && isOne(err):
		return cause
	}
	return fmt.Errorf("%w (%w)", err, cause)
}

// isOne says that nothing has been joined to an error.
func isOne(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if _, joined := err.(interface{ Unwrap() []error }); joined {
			return false
		}
	}
	return true
}

// untilNextSignal returns a context that the next of these signals ends, though one has ended something before: what follows a recording, and
// need not be. One that comes later ends the program at once. One that comes within twiceAtOnce is taken for the former.
func untilNextSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, endingSignals()...)
	began, over := time.Now(), make(chan struct{})
	go func() {
		defer close(over)
		defer signal.Stop(ch)
		for {
			select {
			case s := <-ch:
				if time.Since(began) < twiceAtOnce {
					continue
				}
				cancel(signalCause{s})
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-over
	}
}
