package armed

import (
	"testing"
	"time"
)

// It is said how long the memory lasts when that is known, and again when it has changed a lot, but not all the time.
func TestHowLongTheMemoryLastsIsSaid(t *testing.T) {
	var l lasting
	now, bytes := time.Unix(1000, 0), uint64(0)
	said := ""
	second := func(rate uint64, keep time.Duration) string {
		now, bytes = now.Add(time.Second), bytes+rate
		l.add(now, bytes)
		if text := l.say(now, 64<<20, keep); text != "" {
			said = text
			return text
		}
		return ""
	}
	if text := second(1<<20, time.Second) + second(1<<20, time.Second); text != "" {
		t.Errorf("at once: %q", text)
	}
	if text := second(1<<20, time.Second); text != "at this rate 64 MB last 64 s" {
		t.Errorf("%q", text)
	}
	for range 60 {
		if text := second(1<<20, time.Second); text != "" {
			t.Errorf("the same again: %q", text)
		}
	}
	for range 20 {
		second(32<<20, time.Second)
	}
	if want := "at this rate 64 MB last 2.9s"; said == want || said == "at this rate 64 MB last 64 s" {
		t.Errorf("%q", said)
	}
	if text := second(32<<20, time.Minute); text != "at this rate 64 MB last 2s, less than the 1m0s that dumps are to hold; --memory gives more" {
		t.Errorf("%q", text)
	}
	for range 20 {
		second(0, time.Minute)
	}
	if d := l.lasts(64 << 20); d != 0 {
		t.Errorf("of a program that does nothing: %v", d)
	}
}
