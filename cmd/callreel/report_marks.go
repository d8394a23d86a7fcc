package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// SpanJSON is the spans of one name as report --json has them; the keys are promised.
type SpanJSON struct {
	Name     string            `json:"name"`
	Provider string            `json:"provider"`
	Category string            `json:"category,omitempty"` // if it isn't the provider
	Async    bool              `json:"async,omitempty"`
	Count    uint64            `json:"count"`
	Complete uint64            `json:"complete"`
	TotalNS  uint64            `json:"total_ns"`
	P50NS    viewer.Percentile `json:"p50_ns"` // null where none was complete
	P99NS    viewer.Percentile `json:"p99_ns"`
	MaxNS    uint64            `json:"max_ns"`
}

// counterJSON is a counter; the keys are promised. time_mean is the mean over time, mean that of the values told.
type counterJSON struct {
	Name     string  `json:"name"`
	Provider string  `json:"provider"`
	Category string  `json:"category,omitempty"`
	Count    uint64  `json:"count"`
	Min      float64 `json:"min"`
	Mean     float64 `json:"mean"`
	TimeMean float64 `json:"time_mean"`
	Max      float64 `json:"max"`
	Last     float64 `json:"last"`
}

// instantJSON is what was told without a length; the keys are promised.
type instantJSON struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Category string `json:"category,omitempty"`
	Count    uint64 `json:"count"`
}

// flowJSON is flows of one name; the keys are promised. The times are from leaving to arriving.
type flowJSON struct {
	Name     string            `json:"name"`
	Provider string            `json:"provider"`
	Category string            `json:"category,omitempty"`
	Out      uint64            `json:"out"`
	In       uint64            `json:"in"`
	P50NS    viewer.Percentile `json:"p50_ns"`
	P99NS    viewer.Percentile `json:"p99_ns"`
	MaxNS    uint64            `json:"max_ns"`
}

// pauseJSON is a time in which nothing was recorded because somebody had asked for that; the keys are promised.
type pauseJSON struct {
	StartNS    uint64 `json:"start_ns"`
	DurationNS uint64 `json:"duration_ns"`
	By         string `json:"by"`
	PID        int    `json:"pid,omitempty"`
}

// markReport is what a report says of markers and pauses.
type markReport struct {
	*reel.MarkSummary // nil if the reel has no markers
	pauses            []pauseJSON
	spanLimit         int // 0 for all
}

// marksOf sums up what the reel has of markers.
func marksOf(f *reel.File, limit int) markReport {
	m := markReport{spanLimit: limit}
	if len(f.Markers()) > 0 {
		m.MarkSummary = f.SummarizeMarks(reel.MarkSummaryOptions{})
	}
	clock := f.Clock()
	for _, p := range f.Pauses() {
		to := p.To
		if to == 0 {
			to = f.LastTick()
		}
		m.pauses = append(m.pauses, pauseJSON{clock.Nanoseconds(p.From - min(p.From, f.FirstTick())), clock.Nanoseconds(to - min(to, p.From)), p.By, p.Process})
	}
	return m
}

// unless is a category that isn't the provider.
func unless(category, provider string) string {
	if category == provider {
		return ""
	}
	return category
}

func spanJSON(s *reel.SpanSummary) SpanJSON {
	return SpanJSON{s.Name, s.Provider, unless(s.Category, s.Provider), s.Async, s.Count, s.Complete, s.Total, viewer.PercentileOf(s.P50, s.Complete), viewer.PercentileOf(s.P99, s.Complete), s.Max}
}

func (m *markReport) json(b *bufio.Writer) error {
	if m.MarkSummary != nil {
		for _, list := range []struct {
			key string
			n   int
			of  func(i int) any
		}{
			{"spans", len(m.Spans), func(i int) any { return spanJSON(&m.Spans[i]) }},
			{"counters", len(m.Counters), func(i int) any {
				c := &m.Counters[i]
				return counterJSON{c.Name, c.Provider, unless(c.Category, c.Provider), c.Count, c.Min, c.Mean, c.TimeMean, c.Max, c.Last}
			}},
			{"instants", len(m.Instants), func(i int) any {
				x := &m.Instants[i]
				return instantJSON{x.Name, x.Provider, unless(x.Category, x.Provider), x.Count}
			}},
			{"flows", len(m.Flows), func(i int) any {
				x := &m.Flows[i]
				return flowJSON{x.Name, x.Provider, unless(x.Category, x.Provider), x.Out, x.In, viewer.PercentileOf(x.P50, x.In), viewer.PercentileOf(x.P99, x.In), x.Max}
			}},
		} {
			b.WriteString(",\n")
			if err := jsonList(b, list.key, list.n, list.of); err != nil {
				return err
			}
		}
	}
	if len(m.pauses) == 0 {
		return nil
	}
	b.WriteString(",\n")
	return jsonList(b, "pauses", len(m.pauses), func(i int) any { return m.pauses[i] })
}

// text writes tables, each if there is anything in it.
func (m *markReport) text(b *bufio.Writer) {
	if m.MarkSummary != nil {
		m.spanTable(b)
		m.flowTable(b)
		m.counterTable(b)
		m.instantTable(b)
	}
	if len(m.pauses) > 0 {
		fmt.Fprintf(b, "\npaused %s, for %s in all\n", things(uint64(len(m.pauses)), "time"), span(pausedFor(m.pauses)))
	}
}

