package pace

import (
	"testing"
	"time"
)

func TestRestsEndTogether(t *testing.T) {
	for _, d := range []time.Duration{Step, 3 * Step, 60 * time.Millisecond, Step + 1, 17 * time.Millisecond} {
		for at := time.Duration(0); at < 2*Step; at += 77 * time.Microsecond {
			now := time.Unix(1_000_000, int64(at))
			rest := Rest(now, d)
			if end := now.Add(rest).UnixNano(); end%int64(Step) != 0 {
				t.Errorf("at %v, a rest of %v ends at %d", at, d, end)
			}
			if rest-d > Step/2 || d-rest > Step/2 {
				t.Errorf("at %v, a rest of %v becomes one of %v", at, d, rest)
			}
		}
	}
	if d := Rest(time.Unix(0, 1), Step-1); d != Step-1 {
		t.Errorf("a short rest becomes %v", d)
	}
}
