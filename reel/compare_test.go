package reel

import "testing"

// Calls that were open when recording ended say nothing of what a function costs: they are as long as the recording.
func TestWhatWasOpenAtTheEndIsNotSlower(t *testing.T) {
	loop := func(calls, open, ended uint64) FunctionSummary {
		f := FunctionSummary{ID: 1, Name: "loop", Calls: calls, Total: ended + open, Self: ended + open, Max: max(open, ended)}
		if open > 0 {
			f.Unfinished, f.UnfinishedTotal, f.UnfinishedSelf = 1, open, open
		}
		return f
	}
	leaf := func(self uint64) FunctionSummary {
		return FunctionSummary{ID: 2, Name: "leaf", Calls: 10, Total: self, Self: self}
	}
	for _, test := range []struct {
		name         string
		a, b         FunctionSummary
		slower, more int64
	}{
		{"a loop, in a longer recording", loop(1, 1000, 0), loop(1, 5e9, 0), 0, 0},
		{"one that ended in A", loop(1, 0, 1000), loop(1, 5e9, 0), 0, -1000},
		{"one that ended in B, with another", loop(1, 1000, 0), loop(2, 5e9, 700), 700, 700},
		{"one that ended in both, with others", loop(3, 1e9, 200), loop(3, 1, 300), 100, 100},
	} {
		changes := Compare([]FunctionSummary{test.a, leaf(100)}, []FunctionSummary{test.b, leaf(150)})
		if first := changes[0]; test.slower < 50 && first.Name != "leaf" {
			t.Errorf("%s: %s comes first", test.name, first.Name)
		}
		for _, c := range changes {
			if c.Name == "loop" && (c.Slower != test.slower || c.DeltaSelf() != test.more || c.DeltaTotal() != test.more) {
				t.Errorf("%s: slower by %d, %d of its own more, %d in all; want %d and %d", test.name, c.Slower, c.DeltaSelf(), c.DeltaTotal(), test.slower, test.more)
			}
		}
	}
}
