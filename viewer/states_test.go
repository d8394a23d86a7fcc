package viewer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// stateNames are functions of reels with states.
var stateNames = []string{"main", "wait", "c", "d", "e", "f", "g", "h", "i", "j"}

// stateReel has threads whose states are known, one without, and one with coroutines.
func stateReel(t testing.TB, seed uint64) string {
	t.Helper()
	return madeReel(t, stateNames, func(w *reel.Writer) {
		rng := rand.New(rand.NewPCG(seed, 1))
		realtest.Must(t, w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true, Faults: true}))
		for i, stacks := range []int{1, 1, 12, 12} {
			events := madereel.Coroutines(rng, 4000+1000*i, stacks, 16<<10, 2000)
			tw := madereel.Thread(t, w, reel.Thread{TID: 80 + i, Process: 77, Name: "made"}, events...)
			var p reel.Pairer
			p.Push(events)
			realtest.Must(t, w.StackTops(tw.Key(), p.Tops()))
			if i == 1 {
				continue
			}
			// They begin behind the first call, and end before the last.
			end := events[len(events)-1].Time
			words := madereel.SchedWords(rng, 1<<16, 2000+end/10, 300)
			for k := range words {
				if words[k].Time > end-end/20 {
					words = words[:k]
					break
				}
			}
			realtest.Must(t, tw.Sched(words))
		}
	})
}

// Functions are split as report has it, to the nanosecond.
func TestFunctionsAreSplitByStatesAsReportDoes(t *testing.T) {
	for seed := range uint64(3) {
		path := stateReel(t, seed)
		c := serveReels(t, path)
		f, err := reel.Open(path)
		realtest.Must(t, err)
		defer f.Close()
		want := reel.Summarize(f, reel.SummaryOptions{Name: demangle.Name})
		got := ask[functionsAnswer](c, "functions")
		if len(got.Functions) != len(want.Functions) {
			t.Fatalf("%d functions, want %d", len(got.Functions), len(want.Functions))
		}
		blocked := uint64(0)
		for i := range want.Functions {
			w, g := &want.Functions[i], got.Functions[i]
			if g.Func != w.ID || g.FunctionStates == nil || *g.FunctionStates != *StatesOf(w) || g.TotalNS != w.Total || g.SelfNS != w.Self {
				t.Errorf("seed %d: %s: total %d, self %d, %+v, want %d, %d, %+v", seed, w.Name, g.TotalNS, g.SelfNS, g.FunctionStates, w.Total, w.Self, StatesOf(w))
			}
			blocked += g.SelfBlockedNS
		}
		if blocked == 0 {
			t.Error("nothing was blocked")
		}
		// The roots of the call tree have each state's time.
		for by, of := range map[string]func(s *FunctionStates) uint64{
			"cpu":     func(s *FunctionStates) uint64 { return s.SelfCPUNS },
			"ready":   func(s *FunctionStates) uint64 { return s.SelfReadyNS },
			"blocked": func(s *FunctionStates) uint64 { return s.SelfBlockedNS },
		} {
			tree := ask[struct{ Nodes []treeNodeJSON }](c, "tree?by="+by)
			sum, self := uint64(0), uint64(0)
			for _, n := range tree.Nodes {
				self += n.SelfNS
			}
			for i := range want.Functions {
				sum += of(StatesOf(&want.Functions[i]))
			}
			if self != sum {
				t.Errorf("seed %d: by %s the tree has %d ns, functions %d", seed, by, self, sum)
			}
		}
	}
}

