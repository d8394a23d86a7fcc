package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
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

// untilSignal returns a context that SIGINT or SIGTERM ends. A second one has its default effect again: it ends the
// program at once, which is safe at any instant.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-ch:
			signal.Stop(ch)
			cancel(signalCause{s})
		case <-ctx.Done():
			signal.Stop(ch)
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
