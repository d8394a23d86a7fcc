package reel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// paired runs events through a Pairer and writes each call as
// "func@depth/stack start-end flags", in order of their end.
func paired(p *Pairer, events []Event, end uint64) []string {
	var out []string
	p.OnCall = func(c *Call) {
		s := fmt.Sprintf("%d@%d/%d %d-%d", c.Func, c.Depth, c.Stack, c.Start, c.End)
		for _, f := range []struct {
			flag CallFlags
			name string
		}{{Unfinished, "unfinished"}, {Implicit, "implicit"}, {AcrossLoss, "lost"}} {
			if c.Flags&f.flag != 0 {
				s += " " + f.name
			}
		}
		out = append(out, s)
	}
	p.Push(events)
	p.Finish(end)
	return out
}

const base = 0x7ffe0000 // a stack's top in these tests

func TestPairing(t *testing.T) {
	const (
		signalStack = base - 40<<20
		coroutine   = base - 80<<20
	)
	tests := []struct {
		name      string
		events    []Event
		want      []string
		unmatched uint64
	}{
		{"nested calls", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2), Exit(30, base-32, 2), Entry(40, base-32, 3), Exit(50, base-32, 3), Exit(60, base, 1),
		}, []string{"2@1/0 20-30", "3@1/0 40-50", "1@0/0 10-60"}, 0},

		{"recursion", []Event{
			Entry(10, base, 1), Entry(20, base-32, 1), Entry(30, base-64, 1), Exit(40, base-64, 1), Exit(50, base-32, 1), Exit(60, base, 1),
		}, []string{"1@2/0 30-40", "1@1/0 20-50", "1@0/0 10-60"}, 0},

		{"tail call: the callee enters at the caller's SP after its exit", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2), Exit(30, base-32, 2), Entry(31, base-32, 3), Exit(40, base-32, 3), Exit(50, base, 1),
		}, []string{"2@1/0 20-30", "3@1/0 31-40", "1@0/0 10-50"}, 0},

		{"tail call whose exit is not probed", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2), Entry(31, base-32, 3), Exit(40, base-32, 3), Exit(50, base, 1),
		}, []string{"2@1/0 20-31 implicit", "3@1/0 31-40", "1@0/0 10-50"}, 0},

		{"exception caught three frames up, which then returns", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2), Entry(30, base-64, 3), Entry(40, base-96, 4), Exit(90, base, 1),
		}, []string{"4@3/0 40-90 implicit", "3@2/0 30-90 implicit", "2@1/0 20-90 implicit", "1@0/0 10-90"}, 0},

		{"longjmp to a frame that calls again", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2), Entry(30, base-64, 3), Entry(70, base-32, 5), Exit(80, base-32, 5), Exit(90, base, 1),
		}, []string{"3@2/0 30-70 implicit", "2@1/0 20-70 implicit", "5@1/0 70-80", "1@0/0 10-90"}, 0},

		{"exits of calls open before recording", []Event{
			Exit(10, base-64, 4), Exit(20, base-32, 3), Entry(30, base-32, 2), Exit(40, base-32, 2), Exit(50, base, 1),
		}, []string{"2@0/0 30-40"}, 3},

		{"dropped entry: its exit alone is recorded", []Event{
			Entry(10, base, 1), Exit(30, base-32, 2), Entry(40, base-32, 2), Exit(50, base-32, 2), Exit(60, base, 1),
		}, []string{"2@1/0 40-50", "1@0/0 10-60"}, 1},

		{"exit of another function at the same SP", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2), Exit(30, base-32, 9), Exit(40, base-32, 2), Exit(50, base, 1),
		}, []string{"2@1/0 20-40", "1@0/0 10-50"}, 1},

		{"open at the end", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2),
		}, []string{"2@1/0 20-99 unfinished", "1@0/0 10-99 unfinished"}, 0},

		{"signal handler on its own stack", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2),
			Entry(30, signalStack, 7), Entry(31, signalStack-64, 8), Exit(32, signalStack-64, 8), Exit(40, signalStack, 7),
			Exit(50, base-32, 2), Exit(60, base, 1),
		}, []string{"8@1/1 31-32", "7@0/1 30-40", "2@1/0 20-50", "1@0/0 10-60"}, 0},

		{"signal handler left by siglongjmp", []Event{
			Entry(10, base, 1), Entry(20, base-32, 2), Entry(30, signalStack, 7), Exit(50, base, 1),
			Entry(60, base, 1), Entry(65, signalStack, 7), Exit(70, signalStack, 7), Exit(75, base, 1),
		}, []string{"2@1/0 20-50 implicit", "1@0/0 10-50", "7@0/1 30-65 implicit", "7@0/1 65-70", "1@0/0 60-75"}, 0},

		{"two coroutines, switched to and fro", []Event{
			Entry(10, base, 1),
			Entry(20, coroutine, 2), Entry(21, coroutine-48, 3),
			Entry(30, base-32, 4), Exit(31, base-32, 4),
			Exit(40, coroutine-48, 3), Entry(41, coroutine-48, 3),
			Entry(50, base-32, 4), Exit(51, base-32, 4),
			Exit(60, coroutine-48, 3), Exit(61, coroutine, 2),
			Exit(70, base, 1),
		}, []string{"4@1/0 30-31", "3@1/1 21-40", "4@1/0 50-51", "3@1/1 41-60", "2@0/1 20-61", "1@0/0 10-70"}, 0},

		{"stack across the 4 GiB boundary", []Event{
			Entry(10, 0x40, 1), Entry(20, 0xffffffe0, 2), Exit(30, 0xffffffe0, 2), Exit(40, 0x40, 1),
		}, []string{"2@1/0 20-30", "1@0/0 10-40"}, 0},

		{"clock at exits: a start is the time of the event before", []Event{
			Entry(0, base, 1), Entry(0, base-32, 2), Exit(30, base-32, 2), Entry(0, base-32, 3), Exit(50, base-32, 3), Exit(60, base, 1),
		}, []string{"2@1/0 5-30", "3@1/0 30-50", "1@0/0 5-60"}, 0},

		{"time that steps back does not make a call negative", []Event{
			Entry(50, base, 1), Exit(40, base, 1),
		}, []string{"1@0/0 50-50"}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var p Pairer
			p.SetTime(5)
			got := paired(&p, test.events, 99)
			if !slices.Equal(got, test.want) {
				t.Errorf("calls\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
			if p.Unmatched != test.unmatched {
				t.Errorf("%d unmatched exits, want %d", p.Unmatched, test.unmatched)
			}
		})
	}
}