// Parts of a recording add up to the whole, wherever it is cut.
func TestStatesOfRangesAddUp(t *testing.T) {
	path := stateReel(t, 7)
	c := serveReels(t, path)
	rng := rand.New(rand.NewPCG(7, 2))
	whole := ask[functionsAnswer](c, "functions")
	end := ask[infoAnswer](c, "info").Reels[0].DurationNS
	type key struct {
		function uint32
		state    string
	}
	sum := map[key]uint64{}
	add := func(into map[key]uint64, list []functionJSON) {
		for _, f := range list {
			into[key{f.Func, "cpu"}] += f.SelfCPUNS
			into[key{f.Func, "ready"}] += f.SelfReadyNS
			into[key{f.Func, "blocked"}] += f.SelfBlockedNS
			into[key{f.Func, "unknown"}] += f.SelfUnknownNS
			into[key{f.Func, "total cpu"}] += f.TotalCPUNS
			into[key{f.Func, "total blocked"}] += f.TotalBlockedNS
		}
	}
	for from := uint64(0); from <= end; {
		to := from + 1 + rng.Uint64N(end/6)
		if to > end {
			to = math.MaxInt64 >> 11
		}
		add(sum, ask[functionsAnswer](c, fmt.Sprintf("functions?from=%d&to=%d", from, to)).Functions)
		from = to
	}
	want := map[key]uint64{}
	add(want, whole.Functions)
	for k, v := range want {
		if sum[k] != v {
			t.Errorf("%v: parts have %d ns, the whole %d", k, sum[k], v)
		}
	}
}

// A lock's story: a worker waits in lock for what another one holds.
func lockReel(t testing.TB) string {
	t.Helper()
	return madeReel(t, []string{"handle", "lock", "evict"}, func(w *reel.Writer) {
		const ms = 1_000_000
		realtest.Must(t, w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true, Faults: true}))
		a := madereel.Thread(t, w, reel.Thread{TID: 80, Process: 77, Name: "worker"},
			reel.Entry(2*ms, 0x10000, 1), reel.Entry(4*ms, 0xff00, 2), reel.Exit(16*ms, 0xff00, 2), reel.Exit(20*ms, 0x10000, 1))
		realtest.Must(t, a.Sched([]reel.SchedEvent{
			{Time: 1 * ms, Kind: reel.SchedIn, CPU: 3}, {Time: 5 * ms, Kind: reel.SchedBlocked}, {Time: 14 * ms, Kind: reel.SchedWoken, Waker: 81},
			{Time: 15 * ms, Kind: reel.SchedIn, CPU: 2}, {Time: 17 * ms, Kind: reel.SchedUninterruptible}, {Time: 17*ms + 50_000, Kind: reel.SchedWoken, Waker: reel.WakerKernel},
			{Time: 17*ms + 60_000, Kind: reel.SchedIn, CPU: 2}, {Time: 21 * ms, Kind: reel.SchedBlocked},
		}))
		realtest.Must(t, a.Waits([]reel.Wait{{Time: 5*ms + 7, Syscall: 202, Args: [3]uint64{0x5000}, Object: ""}}))
		b := madereel.Thread(t, w, reel.Thread{TID: 81, Process: 77, Name: "other"}, reel.Entry(3*ms, 0x10000, 3), reel.Exit(15*ms, 0x10000, 3))
		realtest.Must(t, b.Sched([]reel.SchedEvent{{Time: 1 * ms, Kind: reel.SchedIn, CPU: 1}, {Time: 16 * ms, Kind: reel.SchedBlocked}}))
		w.SchedKnown(22 * ms)
		realtest.Must(t, w.ClockPair(22*ms, 22*ms))
	})
}

