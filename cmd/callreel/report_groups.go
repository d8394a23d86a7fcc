package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// groupJSON is a group as --by has it with --json; the keys are promised.
type groupJSON struct {
	Value   any               `json:"value"`
	Calls   uint64            `json:"calls"`
	TotalNS uint64            `json:"total_ns"`
	P50NS   viewer.Percentile `json:"p50_ns"` // null where no call was complete
	P99NS   viewer.Percentile `json:"p99_ns"`
	MaxNS   uint64            `json:"max_ns"`
	*GroupStatesJSON
}

// GroupStatesJSON is there where the states of threads are known; the keys are promised.
type GroupStatesJSON struct {
	TotalCPUNS     uint64 `json:"total_cpu_ns"`
	TotalReadyNS   uint64 `json:"total_ready_ns"`
	TotalBlockedNS uint64 `json:"total_blocked_ns"`
	TotalUnknownNS uint64 `json:"total_unknown_ns,omitempty"`
}

// groupStates are the columns of total's parts.
const groupStates = " %8s %8s %8s"

// groups writes the calls of the functions chosen, by the values of an argument.
func (f *reportFlags) groups(w io.Writer, path string, file *reel.File, key func(*reel.FunctionSummary) uint64) error {
	if len(f.functions) == 0 {
		return usageError("callreel report: --by goes with -f")
	}
	wanted := newGlobs(f.functions)
	var ids []uint32
	for id, fn := range file.Functions {
		full := demangle.Name(fn.Name)
		if wanted.match(full) || wanted.match(demangle.Short(fn.Name)) || wanted.match(fn.Name) {
			ids = append(ids, id)
		}
	}
	if err := wanted.unmatched("-f"); err != nil {
		return fmt.Errorf("callreel report: %s: %w", path, err)
	}
	groups, err := reel.GroupCalls(file, ids, f.by)
	if errors.Is(err, reel.ErrNoArgument) {
		return usageError("callreel report: --by %s: %w", f.by, err)
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(groups, func(a, b reel.GroupSummary) int {
		of := func(g *reel.GroupSummary) uint64 {
			return key(&reel.FunctionSummary{Calls: g.Calls, Total: g.Total, Self: g.Total, Max: g.Max,
				UnfinishedTotal: g.UnfinishedTotal, UnfinishedSelf: g.UnfinishedTotal, EndedMax: g.EndedMax,
				SelfStates: g.TotalStates, UnfinishedSelfStates: g.UnfinishedTotalStates})
		}
		return cmp.Compare(of(&b), of(&a))
	})
	shown := groups
	if f.limit > 0 {
		shown = shown[:min(f.limit, len(shown))]
	}
	hasStates := file.HasStates()
	b := bufio.NewWriter(w)
	if f.json {
		b.WriteString("{")
		if err := jsonList(b, "groups", len(shown), func(i int) any {
			g := &shown[i]
			j := groupJSON{g.JSON, g.Calls, g.Total, viewer.PercentileOf(g.P50, g.Complete), viewer.PercentileOf(g.P99, g.Complete), g.Max, nil}
			if hasStates {
				t := g.TotalStates
				j.GroupStatesJSON = &GroupStatesJSON{t.Running, t.Ready, t.Blocked, g.Total - min(g.Total, t.Known())}
			}
			return j
		}); err != nil {
			return err
		}
		b.WriteString("}\n")
		return b.Flush()
	}
	states := ""
	if hasStates {
		states = fmt.Sprintf(groupStates, "cpu", "ready", "blocked")
	}
	fmt.Fprintf(b, "%12s %10s%s %10s %10s %10s  %s\n", "calls", "total", states, "p50", "p99", "max", printable(f.by))
	for i := range shown {
		g := &shown[i]
		p50, p99 := span(g.P50), span(g.P99)
		if g.Complete == 0 {
			p50, p99 = "-", "-"
		}
		if hasStates {
			cpu, ready, blocked := stateTexts(g.Total, g.TotalStates)
			states = fmt.Sprintf(groupStates, cpu, ready, blocked)
		}
		fmt.Fprintf(b, "%12s %10s%s %10s %10s %10s  %s\n", count(g.Calls), span(g.Total), states, p50, p99, span(g.Max), printable(g.Text))
	}
	if n := len(groups) - len(shown); n > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(n), "other value"))
	}
	return b.Flush()
}
