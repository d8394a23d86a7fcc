package overdue

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/unwind"
)

func TestCallsAreFoundWithinARecordedOne(t *testing.T) {
	f := NewFunctions([]Function{{Addr: 0x1000, Size: 0x100, ID: 1}, {Addr: 0x1100, Size: 0x100, ID: 2}, {Addr: 0x1300, Size: 0x80, ID: 3}, {Addr: 0x1200, Size: 0x100, ID: 4}})
	frames := []unwind.Frame{
		{PC: 0x5000, SP: 0x7F00, Flags: unwind.Exact}, // the C library's
		{PC: 0x1300, SP: 0x7F10},                      // a call that never returns is the last instruction of 4
		{PC: 0x1120, SP: 0x7F40},
		{PC: 0x1010, SP: 0x7F80},
		{PC: 0x6000, SP: 0x8000},
	}
	off := func(id uint32) bool { return id != 2 }
	for _, c := range []struct {
		within Call
		calls  []Call
		found  bool
	}{
		{Call{0x8000 - returnSize, 1}, []Call{{0x7F40 - returnSize, 4}}, true},
		{Call{0x7F80 - returnSize, 2}, []Call{{0x7F40 - returnSize, 4}}, true},
		{Call{}, []Call{{0x8000 - returnSize, 1}, {0x7F40 - returnSize, 4}}, true},
		{Call{0x8000 - returnSize, 3}, []Call{{0x7F40 - returnSize, 4}}, false},
		{Call{0xA000 - returnSize, 1}, []Call{{0x8000 - returnSize, 1}, {0x7F40 - returnSize, 4}}, false},
	} {
		calls, found := f.Within(frames, c.within, off)
		if !slices.Equal(calls, c.calls) || found != c.found {
			t.Errorf("within %v: %v, %v, want %v, %v", c.within, calls, found, c.calls, c.found)
		}
	}
	frames[2].Flags = unwind.SignalFrame
	if _, found := f.Within(frames, Call{0x8000 - returnSize, 1}, off); found {
		t.Error("a signal handler's frames are taken for the program's")
	}
}