func TestCallSaysWhatItWaitedFor(t *testing.T) {
	c := serveReels(t, lockReel(t))
	call := ask[callJSON](c, "call?lane=0&row=0&at=3000000")
	within := func(got, want uint64) bool { return max(got, want)-min(got, want) <= 64 } // states are kept in 16 ticks
	if s := call.States; s == nil || !within(s.BlockedNS, 9_050_000) || !within(s.ReadyNS, 1_010_000) || !within(s.CPUNS, 18_000_000-10_060_000) {
		t.Errorf("states %+v", call.States)
	}
	got := ask[struct {
		Waits   []stateJSON
		Long    int
		Short   int
		ShortNS uint64 `json:"short_ns"`
		Self    *statesJSON
	}](c, "waits?lane=0&row=0&at=3000000")
	if got.Long != 1 || got.Short != 1 || !within(got.ShortNS, 50_000) || len(got.Waits) != 1 {
		t.Fatalf("%+v", got)
	}
	if s := got.Self; s == nil || !within(s.BlockedNS, 50_000) || !within(s.ReadyNS, 10_000) {
		t.Errorf("self states %+v", s)
	}
	x := got.Waits[0]
	if x.State != "blocked" || x.Waker == nil || x.Waker.TID != 81 || x.Waker.Lane == nil || *x.Waker.Lane != 1 || x.Waker.Name != "other" || !within(x.ReadyNS, 1_000_000) {
		t.Errorf("%+v, waker %+v", x, x.Waker)
	}
	if x.Wait == nil || x.Wait.Syscall != 202 || x.In == nil || x.In.Name != "lock" || x.In.Row != 1 {
		t.Errorf("wait %+v in %+v", x.Wait, x.In)
	}
	for at, want := range map[int]string{1_500_000: "cpu", 8_000_000: "blocked", 14_500_000: "ready", 15_500_000: "cpu", 21_500_000: "blocked"} {
		if got := ask[*stateJSON](c, fmt.Sprintf("state?lane=0&at=%d", at)); got == nil || got.State != want {
			t.Errorf("at %d: %+v, want %s", at, got, want)
		}
	}
	if x := ask[*stateJSON](c, "state?lane=0&at=1000000"); x == nil || x.CPU == nil || *x.CPU != 3 {
		t.Errorf("%+v", x)
	}
}

// Goroutines go from thread to thread: over the whole recording their functions are split as report has it, in a range nothing is said.
func TestFunctionsOfGoroutinesAreSplitAsReportDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.reel")
	h := reel.Header{PID: 77, Goroutines: true, Clock: madereel.Nanoseconds(1000)}
	w := madereel.Create(t, path, h, reel.Image{Path: "/bin/prog"}, "main.work", "main.leaf", "runtime.park_m", "runtime.goschedImpl", "runtime.schedule")
	tw := madereel.Thread(t, w, reel.Thread{TID: 80, Process: 77, Name: "prog"},
		reel.Switch(2000, 7), reel.Entry(2100, 0x10000, 1), reel.Entry(2200, 0xff00, 2), reel.Exit(6200, 0xff00, 2),
		reel.Switch(6300, 0), reel.Entry(6400, 0x90000, 3), reel.Exit(6500, 0x90000, 3),
		reel.Switch(9000, 7), reel.Exit(9100, 0x10000, 1))
	realtest.Must(t, tw.Sched([]reel.SchedEvent{{Time: 1500, Kind: reel.SchedIn}, {Time: 3000, Kind: reel.SchedBlocked}, {Time: 4000, Kind: reel.SchedWoken}, {Time: 5000, Kind: reel.SchedIn}, {Time: 9500, Kind: reel.SchedBlocked}}))
	realtest.Must(t, w.Close())
	c := serveReels(t, path)
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	want := reel.Summarize(f, reel.SummaryOptions{}).Functions
	got := ask[functionsAnswer](c, "functions").Functions
	known := uint64(0)
	for i := range want {
		if got[i].Func != want[i].ID || *got[i].FunctionStates != *StatesOf(&want[i]) {
			t.Errorf("%s: %+v, want %+v", want[i].Name, got[i].FunctionStates, StatesOf(&want[i]))
		}
		known += got[i].SelfBlockedNS
	}
	if known == 0 {
		t.Error("nothing is known of goroutines")
	}
	for _, fn := range ask[functionsAnswer](c, "functions?from=0&to=5000").Functions {
		if fn.SelfUnknownNS != fn.SelfNS {
			t.Errorf("in a range: %+v of %d", fn.FunctionStates, fn.SelfNS)
		}
	}
}
