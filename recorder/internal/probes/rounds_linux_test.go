package probes

import (
	"testing"
	"time"
)

// Within a round only that is called which any round will do for.
func TestWithinARoundOnlyThatIsCalledWhichAnyRoundWillDoFor(t *testing.T) {
	var r Rounds
	over := make(chan struct{})
	soon, behind := make(chan bool, 1), make(chan bool, 1)
	called := make(chan string, 2)
	r.Begin()
	go func() { soon <- r.after(over, time.Minute, true, func() { called <- "soon" }) }()
	go func() { behind <- r.after(over, time.Minute, false, func() { called <- "behind" }) }()
	for waits := 0; waits < 2; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		waits = len(r.waiters)
		r.mu.Unlock()
	}
	r.Serve()
	if !<-soon {
		t.Error("it wasn't called within the round")
	}
	r.End(true) // it has begun before it was asked
	select {
	case <-behind:
		t.Error("what is for a whole round was called behind one that had begun")
	default:
	}
	r.Begin()
	r.Serve()
	if len(called) != 1 {
		t.Errorf("%d were called", len(called))
	}
	r.End(true)
	if !<-behind || <-called != "soon" || <-called != "behind" {
		t.Error("what is for a whole round wasn't called behind one")
	}
}
