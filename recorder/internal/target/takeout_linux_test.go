package target

import (
	"testing"
	"time"
)

// Whatever writing costs, stops come to take what they may, and no single one says too much.
func TestStopsBecomeAsLongAsTheyMayBe(t *testing.T) {
	for what, c := range map[string]struct{ fixed, site time.Duration }{
		"many sites on a page":                 {200 * time.Microsecond, 300 * time.Nanosecond},
		"one on each":                          {200 * time.Microsecond, 2 * time.Microsecond},
		"a process with many mappings":         {2 * time.Millisecond, 2 * time.Microsecond},
		"one whose mappings take all the time": {5 * time.Millisecond, time.Microsecond},
	} {
		var p partSize
		took := func(n int) time.Duration { return c.fixed + time.Duration(n)*c.site }
		for range 20 {
			p.took(p.sites(), took(p.sites()))
		}
		n := p.sites()
		switch {
		case n < leastTaken || n > mostTaken:
			t.Errorf("%s: %d sites in a stop", what, n)
		case n < mostTaken && n > leastTaken && (took(n) > writeGoal*11/10 || took(n) < writeGoal*9/10):
			t.Errorf("%s: %d sites, which take %v", what, n, took(n))
		case n == mostTaken && took(n) > writeGoal, n == leastTaken && c.fixed < writeGoal:
			t.Errorf("%s: %d sites, which take %v", what, n, took(n))
		}
		if p.took(1, took(1)); c.fixed < writeGoal && p.sites() != n {
			t.Errorf("%s: a stop for one site makes %d sites of %d", what, p.sites(), n)
		}
		p.took(0, 0) // nothing was written
	}
}
