package recorder_test

import (
	"context"
	"testing"
)

// A load is work given to a server while it is recorded.
type load struct {
	stop context.CancelFunc
	done chan struct{}
	n    int64
	err  error
}

// underLoad keeps run going until end, or the end of the test.
func underLoad(t testing.TB, run func(context.Context) (int64, error)) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.n, l.err = run(ctx)
	}()
	t.Cleanup(func() { stop(); <-l.done })
	return l
}

// end stops the load. There must have been replies, and all of them right.
func (l *load) end(t testing.TB) {
	t.Helper()
	l.stop()
	<-l.done
	if l.err != nil {
		t.Fatalf("after %d right replies: %v", l.n, l.err)
	}
	if l.n == 0 {
		t.Fatal("no reply")
	}
	t.Logf("%d right replies", l.n)
}
