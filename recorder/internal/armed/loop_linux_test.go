package armed

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// What wakes the loop writes into memory that goes when the loop has ended.
func TestNobodyWakesALoopThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var waking atomic.Bool
	begun := make(chan struct{})
	stop := callWhenOver(ctx, func() {
		waking.Store(true)
		close(begun)
		time.Sleep(20 * time.Millisecond)
		waking.Store(false)
	})
	cancel()
	<-begun
	stop()
	if waking.Load() {
		t.Error("it is still being woken")
	}
	ctx, cancel = context.WithCancel(t.Context())
	stop = callWhenOver(ctx, func() { t.Error("a loop that has ended is woken") })
	stop()
	cancel()
}
