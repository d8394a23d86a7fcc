package viewer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// recordCommand records a command and returns the reel.
func recordCommand(t *testing.T, args ...string) string {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace)
	path := filepath.Join(t.TempDir(), "real.reel")
	realtest.MustCallreel(t, slices.Concat([]string{"record", "--ring", "256M", "-o", path}, args)...)
	return path
}

// reported is what callreel report says.
func reported(t *testing.T, path string) (functions []functionJSON) {
	t.Helper()
	var r struct {
		Functions []functionJSON `json:"functions"`
	}
	realtest.Must(t, json.Unmarshal([]byte(realtest.MustCallreel(t, "report", path, "--json").Stdout), &r))
	return r.Functions
}

func TestThreadsOfARealProgramAreAnsweredAsReported(t *testing.T) {
	realtest.Need(t, realtest.Python3)
	python, err := realtest.Python3.Find()
	realtest.Must(t, err)
	path := recordCommand(t, "-m", "python3*", "--", python, "-c", realtest.PythonDepths)
	checkAgainstReport(t, path)
}

func TestGoroutinesOfARealProgramAreAnsweredAsReported(t *testing.T) {
	realtest.Need(t, realtest.GoTool, realtest.LivePtrace)
	tool, err := realtest.GoTool.Find()
	realtest.Must(t, err)
	path := recordCommand(t, "-f", "main.*", "-f", "runtime.g*", "-f", "runtime.m*", "--", buildGo(t, tool), "rounds", "2")
	checkAgainstReport(t, path)
}

func buildGo(t *testing.T, tool string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "goroutines")
	cmd := exec.Command(tool, "build", "-o", out, "./testdata/targets/goroutines")
	cmd.Dir = realtest.Root()
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// checkAgainstReport checks what the API says of a reel against callreel report, and its answers against each other.
func checkAgainstReport(t *testing.T, path string) {
	want := reported(t, path)
	c := serveReels(t, path)
	got := ask[functionsAnswer](c, "functions")
	if len(want) == 0 || got.Total != len(want) {
		t.Fatalf("%d functions, the report has %d", got.Total, len(want))
	}
	ids := make([]uint32, len(want))
	for i := range want {
		f := got.Functions[i]
		ids[i], f.Func = f.Func, 0
		want[i].File, want[i].Line = "", 0  // the report has asked for symbols, this server hasn't
		if !reflect.DeepEqual(f, want[i]) { // parts by state, where they are known, are behind a pointer
			t.Errorf("function %d: %+v, the report has %+v", i, f, want[i])
		}
	}
	most := slices.MaxFunc(got.Functions, func(a, b functionJSON) int { return int(a.Calls) - int(b.Calls) })
	info := ask[infoAnswer](c, "info").Reels[0]
	lanes := ask[[]laneJSON](c, "lanes")
	t.Run("all calls are on some lane", func(t *testing.T) {
		c := c.with(t)
		calls, all := uint64(0), uint64(0)
		for _, l := range lanes {
			calls += l.Calls
		}
		for _, f := range want {
			all += f.Calls
		}
		if calls != all || info.Calls != all {
			t.Errorf("lanes have %d calls, info %d, the report %d", calls, info.Calls, all)
		}
		seen := uint64(0)
		for _, l := range lanes {
			v := decodeView(t, c.bytes(fmt.Sprintf("view?from=0&to=%d&width=500&lanes=%d:0:%d", info.DurationNS, l.ID, l.Rows)))
			for _, b := range v {
				for i := range b.calls {
					seen += uint64(b.calls[i])
				}
			}
		}
		if seen != all {
			t.Errorf("the bars of the whole recording stand for %d calls of %d", seen, all)
		}
	})
	t.Run("parts of the time add up", func(t *testing.T) {
		c := c.with(t)
		type sums struct{ total, self uint64 }
		parts := map[uint32]sums{}
		const n = 7
		for i := range uint64(n) {
			from, to := info.DurationNS*i/n, info.DurationNS*(i+1)/n
			for _, f := range ask[functionsAnswer](c, fmt.Sprintf("functions?from=%d&to=%d", from, to)).Functions {
				s := parts[f.Func]
				parts[f.Func] = sums{s.total + f.TotalNS, s.self + f.SelfNS}
			}
		}
		for i, f := range want {
			s := parts[ids[i]]
			// Each part rounds down.
			if d := int64(f.TotalNS) - int64(s.total); d < -n || d > n {
				t.Errorf("%s: total %d, of the parts %d", f.Name, f.TotalNS, s.total)
			}
			if d := int64(f.SelfNS) - int64(s.self); d < -n || d > n {
				t.Errorf("%s: self %d, of the parts %d", f.Name, f.SelfNS, s.self)
			}
		}
	})
	t.Run("lanes add up", func(t *testing.T) {
		c := c.with(t)
		calls := uint64(0)
		for _, l := range lanes {
			for _, f := range ask[functionsAnswer](c, fmt.Sprintf("functions?lanes=%d", l.ID)).Functions {
				if f.Func == most.Func {
					calls += f.Calls
				}
			}
		}
		if calls != most.Calls {
			t.Errorf("%s has %d calls, over all lanes %d", most.Name, most.Calls, calls)
		}
	})
	t.Run("tree", func(t *testing.T) {
		c := c.with(t)
		checkTree(t, ask[treeAnswer](c, "tree?limit=50000&depth=100000").Nodes, want)
	})
	t.Run("durations", func(t *testing.T) {
		c := c.with(t)
		checkDurations(t, c, most)
	})
	t.Run("calls are found where they are listed", func(t *testing.T) {
		c := c.with(t)
		for _, listed := range ask[callsAnswer](c, fmt.Sprintf("calls?f=%d&limit=5", most.Func)).Calls {
			found := ask[callJSON](c, fmt.Sprintf("call?lane=%d&row=%d&at=%d", listed.Lane, listed.Row, listed.StartNS))
			if found.Func != listed.Func || found.StartNS != listed.StartNS || found.Depth != listed.Depth || len(found.Callers) != listed.Depth {
				t.Errorf("listed %+v, found %+v", listed, found)
			}
		}
	})
	t.Run("next goes through all calls", func(t *testing.T) {
		c := c.with(t)
		rare := slices.MinFunc(got.Functions, func(a, b functionJSON) int { return int(a.Calls) - int(b.Calls) })
		n := uint64(0)
		for at := ask[*callJSON](c, fmt.Sprintf("first?f=%d", rare.Func)); at != nil && n <= rare.Calls; n++ {
			at = ask[*callJSON](c, fmt.Sprintf("next?f=%d&lane=%d&row=%d&at=%d", rare.Func, at.Lane, at.Row, at.StartNS))
		}
		if n != rare.Calls {
			t.Errorf("%s has %d calls, found %d", rare.Name, rare.Calls, n)
		}
	})
	t.Run("speedscope", func(t *testing.T) {
		checkSpeedscope(t, c.with(t), "speedscope", most)
	})
}

