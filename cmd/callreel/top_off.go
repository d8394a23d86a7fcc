package main

import (
	"bufio"
	"fmt"
	"math"

	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/live"
)

// The objects of top --json with --budget; the keys are promised.
type (
	topBudgetJSON struct {
		Wanted float64 `json:"wanted"`
		// Measured and Uncertainty are null until it has been measured, the shares until there was a sample.
		Measured      *float64 `json:"measured"`
		Uncertainty   *float64 `json:"uncertainty"`
		CallsRecorded *float64 `json:"calls_recorded_share"`
		TimeRecorded  *float64 `json:"time_recorded_share"`
		FunctionsOff  int      `json:"functions_off"`
	}
	topOffJSON struct {
		Name   string  `json:"name"`
		Module string  `json:"module"`
		PerSec float64 `json:"calls_per_s"` // when it was last on
		ForNS  uint64  `json:"off_ns"`      // for how long it has been off
	}
)

// topBudget says how a budget is kept and how many functions are off, in a line; empty if there is none.
func topBudget(s *live.Snapshot, brief bool) string {
	b := s.Budget
	if b == nil {
		return ""
	}
	cost := "not measured yet"
	if b.HasMeasured() {
		cost = percentText(math.Max(b.Measured, 0))
	}
	of := " of the processor time, of " + percentText(b.Wanted) + " wanted; "
	switch {
	case brief:
		of = " of " + percentText(b.Wanted) + "; "
	case !b.HasMeasured():
		of = ", " + percentText(b.Wanted) + " wanted; "
	}
	return "budget: " + cost + of + things(uint64(len(s.Off)), "function") + " off"
}

// writeOffJSON writes the budget, and with --off what is off.
func (f *topFlags) writeOffJSON(b *bufio.Writer, s *live.Snapshot) error {
	if s.Budget != nil {
		j := topBudgetJSON{Wanted: s.Budget.Wanted, FunctionsOff: len(s.Off)}
		if s.Budget.HasMeasured() {
			j.Measured, j.Uncertainty = &s.Budget.Measured, &s.Budget.Uncertainty
		}
		if s.Budget.Sampled() {
			j.CallsRecorded, j.TimeRecorded = &s.Budget.CallsShare, &s.Budget.TimeShare
		}
		line, err := safejson.Marshal(j)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, ",\n\"budget\":%s", line)
	}
	if !f.off {
		return nil
	}
	b.WriteString(",\n")
	return jsonList(b, "off", len(s.Off), func(i int) any {
		o := &s.Off[i]
		return topOffJSON{o.Name, o.Module, rate(o.PerSecond), uint64(max(o.For, 0))}
	})
}

// topOffHead heads the columns of topOffRow.
var topOffHead = fmt.Sprintf("%12s %10s  %s", "calls/s then", "off for", "function that is off")

func topOffRow(o *live.OffFunction, most int) string {
	return fmt.Sprintf("%12s %10s  %s", callRate(o.PerSecond), span(uint64(max(o.For, 0))), nameWithin(o.Name, o.Short, o.Module, most))
}

// writeOffTable lists what is off, at most so many if that isn't 0.
func writeOffTable(b *bufio.Writer, s *live.Snapshot, limit int) {
	if len(s.Off) == 0 {
		return
	}
	shown := s.Off
	if limit > 0 {
		shown = shown[:min(limit, len(shown))]
	}
	fmt.Fprintf(b, "%s\n", topOffHead)
	for i := range shown {
		fmt.Fprintf(b, "%s\n", topOffRow(&shown[i], math.MaxInt))
	}
	if n := len(s.Off) - len(shown); n > 0 {
		fmt.Fprintf(b, "and %s that %s off\n", things(uint64(n), "other function"), isAre(uint64(n)))
	}
}

func isAre(n uint64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// offTable lists what is off on the page.
func (p *topPage) offTable(width int) (head string, rows []func() string) {
	if p.snap == nil {
		return topOffHead, nil
	}
	most := width - (len(topOffHead) - len("function that is off"))
	for i := range p.snap.Off {
		o := &p.snap.Off[i]
		if p.matches(o.Module + "!" + o.Name) {
			rows = append(rows, func() string { return topOffRow(o, most) })
		}
	}
	return topOffHead, rows
}
