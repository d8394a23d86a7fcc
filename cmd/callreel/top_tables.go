package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/live"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/viewer"
)

// topOrders are what functions are sorted by, most first.
var topOrders = map[string]func(a, b *live.Function) int{
	"calls": func(a, b *live.Function) int { return cmp.Compare(b.Calls, a.Calls) },
	"self":  func(a, b *live.Function) int { return cmp.Compare(b.Self, a.Self) },
	"p99":   func(a, b *live.Function) int { return cmp.Compare(b.P99, a.P99) },
	"max":   func(a, b *live.Function) int { return cmp.Compare(b.Max, a.Max) },
}

// sortTop sorts functions. Those that are equal by the key stay where they are from one time to the next.
func sortTop(list []live.Function, key string) {
	order := topOrders[key]
	slices.SortFunc(list, func(a, b live.Function) int {
		return cmp.Or(order(&a, &b), cmp.Compare(b.Self, a.Self), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.ID, b.ID))
	})
}

// repeatedLimit is how many functions tables have by default that follow one another.
const repeatedLimit = 20

// tables writes what each interval came to, as it ends.
func (f *topFlags) tables(ctx context.Context, choice recorder.Choice, c *cobra.Command, status *status) error {
	status.show("reading the files of process %d", f.pid)
	t := f.start(ctx, choice, f.interval, status.notice, func() {})
	recent, written := live.NewRecent(t.meter, 1), 0
	write := func(all bool) error {
		written++
		return f.write(c.OutOrStdout(), recent.Snapshot(all), t.meter.Markers())
	}
	var werr error
	for begun, done := t.started, false; !done && werr == nil; {
		select {
		case <-begun:
			begun = nil
			status.clear()
		case s := <-t.meter.Stretches():
			recent.Add(s)
			if done = f.once; !done {
				werr = write(false)
			}
		case <-t.ended:
			done = true
		}
	}
	early := recent.Empty()
	err := t.end(ctx)
	status.clear()
	if t.result == nil {
		return err
	}
	if early || !f.once {
		for _, s := range t.meter.Rest() {
			recent.Add(s)
			if f.json && !f.once && werr == nil {
				werr = write(false)
			}
		}
	}
	if werr == nil && written == 0 {
		werr = write(early)
	}
	if errors.Is(werr, syscall.EPIPE) { // the reader has enough
		werr = nil
	}
	return errors.Join(err, werr)
}

// The objects of top --json; the keys are promised.
type (
	topFunctionJSON struct {
		Name   string            `json:"name"`
		Module string            `json:"module"`
		PerSec float64           `json:"calls_per_s"`
		Calls  uint64            `json:"calls"`
		Open   uint64            `json:"open"`
		SelfNS uint64            `json:"self_ns"`
		P99NS  viewer.Percentile `json:"p99_ns"` // null where no call was complete
		MaxNS  uint64            `json:"max_ns"`
		Off    bool              `json:"off,omitempty"` // it is off now, for what its calls cost
	}
	topThreadJSON struct {
		TID     int     `json:"tid"`
		Name    string  `json:"name"`
		PerSec  float64 `json:"calls_per_s"`
		Calls   uint64  `json:"calls"`
		Dropped uint64  `json:"dropped"`
		Depth   int     `json:"depth"`
		In      string  `json:"in,omitempty"`
		ForNS   uint64  `json:"for_ns,omitempty"`
	}
)

// topMarkerJSON is how often a marker was passed since the beginning.
type topMarkerJSON struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Count    uint64 `json:"count"`
}

// rate rounds to what is worth telling.
func rate(perSecond float64) float64 { return math.Round(perSecond*1000) / 1000 }

func (f *topFlags) write(w io.Writer, s *live.Snapshot, markers []live.Marker) error {
	sortTop(s.Functions, f.sort)
	shown := s.Functions
	limit := f.limit
	if limit == 0 && !f.json && !f.once {
		limit = repeatedLimit
	}
	if limit > 0 {
		shown = shown[:min(limit, len(shown))]
	}
	b := bufio.NewWriter(w)
	if f.json {
		if err := f.writeJSON(b, s, shown, markers); err != nil {
			return err
		}
	} else {
		writeTopTable(b, s, shown, markers)
		if f.off {
			writeOffTable(b, s, limit)
		}
		writeTotals(b, s)
	}
	return b.Flush()
}