func TestInsideTimeMakesSelfTime(t *testing.T) {
	var p Pairer
	self := map[uint32]uint64{}
	p.OnCall = func(c *Call) { self[c.Func] += c.Self() }
	p.Push([]Event{
		Entry(0+100, base, 1), Entry(10+100, base-32, 2), Entry(15+100, base-64, 3), Exit(25+100, base-64, 3), Exit(40+100, base-32, 2),
		Entry(50+100, base-32, 3), Exit(60+100, base-32, 3), Exit(100+100, base, 1),
	})
	for id, want := range map[uint32]uint64{1: 60, 2: 20, 3: 20} {
		if self[id] != want {
			t.Errorf("self time of %d is %d, want %d", id, self[id], want)
		}
	}
}

// A stub's clock is read after its claim: what a signal handler calls in between comes behind the event, with earlier times.
func TestTimeDoesNotGoBack(t *testing.T) {
	var p Pairer
	got := paired(&p, []Event{
		Entry(100, base, 1), Entry(50, base-500, 2), Exit(60, base-500, 2), Exit(110, base, 1),
		Entry(120, base, 1), Exit(150, base, 1), Entry(130, base, 2), Exit(155, base, 2),
	}, 200)
	if want := []string{"2@1/0 100-100", "1@0/0 100-110", "1@0/0 120-150", "2@0/0 150-155"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCallsAcrossALossAreMarked(t *testing.T) {
	var p Pairer
	var got []string
	p.OnCall = func(c *Call) { got = append(got, fmt.Sprint(c.Func, c.Flags == AcrossLoss, c.Complete())) }
	p.Push([]Event{Entry(1, base, 1), Entry(2, base-32, 2)})
	p.Lost()
	p.Push([]Event{Exit(3, base-32, 2), Entry(4, base-32, 3), Exit(5, base-32, 3), Exit(6, base, 1)})
	if want := []string{"2 true false", "3 false true", "1 true false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHostileStreamsTakeBoundedMemory(t *testing.T) {
	var deep []Event
	for i := range uint32(5000) {
		deep = append(deep, Entry(1, -i*16, 1))
	}
	p := Pairer{MaxOpen: 1000}
	calls := len(paired(&p, deep, 9))
	if calls != 1000 || p.TooDeep != 4000 || p.Calls != 5000 {
		t.Errorf("%d calls, %d too deep of %d", calls, p.TooDeep, p.Calls)
	}
	var stacks []Event
	for i := range uint32(MaxStacks + 300) {
		stacks = append(stacks, Entry(1, i*(1<<20+4096), 1))
	}
	var q Pairer
	got := paired(&q, stacks, 9)
	implicit := 0
	for _, c := range got {
		if strings.Contains(c, "implicit") {
			implicit++
		}
	}
	if len(q.stacks[:cap(q.stacks)]) > 2*MaxStacks || len(got) != MaxStacks+300 || implicit != 300 {
		t.Errorf("%d calls, %d closed early, room for %d stacks", len(got), implicit, cap(q.stacks))
	}
}

func TestPairingFollowsAProgramExactly(t *testing.T) {
	events := newProgram(21, 100).run(50_000)
	// The oracle knows nothing of stack pointers: exits match the innermost entry.
	type span struct{ start, end uint64 }
	want := map[uint32][]span{}
	var open []Event
	for _, e := range events {
		if !e.IsExit() {
			open = append(open, e)
			continue
		}
		top := open[len(open)-1]
		open = open[:len(open)-1]
		want[top.ID()] = append(want[top.ID()], span{top.Time, e.Time})
	}
	got := map[uint32][]span{}
	p := Pairer{OnCall: func(c *Call) {
		if c.Complete() {
			got[c.Func] = append(got[c.Func], span{c.Start, c.End})
		}
	}}
	for rest := events; len(rest) > 0; rest = rest[min(len(rest), 997):] {
		p.Push(rest[:min(len(rest), 997)])
	}
	p.Finish(1 << 60)
	if p.Unmatched != 0 || len(got) != len(want) {
		t.Fatalf("%d unmatched, %d functions, want %d", p.Unmatched, len(got), len(want))
	}
	for id := range want {
		if !slices.Equal(got[id], want[id]) {
			t.Errorf("function %d: calls differ", id)
		}
	}
}

// FuzzPair checks what holds for any stream: every entry becomes a call, calls
// of a stack nest, OnEntry and OnCall agree, no instant is two calls' own, and sums taken meanwhile are those of all calls.
func FuzzPair(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, uint16(0))
	f.Add([]byte("entry and exit, entry and exit"), uint16(4))
	f.Fuzz(func(t *testing.T, raw []byte, maxOpen uint16) {
		var events []Event
		for i := 0; i+1 < len(raw); i += 2 {
			sp := uint32(raw[i]%16)*24 + uint32(raw[i]>>4)*(700<<10)
			events = append(events, Event{Time: uint64(i + 1), SP: sp, Word: uint32(raw[i+1] % 8)})
		}
		type open struct {
			id    uint32
			start uint64
		}
		stacks := map[int][]open{}
		var entered, ended, entries, self uint64
		p := Pairer{MaxOpen: int(maxOpen)}
		p.OnEntry = func(c *Call) {
			entered++
			if c.Depth != len(stacks[c.Stack]) {
				t.Fatalf("entry at depth %d of a stack %d deep", c.Depth, len(stacks[c.Stack]))
			}
			stacks[c.Stack] = append(stacks[c.Stack], open{c.Func, c.Start})
		}
		p.OnCall = func(c *Call) {
			ended++
			s := stacks[c.Stack]
			if c.Depth != len(s)-1 || s[c.Depth] != (open{c.Func, c.Start}) || c.End < c.Start || c.Self() > c.Duration() {
				t.Fatalf("call %+v ends, open are %v", c, s)
			}
			stacks[c.Stack] = s[:c.Depth]
			self += c.Self()
		}
		for _, e := range events {
			if !e.IsExit() {
				entries++
			}
		}
		p.Push(events)
		p.Finish(uint64(len(raw)))
		if entered != ended || entered+p.TooDeep != entries || p.Calls != entries {
			t.Fatalf("%d entries: %d opened, %d ended, %d too deep, %d counted", entries, entered, ended, p.TooDeep, p.Calls)
		}
		if self > uint64(len(raw)) {
			t.Fatalf("calls have %d ticks of their own in %d", self, len(raw))
		}
		wantLive(t, events, uint64(len(raw)), 2, 1+int(maxOpen), rand.New(rand.NewPCG(uint64(maxOpen), 1)))
	})
}
