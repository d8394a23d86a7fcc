package export

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/callreel/callreel/reel"
)

// seen is what a reader has seen of a reel.
type seen struct {
	calls map[string]int64    // by function
	self  map[string]float64  // nanoseconds
	edges map[[2]string]int64 // calls by caller and callee
	times bool                // self is known
	count bool                // calls are known
	open  []seenCall          // of the lane that is being added
}

type seenCall struct {
	name string
	self float64
}

func newSeen() *seen {
	return &seen{calls: map[string]int64{}, self: map[string]float64{}, edges: map[[2]string]int64{}, times: true, count: true}
}

// call adds the next call of a lane, in the order of their beginnings.
func (s *seen) call(depth int, name string, ns float64) {
	s.close(depth)
	caller := ""
	if depth > 0 {
		s.open[depth-1].self -= ns
		caller = s.open[depth-1].name
	}
	s.open = append(s.open, seenCall{name, ns})
	s.calls[name]++
	s.edges[[2]string{caller, name}]++
}

// close ends the calls of a lane from a depth on.
func (s *seen) close(depth int) {
	for len(s.open) > depth {
		c := s.open[len(s.open)-1]
		s.self[c.name] += c.self
		s.open = s.open[:len(s.open)-1]
	}
}

func seenByCatapult(trace catapultTrace) *seen {
	s := newSeen()
	for _, th := range trace.Threads {
		for _, c := range th.Slices {
			if c.category != "callreel" && c.category != "goroutine" {
				s.call(c.depth, c.name, c.duration*1000)
			}
		}
		s.close(0)
	}
	return s
}

// perfettoCalls asks for the calls: tracks, and depths without instants, which stand between them.
const perfettoCalls = `select track_id, depth, name, dur from slice where coalesce(category, '') not in ('callreel', 'goroutine') order by track_id, id`

func seenByTraceProcessor(rows [][]any) *seen {
	s := newSeen()
	track := -1.0
	for _, r := range rows {
		if at := r[0].(float64); at != track {
			s.close(0)
			track = at
		}
		s.call(int(r[1].(float64)), r[2].(string), r[3].(float64))
	}
	s.close(0)
	return s
}

func seenBySpeedscope(file speedscopeFile) *seen {
	s := newSeen()
	for _, p := range file.Profiles {
		unit := 1.0
		if p.Unit == "microseconds" {
			unit = 1000
		}
		for _, c := range p.Calls {
			if strings.Contains(p.Name, ": goroutines") {
				break // of Chrome's JSON, no calls
			}
			s.call(c.depth, c.name, c.duration*unit)
		}
		s.close(0)
	}
	return s
}

// parsePProf reads a profile as go tool pprof does.
func parsePProf(t *testing.T, file string) *profile.Profile {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func seenByPProf(t *testing.T, file string) *seen {
	t.Helper()
	s := newSeen()
	for _, sample := range parsePProf(t, file).Sample {
		name := sample.Location[0].Line[0].Function.Name
		caller := ""
		if len(sample.Location) > 1 {
			caller = sample.Location[1].Line[0].Function.Name
		}
		s.calls[name] += sample.Value[0]
		s.edges[[2]string{caller, name}] += sample.Value[0]
		s.self[name] += float64(sample.Value[1])
	}
	return s
}

// seenInFolded reads lines whose weights are times, or calls.
func seenInFolded(t *testing.T, file string, times bool) *seen {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := newSeen()
	s.times, s.count = times, !times
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		stack, number, _ := cutLast(lines.Text(), " ")
		weight, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		frames := strings.Split(stack, ";")[1:] // the process comes first
		name, caller := frames[len(frames)-1], ""
		if len(frames) > 1 {
			caller = frames[len(frames)-2]
		}
		if times {
			s.self[name] += float64(weight)
			s.calls[name] += 0
			continue
		}
		s.calls[name] += weight
		s.edges[[2]string{caller, name}] += weight
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// checkReport checks what a reader has seen against the report.
func (s *seen) checkReport(t *testing.T, reader string, sum *reel.Summary) {
	t.Helper()
	calls, self := map[string]int64{}, map[string]float64{}
	for _, f := range sum.Functions {
		calls[f.Name] += int64(f.Calls)
		self[f.Name] += float64(f.Self)
	}
	if s.count && !maps.Equal(s.calls, calls) {
		t.Errorf("%s: the calls differ from the report's in\n%s", reader, differences(s.calls, calls))
	}
	if !s.times {
		return
	}
	for name, want := range self {
		// Each begin and end is cut to a nanosecond or put some later, those of the calls that it made, too.
		if got, known := s.self[name]; !known || math.Abs(got-want) > want/1000+10*float64(calls[name])+100 {
			t.Errorf("%s: %s took itself %.0f ns, in the report %.0f", reader, name, got, want)
		}
	}
}

func differences[K comparable](got, want map[K]int64) string {
	var b strings.Builder
	n := 0
	for k := range want {
		if got[k] != want[k] && n < 10 {
			n++
			b.WriteString(strings.TrimSpace(strconv.Quote(strings.TrimSpace(toText(k)))) + ": " + strconv.FormatInt(got[k], 10) + ", want " + strconv.FormatInt(want[k], 10) + "\n")
		}
	}
	for k := range got {
		if _, known := want[k]; !known && n < 20 {
			n++
			b.WriteString(strconv.Quote(toText(k)) + " is not wanted\n")
		}
	}
	return b.String()
}
func toText(k any) string { return fmt.Sprint(k) }
