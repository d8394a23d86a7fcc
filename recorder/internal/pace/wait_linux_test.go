package pace

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestWaitTakesItsTime(t *testing.T) {
	for _, nap := range []bool{false, true} {
		for _, d := range []time.Duration{time.Millisecond, Step, longestNap, longestNap + time.Millisecond} {
			rested := time.Duration(0) // what a nap lacks that a signal has ended is had by others
			for n := 0; rested < d; n++ {
				if n == 1000 {
					t.Fatalf("nap %v of %v: %v in a thousand", nap, d, rested)
				}
				began := time.Now()
				Wait(t.Context(), d, nap)
				rested += time.Since(began)
			}
		}
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, nap := range []bool{false, true} {
		began := time.Now()
		Wait(ctx, time.Hour, nap) // too long for a nap
		if took := time.Since(began); took > time.Minute {
			t.Errorf("nap %v: %v", nap, took)
		}
	}
}

// Collections of garbage stop the world. One who naps all the time doesn't hold them up for long, since a signal ends naps.
func TestNapsLetTheWorldStop(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan bool), make(chan int)
	go func() {
		close(began)
		n := 0
		for ctx.Err() == nil {
			Wait(ctx, longestNap, true)
			n++
		}
		ended <- n
	}()
	<-began
	const collections = 50
	for range collections {
		runtime.GC()
	}
	cancel()
	// Each collection stops the world twice, and a nap is interrupted by that or over.
	if n := <-ended; n < 2 {
		t.Errorf("%d naps during %d collections", n, collections)
	}
}
