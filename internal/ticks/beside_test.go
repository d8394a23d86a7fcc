//go:build amd64 || arm64

package ticks

import (
	"testing"
	"time"
)

// A reader that is held up between the clocks, but not each time, gives the reading at which it wasn't.
func TestReadingsThatAreHeldUpDoNotCount(t *testing.T) {
	n := 0
	before := Now()
	tick, which := Beside(func() int {
		n++
		if n != 3 {
			time.Sleep(100 * time.Millisecond)
		}
		return n
	})
	if after := Now(); tick < before || tick > after {
		t.Errorf("tick %d is not between %d and %d", tick, before, after)
	}
	if which != 3 || n != besides {
		t.Errorf("reading %d of %d counts; the third took least", which, n)
	}
}
