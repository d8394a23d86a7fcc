package viewer

import (
	"cmp"
	"net/http"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
)

// changeJSON is a function as api/diff and `callreel diff --json` have it; the keys are promised.
type changeJSON struct {
	Name         string     `json:"name"`
	Module       string     `json:"module"`
	File         string     `json:"file,omitempty"` // where it begins in its source, if that is known
	Line         uint32     `json:"line,omitempty"`
	SlowerNS     int64      `json:"slower_ns"`
	DeltaTotalNS int64      `json:"delta_total_ns"`
	DeltaSelfNS  int64      `json:"delta_self_ns"`
	A            *timesJSON `json:"a"` // null where it was not called
	B            *timesJSON `json:"b"`
	// The parts of DeltaSelfNS: what more calls come to, slower ones, functions that only one has.
	MoreCallsNS   int64 `json:"more_calls_ns"`
	SlowerCallsNS int64 `json:"slower_calls_ns"`
	NewPathNS     int64 `json:"new_path_ns"`
	MissingPathNS int64 `json:"missing_path_ns"`
	// OffNS is the part of which it isn't known what it comes from, as the function was off for some time in A or B.
	OffNS int64 `json:"off_ns,omitempty"`
	OffA  bool  `json:"off_a,omitempty"`
	OffB  bool  `json:"off_b,omitempty"`
	// DeltaSelfNS by what threads did, as far as that is known; not there if it isn't.
	DeltaSelfCPUNS     int64 `json:"delta_self_cpu_ns,omitempty"`
	DeltaSelfReadyNS   int64 `json:"delta_self_ready_ns,omitempty"`
	DeltaSelfBlockedNS int64 `json:"delta_self_blocked_ns,omitempty"`
}

type timesJSON struct {
	Func    uint32     `json:"func"` // its ID in that reel
	Calls   uint64     `json:"calls"`
	TotalNS uint64     `json:"total_ns"`
	SelfNS  uint64     `json:"self_ns"`
	P50NS   Percentile `json:"p50_ns"` // of complete calls, null if there was none
	P99NS   Percentile `json:"p99_ns"`
	MaxNS   uint64     `json:"max_ns"`
}

// Change returns a function's change as JSON has it.
func Change(c *reel.FunctionChange) any { return changeOf(c) }

func changeOf(c *reel.FunctionChange) changeJSON {
	file, line := "", uint32(0)
	for _, f := range []*reel.FunctionSummary{c.A, c.B} { // B's, if both know it
		if f != nil && f.File != "" {
			file, line = cut(f.File, maxName), f.Line
		}
	}
	parts := c.Parts()
	cpu, ready, blocked := c.DeltaStates()
	return changeJSON{
		Name: c.Name, Module: c.Module, File: file, Line: line, SlowerNS: c.Slower, DeltaTotalNS: c.DeltaTotal(), DeltaSelfNS: c.DeltaSelf(), A: timesOf(c.A), B: timesOf(c.B),
		MoreCallsNS: parts.MoreCalls, SlowerCallsNS: parts.Slower, NewPathNS: parts.New, MissingPathNS: parts.Gone,
		OffNS: parts.Off, OffA: c.OffA, OffB: c.OffB,
		DeltaSelfCPUNS: cpu, DeltaSelfReadyNS: ready, DeltaSelfBlockedNS: blocked,
	}
}

func timesOf(f *reel.FunctionSummary) *timesJSON {
	if f == nil {
		return nil
	}
	return &timesJSON{f.ID, f.Calls, f.Total, f.Self, PercentileOf(f.P50, f.Complete), PercentileOf(f.P99, f.Complete), f.Max}
}

// diffOffJSON says how many functions were off for some time in two reels, and what of the time that differs is for that.
type diffOffJSON struct {
	FunctionsA int   `json:"functions_a"`
	FunctionsB int   `json:"functions_b"`
	OffNS      int64 `json:"off_ns"`
}

// offInBoth is nil if none was.
func offInBoth(changes []reel.FunctionChange, a, b *reel.File) *diffOffJSON {
	j := &diffOffJSON{FunctionsA: len(a.OffIn(Recorded(a))), FunctionsB: len(b.OffIn(Recorded(b)))}
	if j.FunctionsA+j.FunctionsB == 0 {
		return nil
	}
	for i := range changes {
		j.OffNS += changes[i].Parts().Off
	}
	return j
}

// diff is api/diff: what became slower from the first reel to the second, see reel.Compare.
func (s *Server) diff(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r)
	if err != nil {
		return err
	}
	limit, ticket := q.integer("limit", maxFunctions, 0, maxFunctions), q.ticket()
	if q.err != nil {
		return q.err
	}
	if len(s.reels) != 2 {
		return failed(http.StatusBadRequest, "there is one reel only: callreel view A B shows two")
	}
	a, err := s.reels[0].allFunctions(q.ctx, ticket)
	if err != nil {
		return err
	}
	b, err := s.reels[1].allFunctions(q.ctx, ticket)
	if err != nil {
		return err
	}
	changes := reel.Compare(a, b)
	reel.TellOffs(changes, s.reels[0].File(), s.reels[1].File(), demangle.Name)
	answer := struct {
		Functions []changeJSON `json:"functions"`
		Total     int          `json:"total"`
		Off       *diffOffJSON `json:"off,omitempty"` // if functions were off in one of them
	}{[]changeJSON{}, len(changes), offInBoth(changes, s.reels[0].File(), s.reels[1].File())}
	naming := newNaming(s.reels[1].File())
	for i := range changes[:min(limit, len(changes))] {
		c := changeOf(&changes[i])
		id := cmp.Or(c.B, c.A).Func
		c.Name, c.Module = naming.given(id, c.Name, c.Module)
		answer.Functions = append(answer.Functions, c)
	}
	return writeJSON(w, answer)
}
