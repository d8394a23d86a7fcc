package main

import (
	"testing"
	"time"

	"github.com/callreel/callreel/live"
)

// hostileSnapshot has a name wherever there may be one.
func hostileSnapshot(name string) *live.Snapshot {
	return &live.Snapshot{
		Elapsed: time.Second, Calls: 1, Dropped: 2, LostExits: 3, Ignored: 4,
		Functions: []live.Function{{ID: 1, Name: name, Short: name, Module: name, Calls: 1, PerSecond: 1, Open: 1, Self: 1 << 63, Whole: true, P99: 1 << 62, Max: 1 << 63}, {Name: name}},
		Threads:   []live.Thread{{TID: 1, Name: name, In: name, Depth: 1, For: 1 << 63, Dropped: 1}, {Name: name, Ended: true}},
	}
}

func TestNamesOnThePageAreCutWhereTheyTellLeast(t *testing.T) {
	f := live.Function{Module: "libstdc++.so.6.0.30", Name: "operator new(unsigned long)", Short: "operator new"}
	for most, want := range map[int]string{
		47: "libstdc++.so.6.0.30!operator new(unsigned long)",
		40: "libstdc++.s…!operator new(unsigned long)",
		31: "libstdc++.so.6.0.…!operator new",
		10: "lib…!operator new",
	} {
		if got := functionName(&f, most); got != want {
			t.Errorf("%d characters: %q, want %q", most, got, want)
		}
	}
}