// pausedFor is how long processes were paused, by whomever, in ns: times of one that overlap count once. The list is in order.
func pausedFor(list []pauseJSON) (total uint64) {
	until := map[int]uint64{}
	for _, p := range list {
		from, to := max(p.StartNS, until[p.PID]), p.StartNS+p.DurationNS
		if to > from {
			total += to - from
			until[p.PID] = to
		}
	}
	return total
}

// shown is how many of n rows are written.
func (m *markReport) shown(n int) int {
	if m.spanLimit > 0 {
		return min(n, m.spanLimit)
	}
	return n
}

// rest says how many rows were left out.
func (m *markReport) rest(b *bufio.Writer, n int, what string) {
	if left := n - m.shown(n); left > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(left), "other "+what))
	}
}

// markName is a name with the provider, as far as that says anything.
func markName(provider, name string) string {
	if provider == "" || provider == "callreel" {
		return printable(name)
	}
	return printable(provider) + ":" + printable(name)
}

func percentileText(ns, of uint64) string {
	if of == 0 {
		return "-"
	}
	return span(ns)
}

// spanColumns is the row of a span, up to its name.
func spanColumns(s *reel.SpanSummary) string {
	return fmt.Sprintf("%12s %10s %10s %10s %10s  %s", count(s.Count), span(s.Total), percentileText(s.P50, s.Complete), percentileText(s.P99, s.Complete),
		percentileText(s.Max, s.Complete), markName(s.Provider, s.Name))
}

func (m *markReport) spanTable(b *bufio.Writer) {
	if len(m.Spans) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%12s %10s %10s %10s %10s  %s\n", "count", "total", "p50", "p99", "max", "span")
	for i := range m.Spans[:m.shown(len(m.Spans))] {
		s := &m.Spans[i]
		b.WriteString(spanColumns(s))
		if s.Async {
			b.WriteString("  (asynchronous)")
		}
		if n := s.Count - s.Complete; n > 0 {
			fmt.Fprintf(b, "  (%s without its beginning or end)", count(n))
		}
		b.WriteString("\n")
	}
	m.rest(b, len(m.Spans), "span")
}

func (m *markReport) flowTable(b *bufio.Writer) {
	if len(m.Flows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%12s %10s %10s %10s %10s  %s\n", "left", "arrived", "p50", "p99", "max", "flow")
	for i := range m.Flows[:m.shown(len(m.Flows))] {
		x := &m.Flows[i]
		fmt.Fprintf(b, "%12s %10s %10s %10s %10s  %s\n", count(x.Out), count(x.In), percentileText(x.P50, x.In), percentileText(x.P99, x.In), percentileText(x.Max, x.In), markName(x.Provider, x.Name))
	}
	m.rest(b, len(m.Flows), "flow")
}

func (m *markReport) counterTable(b *bufio.Writer) {
	if len(m.Counters) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%12s %10s %10s %10s %10s  %s\n", "count", "min", "mean", "max", "last", "counter")
	for i := range m.Counters[:m.shown(len(m.Counters))] {
		c := &m.Counters[i]
		fmt.Fprintf(b, "%12s %10.6g %10.6g %10.6g %10.6g  %s\n", count(c.Count), c.Min, c.Mean, c.Max, c.Last, markName(c.Provider, c.Name))
	}
	m.rest(b, len(m.Counters), "counter")
}

func (m *markReport) instantTable(b *bufio.Writer) {
	if len(m.Instants) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%12s  %s\n", "count", "instant")
	for i := range m.Instants[:m.shown(len(m.Instants))] {
		x := &m.Instants[i]
		fmt.Fprintf(b, "%12s  %s\n", count(x.Count), markName(x.Provider, x.Name))
	}
	m.rest(b, len(m.Instants), "instant")
}

// spanGroups writes the spans chosen by the values of an argument of theirs.
func (f *reportFlags) spanGroups(w io.Writer, path string, file *reel.File) error {
	wanted := newGlobs(f.spans)
	known := false
	for _, m := range file.Markers() {
		for i := range m.Arguments {
			known = known || m.Arguments[i].Name == f.by
		}
	}
	if !known {
		return usageError("callreel report: --by %s: %w: no marker of the reel has an argument of that name", f.by, reel.ErrNoArgument)
	}
	sum := file.SummarizeMarks(reel.MarkSummaryOptions{By: f.by})
	var list []reel.SpanSummary
	for _, s := range sum.Spans {
		if wanted.match(s.Name) || wanted.match(s.Provider+":"+s.Name) {
			list = append(list, s)
		}
	}
	if err := wanted.unmatched("--span"); err != nil {
		return fmt.Errorf("callreel report: %s: %w", path, err)
	}
	shown := list
	if f.limit > 0 {
		shown = list[:min(f.limit, len(list))]
	}
	b := bufio.NewWriter(w)
	if f.json {
		b.WriteString("{")
		if err := jsonList(b, "groups", len(shown), func(i int) any {
			return struct {
				Value string `json:"value"`
				SpanJSON
			}{shown[i].Value, spanJSON(&shown[i])}
		}); err != nil {
			return err
		}
		b.WriteString("}\n")
		return b.Flush()
	}
	fmt.Fprintf(b, "%12s %10s %10s %10s %10s  %s\n", "count", "total", "p50", "p99", "max", "span, "+printable(f.by))
	for i := range shown {
		s := &shown[i]
		fmt.Fprintf(b, "%s %s\n", spanColumns(s), printable(s.Value))
	}
	if n := len(list) - len(shown); n > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(n), "other value"))
	}
	return b.Flush()
}
