package follow

import (
	"context"
	"testing"
	"time"
)

// A thread that asks again before whoever has taken it has noticed that its exec has failed is taken then, and not let go unseen.
func TestAThreadThatAsksAgainIsTakenNext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	e := &execs{over: over, taken: map[int]chan struct{}{}}
	if !e.take(ctx, 7) || !e.take(ctx, 8) {
		t.Fatal("a thread that nobody has can't be taken")
	}
	got := make(chan bool)
	again := func(tid int) { go func() { got <- e.take(ctx, tid) }() }
	again(7)
	select {
	case <-got:
		t.Fatal("it was answered while another one has it")
	case <-time.After(20 * time.Millisecond): // an answer that comes later would be as wrong, and is seen below
	}
	e.giveBack(7)
	if !<-got {
		t.Error("it isn't taken")
	}
	again(8)
	close(over)
	if <-got {
		t.Error("it is taken though recording has ended")
	}
}
