package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// A signal that ends a recording before it is on is what the user is told, and whatever else has gone wrong.
func TestErrorsBesideASignalAreTold(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	full := errors.New("the disk is full")
	if err := endedEarly(ctx, full); err != full {
		t.Errorf("%v without a signal", err)
	}
	cancel(signalCause{syscall.SIGINT})
	for _, c := range []struct {
		err  error
		want string
	}{
		{ctx.Err(), "ended by a signal: interrupt"},
		{fmt.Errorf("libc.so.6: %w", ctx.Err()), "ended by a signal: interrupt"},
		{full, "the disk is full (ended by a signal: interrupt)"},
		{fmt.Errorf("process 7: %w", errors.Join(ctx.Err(), full)), "the disk is full (ended by a signal: interrupt)"},
	} {
		err := endedEarly(ctx, c.err)
		if !strings.HasSuffix(err.Error(), c.want) || !strings.HasPrefix(c.want, "ended") && !errors.Is(err, full) || exitCode(err) != 130 {
			t.Errorf("%v: %v, code %d", c.err, err, exitCode(err))
		}
	}
}
