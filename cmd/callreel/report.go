package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
)

func newReport() *cobra.Command {
	var sortBy string
	var limit int
	var functions []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Sum up a reel: calls and times of each function, threads, drops",
		Args:  exactFile("report"),
		RunE: func(c *cobra.Command, args []string) error {
			key, ok := sortKeys[sortBy]
			if !ok {
				return usageError("callreel report: --sort %s: use calls, total, self or max", sortBy)
			}
			f, err := reel.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			sum := reel.Summarize(f, reel.SummaryOptions{Match: matchAny(functions), Name: demangle.Name})
			slices.SortStableFunc(sum.Functions, func(a, b reel.FunctionSummary) int { return cmp.Compare(key(&b), key(&a)) })
			if len(functions) > 0 && len(sum.Functions) == 0 {
				return usageError("callreel report: -f %s matches no function of %s", strings.Join(functions, ", "), args[0])
			}
			if limit > 0 && len(sum.Functions) > limit {
				sum.Functions = sum.Functions[:limit]
			}
			if asJSON {
				return reportJSON(c.OutOrStdout(), sum)
			}
			return reportText(c.OutOrStdout(), sum)
		},
	}
	fl := c.Flags()
	fl.StringVar(&sortBy, "sort", "total", "order: calls, total, self or max")
	fl.IntVar(&limit, "limit", 0, "only so many functions (default all)")
	fl.StringArrayVarP(&functions, "function", "f", nil, "only functions of this name, a glob (repeatable)")
	fl.BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// exactFile asks for one argument, in words.
func exactFile(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError("callreel %s: give one FILE", verb)
		}
		return nil
	}
}

var sortKeys = map[string]func(*reel.FunctionSummary) uint64{
	"calls": func(f *reel.FunctionSummary) uint64 { return f.Calls },
	"total": func(f *reel.FunctionSummary) uint64 { return f.Total },
	"self":  func(f *reel.FunctionSummary) uint64 { return f.Self },
	"max":   func(f *reel.FunctionSummary) uint64 { return f.Max },
}

// matchAny makes a filter of globs; nil without any.
func matchAny(globs []string) func(string) bool {
	if len(globs) == 0 {
		return nil
	}
	clean := func(s string) string { return strings.ReplaceAll(s, "/", "\x01") } // path.Match stops * at slashes
	return func(name string) bool {
		for _, g := range globs {
			if g == name {
				return true
			}
			if ok, err := path.Match(clean(g), clean(name)); err == nil && ok {
				return true
			}
		}
		return false
	}
}

type functionJSON struct {
	Name       string `json:"name"`
	Module     string `json:"module"`
	Calls      uint64 `json:"calls"`
	TotalNS    uint64 `json:"total_ns"`
	SelfNS     uint64 `json:"self_ns"`
	P50NS      uint64 `json:"p50_ns"`
	P99NS      uint64 `json:"p99_ns"`
	MaxNS      uint64 `json:"max_ns"`
	Unfinished uint64 `json:"unfinished,omitempty"`
	Implicit   uint64 `json:"implicit,omitempty"`
}

type threadJSON struct {
	TID   int    `json:"tid"`
	Name  string `json:"name"`
	Calls uint64 `json:"calls"`
}

// reportJSON streams the report; `damaged` is there only for a damaged reel.
func reportJSON(w io.Writer, s *reel.Summary) error {
	b := bufio.NewWriter(w)
	list := func(key string, n int, item func(i int) any) error {
		fmt.Fprintf(b, "%q:[", key)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			line, err := json.Marshal(item(i))
			if err != nil {
				return err
			}
			b.WriteByte('\n')
			b.Write(line)
		}
		b.WriteString("]")
		return nil
	}
	b.WriteString("{")
	err := list("functions", len(s.Functions), func(i int) any {
		f := &s.Functions[i]
		return functionJSON{f.Name, f.Module, f.Calls, f.Total, f.Self, f.P50, f.P99, f.Max, f.Unfinished, f.Implicit}
	})
	if err != nil {
		return err
	}
	b.WriteString(",\n")
	if err := list("threads", len(s.Threads), func(i int) any {
		t := &s.Threads[i]
		return threadJSON{t.TID, t.Name, t.Calls}
	}); err != nil {
		return err
	}
	fmt.Fprintf(b, ",\n\"calls\":%d,\"events\":%d,\"dropped\":%d,\"lost_exits\":%d,\"unmatched_exits\":%d,\"duration_ns\":%d",
		s.Calls, s.Events, s.DroppedEntries, s.DroppedExits, s.UnmatchedExits, s.Duration)
	if len(s.Damage) > 0 {
		b.WriteString(",\n")
		if err := list("damaged", len(s.Damage), func(i int) any { return s.Damage[i].String() }); err != nil {
			return err
		}
	}
	b.WriteString("}\n")
	return b.Flush()
}

func reportText(w io.Writer, s *reel.Summary) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%12s %10s %10s %10s %10s %10s  %s\n", "calls", "total", "self", "p50", "p99", "max", "function")
	for i := range s.Functions {
		f := &s.Functions[i]
		fmt.Fprintf(b, "%12s %10s %10s %10s %10s %10s  %s!%s", count(f.Calls), span(f.Total), span(f.Self), span(f.P50), span(f.P99), span(f.Max), printable(f.Module), printable(f.Name))
		if f.Unfinished > 0 {
			fmt.Fprintf(b, "  (%d unfinished)", f.Unfinished)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "\n%s calls in %s; %s dropped", count(s.Calls), span(s.Duration), count(s.DroppedEntries))
	if s.UnmatchedExits > 0 {
		fmt.Fprintf(b, "; %s returns of calls that began before the recording, or were dropped", count(s.UnmatchedExits))
	}
	b.WriteString("\n\nthreads\n")
	for i := range s.Threads {
		t := &s.Threads[i]
		fmt.Fprintf(b, "%12s calls  %7d %s\n", count(t.Calls), t.TID, printable(t.Name))
	}
	for _, d := range s.Damage {
		fmt.Fprintf(b, "damaged: %s\n", printable(d.String()))
	}
	return b.Flush()
}

// span writes a time with three or four digits and a unit.
func span(ns uint64) string {
	d := time.Duration(ns)
	switch {
	case ns < 1000:
		return fmt.Sprintf("%d ns", ns)
	case d < time.Millisecond:
		return fmt.Sprintf("%.2f us", float64(ns)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}