// with is the client in a subtest.
func (c *client) with(t testing.TB) *client { return &client{t, c.Server} }

type treeAnswer struct {
	Nodes []treeNodeJSON `json:"nodes"`
	Whole int            `json:"whole"`
}

// checkTree looks for what any call tree of these functions must have.
func checkTree(t *testing.T, nodes []treeNodeJSON, functions []functionJSON) {
	t.Helper()
	roots, self, last := uint64(0), uint64(0), map[int]uint64{}
	inside := make([]uint64, len(nodes))
	for i, n := range nodes {
		if n.Parent >= i || n.Parent < -1 {
			t.Fatalf("node %d comes before its caller %d", i, n.Parent)
		}
		if before, ok := last[n.Parent]; ok && n.TotalNS > before {
			t.Errorf("node %d is longer than the one before of the same caller", i)
		}
		last[n.Parent] = n.TotalNS
		self += n.SelfNS
		if n.Parent >= 0 {
			inside[n.Parent] += n.TotalNS
		} else {
			roots += n.TotalNS
		}
	}
	all := uint64(0)
	for _, f := range functions {
		all += f.SelfNS
	}
	slack := uint64(len(nodes) + len(functions)) // each rounds down
	if self+slack < roots || self > roots+slack || all+slack < roots || all > roots+slack {
		t.Errorf("the outermost calls took %d ns, the nodes' own times are %d, the functions' %d", roots, self, all)
	}
	for i, n := range nodes {
		if inside[i] > n.TotalNS+slack {
			t.Errorf("node %d took %d ns, what it calls %d", i, n.TotalNS, inside[i])
		}
	}
}

