package main

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// budgetJSON is what recording was allowed to cost, and did; the keys are promised. Costs are shares of the program's processor time.
type budgetJSON struct {
	Wanted float64 `json:"wanted"`
	// Measured is null if nobody has measured, shares are if nobody has taken a sample.
	Measured      *float64 `json:"measured"`
	Uncertainty   *float64 `json:"uncertainty"`
	FunctionsOff  uint64   `json:"functions_off"`
	SitesRemoved  uint64   `json:"sites_removed"`
	CallsRecorded *float64 `json:"calls_recorded_share"`
	TimeRecorded  *float64 `json:"time_recorded_share"`
}

// offJSON is a time in which a function's calls were not recorded for what that costs; the keys are promised.
type offJSON struct {
	Function  string `json:"function"`
	Module    string `json:"module"`
	FromNS    uint64 `json:"from_ns"`
	ToNS      uint64 `json:"to_ns"`
	Estimated uint64 `json:"estimated,omitempty"`
}

// offReport is what a report says of functions that were off.
type offReport struct {
	file      *reel.File
	budget    reel.Budget
	budgeted  bool
	from, to  uint64 // ticks that shares are of
	functions uint64 // that were off for some time
	list      bool   // all times are wanted
	limit     int    // how many functions the text has
	match     func(name string) bool
}

// shownOff is how many functions the text of report --off has if --limit doesn't say.
const shownOff = 50

func offsOf(f *reel.File, list bool, limit int, match func(name string) bool) offReport {
	r := offReport{file: f, list: list, limit: cmp.Or(limit, shownOff), match: match}
	r.budget, r.budgeted = f.Budget()
	r.from, r.to = viewer.Recorded(f)
	r.functions = max(uint64(len(f.OffIn(r.from, r.to))), r.budget.FunctionsOff)
	return r
}

// of is for how long a function was off, nil if it wasn't.
func (r *offReport) of(id uint32) *viewer.FunctionOff {
	return viewer.OffOf(r.file, id, r.from, r.to)
}

// name is a function's name and module; ok is false if others are wanted.
func (r *offReport) name(id uint32) (name, module string, ok bool) {
	fn, _ := r.file.Function(id)
	if im, ok := r.file.Image(fn.Image); ok && im.Path != "" {
		module = path.Base(im.Path)
	}
	name = demangle.Name(fn.Name)
	return name, module, r.match == nil || r.match(name) || r.match(fn.Name)
}

func (r *offReport) json(b *bufio.Writer) error {
	if r.budgeted {
		j := budgetJSON{Wanted: r.budget.Wanted, FunctionsOff: r.functions, SitesRemoved: r.budget.SitesRemoved}
		if r.budget.HasMeasured() {
			j.Measured, j.Uncertainty = &r.budget.Measured, &r.budget.Uncertainty
		}
		if r.budget.Sampled() {
			j.CallsRecorded, j.TimeRecorded = &r.budget.CallsShare, &r.budget.TimeShare
		}
		line, err := safejson.Marshal(j)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, ",\n\"budget\":%s", line)
	}
	if r.functions > 0 {
		fmt.Fprintf(b, ",\"functions_off\":%d", r.functions)
	}
	if !r.list {
		return nil
	}
	var list []offJSON
	clock, first := r.file.Clock(), r.file.FirstTick()
	for _, o := range r.file.Offs() {
		name, module, ok := r.name(o.Function)
		if !ok {
			continue
		}
		from := max(o.From, first)
		list = append(list, offJSON{name, module, clock.Nanoseconds(from - first), clock.Nanoseconds(max(o.To, from) - first), o.Estimated})
	}
	b.WriteString(",\n")
	return jsonList(b, "off", len(list), func(i int) any { return list[i] })
}

// head writes the line on top: what recording cost, and what is missing for that.
func (r *offReport) head(b *bufio.Writer) {
	off := ""
	if r.functions > 0 {
		off = things(r.functions, "function") + " " + wasWere(r.functions) + " off for some time"
	}
	if !r.budgeted {
		if off != "" {
			whose := "their"
			if r.functions == 1 {
				whose = "its"
			}
			fmt.Fprintf(b, "%s: %s calls then are missing, and their time counts as their callers'\n\n", off, whose)
		}
		return
	}
	fmt.Fprintf(b, "budget %s", percentText(r.budget.Wanted))
	sep := ": "
	say := func(format string, args ...any) {
		fmt.Fprintf(b, sep+format, args...)
		sep = "; "
	}
	if r.budget.HasMeasured() {
		measured, unit := percentText(r.budget.Measured), ""
		if r.budget.Uncertainty > 0 {
			unit = " ± " + percentNumber(r.budget.Uncertainty)
		}
		say("measured %s%s", measured, unit)
	}
	if r.budget.Sampled() {
		say("%s of calls and %s of the time of functions are recorded", percentText(r.budget.CallsShare), percentText(r.budget.TimeShare))
	}
	if off != "" {
		say("%s", off)
	}
	b.WriteString("\n\n")
}

// table writes which functions were off the longest.
func (r *offReport) table(b *bufio.Writer) {
	if !r.list {
		return
	}
	sums := r.file.OffIn(r.from, r.to)
	names := map[uint32]string{}
	sums = slices.DeleteFunc(sums, func(s reel.OffSum) bool {
		name, module, ok := r.name(s.Function)
		if ok {
			names[s.Function] = printable(module) + "!" + printable(name)
		}
		return !ok
	})
	if len(sums) == 0 {
		b.WriteString("\nno function was off\n")
		return
	}
	slices.SortStableFunc(sums, func(a, b reel.OffSum) int { return cmp.Compare(b.Ticks, a.Ticks) })
	clock, first := r.file.Clock(), r.file.FirstTick()
	at := func(tick uint64) string { return span(clock.Nanoseconds(max(tick, first) - first)) }
	fmt.Fprintf(b, "\n%12s %7s %7s %12s %12s %14s  %s\n", "off for", "share", "times", "from", "to", "est. calls", "function")
	for _, s := range sums[:min(r.limit, len(sums))] {
		o, times := r.of(s.Function), r.file.OffsOf(s.Function)
		estimated := "-"
		if s.Estimated > 0 {
			estimated = count(s.Estimated)
		}
		fmt.Fprintf(b, "%12s %7s %7s %12s %12s %14s  %s\n", span(o.OffNS), percentText(o.OffShare), count(uint64(s.Times)), at(times[0].From), at(times[len(times)-1].To), estimated, names[s.Function])
	}
	if n := len(sums) - r.limit; n > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(n), "other function"))
	}
}

// text is what is behind a function's name.
func (r *offReport) text(id uint32) string {
	o := r.of(id)
	if o == nil {
		return ""
	}
	text := fmt.Sprintf("  (off for %s, %s", span(o.OffNS), percentText(o.OffShare))
	if o.EstimatedCalls > 0 {
		text += fmt.Sprintf("; about %s then", things(o.EstimatedCalls, "call"))
	}
	return text + ")"
}

// wasWere is the verb of so many things.
func wasWere(n uint64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// percentText writes a share with up to three digits: "2 %", "0.35 %", "89.2 %".
func percentText(share float64) string { return percentNumber(share) + " %" }

func percentNumber(share float64) string {
	if p := 100 * share; math.Abs(p) < 100 && math.Abs(p) >= 0.001 {
		return strconv.FormatFloat(p, 'g', 3, 64)
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64)
}
