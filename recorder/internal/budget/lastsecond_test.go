package budget

import (
	"math"
	"testing"
)

func TestWhatWasSpentLongAgoIsNotOfTheLastSecond(t *testing.T) {
	var w lastSecond
	const perSecond = 1000
	for _, c := range []struct {
		s    spending
		want float64
	}{
		{spending{100, 0.4, 0.5}, 0.8},
		{spending{600, 0, 0.5}, 0.4},
		{spending{1099, 0.02, 0.3}, 0.42 / 1.3},
		{spending{1100, 0, 0.2}, 0.02 / 1},
		{spending{5000, 0.01, 0.1}, 0.1},
	} {
		if got := w.add(c.s, perSecond); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v, want %v", c.s, got, c.want)
		}
	}
}
