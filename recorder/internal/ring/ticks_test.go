package ring

import (
	"math"
	"testing"
	"time"
)

func TestTicksAreAsManyAsADurationTakes(t *testing.T) {
	for _, c := range []struct {
		d         time.Duration
		perSecond uint64
		want      uint64
	}{
		{50 * time.Microsecond, 62_500_000, 3125}, {50 * time.Microsecond, 62_499_999, 3125}, {50 * time.Microsecond, 62_500_001, 3126},
		{1, 24_000_000, 1}, {0, 1e9, 0}, {-time.Second, 1e9, 0}, {time.Hour, 3e9, 3600 * 3e9}, {math.MaxInt64, math.MaxUint64, math.MaxUint64},
		{math.MaxInt64, 1e9, math.MaxInt64},
	} {
		if got := TicksOf(c.d, c.perSecond); got != c.want {
			t.Errorf("%v at %d a second are %d ticks, want %d", c.d, c.perSecond, got, c.want)
		}
	}
}