func (f *topFlags) writeJSON(b *bufio.Writer, s *live.Snapshot, shown []live.Function, markers []live.Marker) error {
	b.WriteString("{")
	if err := jsonList(b, "functions", len(shown), func(i int) any {
		n := &shown[i]
		return topFunctionJSON{n.Name, n.Module, rate(n.PerSecond), n.Calls, n.Open, n.Self, viewer.Percentile{NS: n.P99, Known: n.Whole}, n.Max, n.Off}
	}); err != nil {
		return err
	}
	b.WriteString(",\n")
	if err := jsonList(b, "threads", len(s.Threads), func(i int) any {
		t := &s.Threads[i]
		return topThreadJSON{t.TID, t.Name, rate(t.PerSecond), t.Calls, t.Dropped, t.Depth, t.In, t.For}
	}); err != nil {
		return err
	}
	if len(f.markers.markers) > 0 {
		b.WriteString(",\n")
		if err := jsonList(b, "markers", len(markers), func(i int) any {
			return topMarkerJSON(markers[i])
		}); err != nil {
			return err
		}
	}
	if err := f.writeOffJSON(b, s); err != nil {
		return err
	}
	fmt.Fprintf(b, ",\n\"pid\":%d,\"elapsed_ms\":%v,\"calls\":%d,\"dropped\":%d,\"lost_exits\":%d,\"ignored\":%d}\n",
		int(f.pid), milliseconds(s.Elapsed), s.Calls, s.Dropped, s.LostExits, s.Ignored)
	return nil
}

func writeTopTable(b *bufio.Writer, s *live.Snapshot, shown []live.Function, markers []live.Marker) {
	fmt.Fprintf(b, "%s\n", topHead)
	for i := range shown {
		fmt.Fprintf(b, "%s\n", topRow(&shown[i], functionName(&shown[i], math.MaxInt)))
	}
	if n := len(s.Functions) - len(shown); n > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(n), "other function"))
	}
	for i := range markers {
		m := &markers[i]
		if i == 0 {
			fmt.Fprintf(b, "%12s  %s\n", "passed", "marker")
		}
		fmt.Fprintf(b, "%12s  %s:%s\n", count(m.Count), printable(cut(m.Provider)), printable(cut(m.Name)))
	}
}

func writeTotals(b *bufio.Writer, s *live.Snapshot) {
	fmt.Fprintf(b, "%s\n", topTotals(s))
	if text := topBudget(s, false); text != "" {
		fmt.Fprintf(b, "%s\n", text)
	}
	b.WriteString("\n")
}

// topHead heads the columns of topRow.
var topHead = fmt.Sprintf("%12s %10s %10s %10s %7s  %s", "calls/s", "self", "p99", "max", "open", "function")

// topRow is a function's line, with that name for it.
func topRow(f *live.Function, name string) string {
	p99, open := "-", ""
	if f.Whole {
		p99 = span(f.P99)
	}
	if f.Open > 0 {
		open = count(f.Open)
	}
	off := ""
	if f.Off {
		off = offSuffix
	}
	return fmt.Sprintf("%12s %10s %10s %10s %7s  %s%s", callRate(f.PerSecond), span(f.Self), p99, span(f.Max), open, name, off)
}

// offSuffix marks functions that are off.
const offSuffix = "  (off)"

// topNameAt is where names begin in topRow.
var topNameAt = len(topHead) - len("function")

// functionName is a function's name as a terminal may show it. Where that is longer than so many characters, it goes without parameters
// and the like, and the module is cut.
func functionName(f *live.Function, most int) string {
	if f.Off {
		most = max(most-len(offSuffix), 0)
	}
	return nameWithin(f.Name, f.Short, f.Module, most)
}

func nameWithin(whole, brief, from string, most int) string {
	const fewest = 4 // characters of a module
	module, name := printable(cut(from)), printable(cut(whole))
	if utf8.RuneCountInString(name)+len("!")+fewest > most {
		name = printable(cut(brief))
	}
	if module == "" {
		return name
	}
	if short := max(most-len("!")-utf8.RuneCountInString(name), fewest); utf8.RuneCountInString(module) > short {
		module = clip(module, short-1) + "…"
	}
	return module + "!" + name
}

// cut cuts a name that no terminal shows whole.
func cut(name string) string {
	const most = 1000
	if len(name) <= most {
		return name
	}
	return name[:most]
}

// callRate writes calls a second; what is called seldom has a digit behind the point.
func callRate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return count(uint64(math.Round(perSecond)))
}

// topTotals says what all functions came to, and what is missing.
func topTotals(s *live.Snapshot) string {
	text := fmt.Sprintf("%s in %s; %s dropped", things(s.Calls, "call"), span(uint64(max(s.Elapsed, 0)/time.Microsecond*time.Microsecond)), count(s.Dropped))
	if s.Dropped > 0 {
		text += fmt.Sprintf(" (%.1f %%)", 100*float64(s.Dropped)/float64(s.Dropped+s.Calls))
	}
	if s.LostExits > 0 {
		text += "; " + things(s.LostExits, "return") + " lost"
	}
	if s.Ignored > 0 {
		text += "; " + things(s.Ignored, "call") + " not counted, since too many are open"
	}
	return text
}