// checkDurations checks the buckets against the lists of their calls.
func checkDurations(t *testing.T, c *client, f functionJSON) {
	t.Helper()
	type answer struct {
		Buckets []bucketJSON `json:"buckets"`
	}
	sum := uint64(0)
	buckets := ask[answer](c, fmt.Sprintf("distribution?f=%d", f.Func)).Buckets
	for _, b := range buckets {
		sum += b.Calls
	}
	largest := slices.MaxFunc(buckets, func(a, b bucketJSON) int { return int(a.Calls) - int(b.Calls) })
	for _, b := range []bucketJSON{buckets[0], largest, buckets[len(buckets)-1]} {
		listed := ask[callsAnswer](c, fmt.Sprintf("calls?f=%d&min=%d&max=%d&limit=1", f.Func, b.FromNS, b.ToNS))
		if listed.Total != b.Calls || listed.Calls[0].DurationNS < b.FromNS || listed.Calls[0].DurationNS >= b.ToNS {
			t.Errorf("%+v: %d calls are listed, the longest %+v", b, listed.Total, listed.Calls[0])
		}
	}
	if sum != f.Calls {
		t.Errorf("%s has %d calls, its buckets %d", f.Name, f.Calls, sum)
	}
	longest := ask[callsAnswer](c, fmt.Sprintf("calls?f=%d&limit=1", f.Func))
	if longest.Total != f.Calls || longest.Calls[0].DurationNS != f.MaxNS {
		t.Errorf("%s: %d calls up to %d ns, listed %d: %+v", f.Name, f.Calls, f.MaxNS, longest.Total, longest.Calls[0])
	}
}

// checkSpeedscope reads a speedscope file as its viewer does: events in order, ends matching beginnings.
func checkSpeedscope(t *testing.T, c *client, request string, f functionJSON) {
	t.Helper()
	type file struct {
		Profiles []struct {
			Type       string
			StartValue uint64
			EndValue   uint64
			Events     []struct {
				Type  string
				Frame int
				At    uint64
			}
		}
		Shared struct{ Frames []struct{ Name, File string } }
	}
	s := ask[file](c, request)
	calls, all := uint64(0), uint64(0)
	for _, p := range s.Profiles {
		at, open := p.StartValue, []int{}
		for _, e := range p.Events {
			if e.At < at || e.At > p.EndValue || e.Frame >= len(s.Shared.Frames) {
				t.Fatalf("%+v after %d", e, at)
			}
			at = e.At
			if e.Type == "O" {
				all++
				open = append(open, e.Frame)
				if s.Shared.Frames[e.Frame].Name == f.Name {
					calls++
				}
				continue
			}
			if n := len(open); n == 0 || open[n-1] != e.Frame {
				t.Fatalf("%+v ends what is not open: %v", e, open)
			}
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			t.Errorf("%d calls are left open", len(open))
		}
	}
	if all != maxSpeedscope && calls != f.Calls || calls > f.Calls { // a file of so many is cut, and says so
		t.Errorf("%s has %d calls, the file %d", f.Name, f.Calls, calls)
	}
}

// shownBlock is a block of api/view as the page reads it.
type shownBlock struct {
	lane, row             uint32
	start, duration, busy []float64
	function, calls, flag []uint32
	gaps                  [][3]float64
	columns               int // of a counter
	states                int // stretches of them
}

// decodeView reads an answer of api/view by what its comment says.
func decodeView(t *testing.T, b []byte) []shownBlock {
	t.Helper()
	at := 0
	u32 := func() uint32 { at += 4; return binary.LittleEndian.Uint32(b[at-4:]) }
	f64 := func() float64 { at += 8; return math.Float64frombits(binary.LittleEndian.Uint64(b[at-8:])) }
	if u32() != 0x57564c43 {
		t.Fatalf("the answer begins with % x", b[:min(8, len(b))])
	}
	blocks := make([]shownBlock, u32())
	for i := range blocks {
		k := &blocks[i]
		k.lane, k.row = u32(), u32()
		bars, gaps := int(u32()), int(u32())
		if k.row == counterRow {
			k.columns = bars
			at += 4*8*bars + (4*bars+7)&^7
			continue
		}
		if k.row == stateRow {
			k.states = bars
			at += 2*8*bars + 2*((4*bars+7)&^7)
			continue
		}
		for _, list := range []*[]float64{&k.start, &k.duration, &k.busy} {
			for range bars {
				*list = append(*list, f64())
			}
		}
		for _, list := range []*[]uint32{&k.function, &k.calls, &k.flag} {
			for range bars {
				*list = append(*list, u32())
			}
			at = (at + 7) &^ 7
		}
		k.gaps = make([][3]float64, gaps)
		for j := range 3 {
			for g := range gaps {
				k.gaps[g][j] = f64()
			}
		}
	}
	if at != len(b) {
		t.Fatalf("%d bytes were read of %d", at, len(b))
	}
	return blocks
}
