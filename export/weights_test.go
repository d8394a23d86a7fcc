package export

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/reel"
)

// selfOf are the parts of own times by function, in ticks, of all threads or of one stack of a thread.
func selfOf(f *reel.File) (all map[string]reel.StateTimes, self map[string]uint64, lanes map[string]map[string]reel.StateTimes) {
	all, self, lanes = map[string]reel.StateTimes{}, map[string]uint64{}, map[string]map[string]reel.StateTimes{}
	for _, t := range f.Threads() {
		var p reel.Pairer
		p.OnCall = func(c *reel.Call) {
			fn, _ := f.Function(c.Func)
			all[fn.Name] = all[fn.Name].Plus(c.SelfStates())
			self[fn.Name] += c.Self()
			lane := fmt.Sprintf("%s (%d)", t.Name, t.TID)
			if c.Stack > 0 {
				lane = fmt.Sprintf("%s, stack %d", lane, c.Stack+1)
			}
			if lanes[lane] == nil {
				lanes[lane] = map[string]reel.StateTimes{}
			}
			lanes[lane][fn.Name] = lanes[lane][fn.Name].Plus(c.SelfStates())
		}
		f.ReadyPairer(&p, t.Key)
		p.SetTime(f.FirstTick())
		f.PairStates(&p, t.Key)
		f.ReadThread(t.Key, func(events []reel.Event, _ bool) bool {
			p.Push(events)
			return true
		})
		p.Finish(f.EndOf(&t))
	}
	return all, self, lanes
}

// weightReel is a reel with a clock of which nanoseconds are no whole number of ticks.
func weightReel(t testing.TB) *reel.File {
	return scheduled(t, 9, 20_000, reel.Header{Clock: reel.Clock{TicksPerSecond: 2_700_000_001}})
}

func TestPartsOfStacksTimesAddUpToThoseOfFunctions(t *testing.T) {
	f := weightReel(t)
	all, self, _ := selfOf(f)
	ns := f.Clock().Nanoseconds
	want := map[string]map[string]uint64{"cpu": {}, "ready": {}, "blocked": {}, "wall": {}}
	for name, s := range all {
		want["ready"][name], want["blocked"][name] = ns(s.Ready), ns(s.Blocked)
		want["cpu"][name] = ns(self[name]) - ns(s.Ready) - ns(s.Blocked) - ns(self[name]-s.Known())
		want["wall"][name] = ns(self[name])
	}
	for name, n := range want["cpu"] {
		if n == 0 || want["ready"][name] == 0 || want["blocked"][name] == 0 {
			t.Fatalf("%s: %d ns of cpu, %d ready, %d blocked", name, n, want["ready"][name], want["blocked"][name])
		}
	}
	p := parsePProf(t, exportTo(t, f, "pb.gz", Options{}))
	got := map[string]map[string]uint64{}
	for i, kind := range p.SampleType {
		sums := map[string]uint64{}
		for _, s := range p.Sample {
			sums[s.Location[0].Line[0].Function.Name] += uint64(s.Value[i])
			if s.Value[2]+s.Value[3]+s.Value[4] > s.Value[1]+4 {
				t.Fatalf("parts of %v", s.Value)
			}
		}
		got[kind.Type+"/"+kind.Unit] = sums
	}
	if len(got) != 5 || p.DefaultSampleType != "wall" {
		t.Errorf("pprof has values %v, and shows %s first", p.SampleType, p.DefaultSampleType)
	}
	for _, what := range []string{"cpu", "ready", "blocked"} {
		if sums := got[what+"/nanoseconds"]; !maps.Equal(sums, want[what]) {
			t.Errorf("pprof, %s: %v, want %v", what, sums, want[what])
		}
	}
	for weight, what := range map[Weight]string{WeightCPU: "cpu", WeightReady: "ready", WeightBlocked: "blocked"} {
		sums := map[string]uint64{}
		for name, ns := range seenInFolded(t, exportTo(t, f, "folded", Options{Weight: weight}), true).self {
			sums[name] = uint64(ns)
		}
		if !maps.Equal(sums, want[what]) {
			t.Errorf("folded, %s: %v, want %v", what, sums, want[what])
		}
	}
	// Trees that are written before their end.
	var out bytes.Buffer
	tree := newCallTree(context.Background(), f, Options{Weight: WeightBlocked})
	tree.limit = 100
	tree.split()
	if err := tree.folded(&out); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "small.folded")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ns := range seenInFolded(t, file, true).self {
		if uint64(ns) != want["blocked"][name] {
			t.Errorf("folded, in small trees: %s was blocked for %v ns, want %d", name, ns, want["blocked"][name])
		}
	}
}

func TestSpeedscopeHasProfilesOfPartsOfTheTime(t *testing.T) {
	f := weightReel(t)
	_, _, lanes := selfOf(f)
	opts := []Options{{}, {Weight: WeightWall}, {Weight: WeightCPU}, {Weight: WeightReady}, {Weight: WeightBlocked}}
	kinds := []string{"wall time CPU time blocked time", "", "CPU time", "time ready", "time blocked"}
	var files []string
	for _, opt := range opts {
		files = append(files, exportTo(t, f, "speedscope", opt))
	}
	for i, file := range speedscopeImport(t, files...) {
		seen := map[string]int{}
		for _, p := range file.Profiles {
			lane, what, _ := strings.Cut(strings.Replace(p.Name, ", stack ", "; stack ", 1), ", ")
			lane = strings.Replace(lane, "; ", ", ", 1)
			what, _, _ = strings.Cut(what, ", ")
			var part func(reel.StateTimes) uint64
			switch what {
			case "CPU time":
				part = func(s reel.StateTimes) uint64 { return s.Running }
			case "time ready":
				part = func(s reel.StateTimes) uint64 { return s.Ready }
			case "time blocked":
				part = func(s reel.StateTimes) uint64 { return s.Blocked }
			default:
				continue
			}
			seen[what]++
			if opts[i].Weight != WeightDefault && !strings.Contains(kinds[i], what) {
				t.Errorf("weight %d: a profile %q", opts[i].Weight, p.Name)
			}
			sum := uint64(0)
			s := newSeen()
			for _, c := range p.Calls {
				s.call(c.depth, c.name, c.duration)
				if c.duration == 0 {
					t.Fatalf("%s: a call of %s without time", p.Name, c.name)
				}
			}
			s.close(0)
			for name, times := range lanes[lane] {
				sum += part(times)
				want := float64(f.Clock().Nanoseconds(part(times)))
				if got := s.self[name]; math.Abs(got-want) > 2*float64(s.calls[name])+2 {
					t.Errorf("%s: %s took %v, want %v", p.Name, name, got, want)
				}
			}
			if want := float64(f.Clock().Nanoseconds(sum)); p.Total != want || sum == 0 {
				t.Errorf("%s: %v ns in all, want %v", p.Name, p.Total, want)
			}
		}
		want := len(lanes)
		if opts[i].Weight == WeightWall {
			want = 0
		}
		for _, n := range seen {
			if n != want {
				t.Errorf("weight %d: %v profiles, of %d stacks", opts[i].Weight, seen, want)
			}
		}
		if opts[i].Weight == WeightDefault && (len(seen) != 2 || len(file.Profiles) != 3*want) {
			t.Errorf("%d profiles: %v, of %d stacks", len(file.Profiles), seen, want)
		}
	}
}
