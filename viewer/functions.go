package viewer

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// functionCollector sums up calls by function as `callreel report` does. In a span total and self are the time within it, and
// percentiles and maximum are of the whole of the calls that are open in it.
type functionCollector struct {
	piece      *piece
	tally      *reel.CallTally
	stacks     *openStacks
	active     *activity
	goroutines bool
}

func newFunctionCollector(tl *timeline.Timeline) *functionCollector {
	f := tl.File()
	return &functionCollector{tally: reel.NewCallTally(f), stacks: newOpenStacks(newLaneClocks(tl)), active: newActivity(f.FunctionCount()), goroutines: f.Header().Goroutines}
}

func (c *functionCollector) begin(p *piece) {
	c.piece = p
	c.stacks.clocks.begin(p)
}

// enter opens a call. Whether another of its function is open is asked of its stack.
func (c *functionCollector) enter(lane uint32, call *reel.Call) {
	s := c.stacks.of(lane, call)
	outermost := false
	if c.goroutines {
		outermost = !s.has(call.Func)
	} else {
		outermost = c.active.enter(call.Func, call.Stack)
	}
	c.stacks.push(s, call, openFrame{function: call.Func, outermost: outermost})
}

func (c *functionCollector) leave(lane uint32, call *reel.Call) {
	f := c.stacks.pop(c.stacks.of(lane, call), c.piece, call)
	if !c.goroutines {
		c.active.leave(call.Func, call.Stack)
	}
	if c.piece.counts(call) {
		c.tally.Counted(call)
	}
	if !f.outermost {
		f.total, f.totalStates = 0, reel.StateTimes{}
	}
	unfinished := call.Flags&reel.Unfinished != 0
	switch {
	case c.stacks.clocks != nil:
		c.tally.SpentStates(call.Func, unfinished, f.total, f.self, f.totalStates, f.selfStates)
	case unfinished:
		c.tally.SpentUnfinished(call.Func, f.total, f.self)
	default:
		c.tally.Spent(call.Func, f.total, f.self)
	}
}

func (c *functionCollector) pause(lane uint32, stack int, tick uint64) {
	c.stacks.pause(lane, stack, tick)
}

func (c *functionCollector) resume(lane uint32, stack int, tick uint64) {
	c.stacks.resume(c.piece, lane, stack, tick)
}

// summarize sums up the functions of a span.
func (r *recording) summarize(ctx context.Context, s span, ticket string) ([]reel.FunctionSummary, error) {
	tl, err := r.wait(ctx)
	if err != nil {
		return nil, err
	}
	list, err := r.analyze(ctx, tl, s, ticket, func() collector { return newFunctionCollector(tl) })
	if err != nil {
		return nil, err
	}
	sum := list[0].(*functionCollector).tally
	for _, c := range list[1:] {
		sum.Merge(c.(*functionCollector).tally)
	}
	return sum.Functions(reel.SummaryOptions{Name: demangle.Name}), nil
}

// wholeTally keeps the functions of the whole recording.
type wholeTally struct {
	mu        sync.Mutex
	functions []reel.FunctionSummary
	current   bool // they are there, and the recording hasn't grown since they were begun
}

func (w *wholeTally) set(list []reel.FunctionSummary, current bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.functions, w.current = list, current
}

func (w *wholeTally) get() (list []reel.FunctionSummary, current bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.functions, w.current
}

// allFunctions sums up the whole recording, once.
func (r *recording) allFunctions(ctx context.Context, ticket string) ([]reel.FunctionSummary, error) {
	if list, current := r.whole.get(); current {
		return list, nil
	}
	of := r.File()
	list, err := r.summarizeAll(ctx, of, ticket)
	if err == nil && r.File() == of { // else it has grown meanwhile
		r.whole.set(list, true)
	}
	return list, err
}

// summarizeAll sums up the whole recording. What goroutines did is only known to who has seen all events from the beginning on, in order.
func (r *recording) summarizeAll(ctx context.Context, f *reel.File, ticket string) ([]reel.FunctionSummary, error) {
	if f.Header().Goroutines && f.HasStates() {
		var s *reel.Summary
		err := catchFaults(func() error {
			s = reel.Summarize(f, reel.SummaryOptions{Name: demangle.Name})
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		return s.Functions, nil
	}
	return r.summarize(ctx, span{0, math.MaxUint64, nil}, ticket)
}

// Function is a function as `callreel report --json` has it; the keys are promised. Times are in nanoseconds.
type Function struct {
	Name   string `json:"name"`
	Module string `json:"module"`
	// File and Line are where it begins in its source, where that is known. NameFrom says who knew its name if the recorder
	// didn't: symbol table, DWARF, or debuginfod.
	File     string `json:"file,omitempty"`
	Line     uint32 `json:"line,omitempty"`
	NameFrom string `json:"name_from,omitempty"`
	Calls    uint64 `json:"calls"`
	TotalNS  uint64 `json:"total_ns"`
	SelfNS   uint64 `json:"self_ns"`
	// P50NS and P99NS are of complete calls, and null if there was none.
	P50NS      Percentile `json:"p50_ns"`
	P99NS      Percentile `json:"p99_ns"`
	MaxNS      uint64     `json:"max_ns"`
	Unfinished uint64     `json:"unfinished,omitempty"`
	// The parts of TotalNS and SelfNS that unfinished calls have, and the longest call that ended: there where calls are unfinished.
	UnfinishedTotalNS uint64 `json:"unfinished_total_ns,omitempty"`
	UnfinishedSelfNS  uint64 `json:"unfinished_self_ns,omitempty"`
	EndedMaxNS        uint64 `json:"ended_max_ns,omitempty"`
	Implicit          uint64 `json:"implicit,omitempty"`
	// Recorded is there where one call in so many was: Calls are all, the times those of the recorded ones.
	Recorded uint64 `json:"recorded,omitempty"`
	*FunctionStates
	*FunctionOff
}

// Percentile is one of the durations of complete calls, in nanoseconds: null in JSON if there was no such call.
type Percentile struct {
	NS    uint64
	Known bool
}

// PercentileOf is that of so many complete calls.
func PercentileOf(ns, complete uint64) Percentile {
	if complete == 0 {
		return Percentile{}
	}
	return Percentile{ns, true}
}

// MarshalJSON writes a number or null.
func (p Percentile) MarshalJSON() ([]byte, error) {
	if !p.Known {
		return []byte("null"), nil
	}
	return strconv.AppendUint(nil, p.NS, 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Percentile) UnmarshalJSON(b []byte) error {
	*p = Percentile{}
	if string(b) == "null" {
		return nil
	}
	p.Known = true
	return json.Unmarshal(b, &p.NS)
}

// FunctionOf returns what a reel's summary has of a function.
func FunctionOf(f *reel.FunctionSummary) Function {
	fn := Function{Name: f.Name, Module: f.Module, File: cut(f.File, maxName), Line: f.Line, NameFrom: f.NamedFrom.String(), Calls: f.Calls, TotalNS: f.Total, SelfNS: f.Self, P50NS: PercentileOf(f.P50, f.Complete), P99NS: PercentileOf(f.P99, f.Complete), MaxNS: f.Max,
		Unfinished: f.Unfinished, Implicit: f.Implicit}
	if f.Unfinished > 0 {
		fn.UnfinishedTotalNS, fn.UnfinishedSelfNS, fn.EndedMaxNS = f.UnfinishedTotal, f.UnfinishedSelf, f.EndedMax
	}
	if f.Made > 0 {
		fn.Calls, fn.Recorded = f.Made, f.Calls
	}
	return fn
}

// functionJSON is a function as api/functions has it.
type functionJSON struct {
	Func uint32 `json:"func"`
	Function
}

// maxFunctions is how many functions are answered at most.
const maxFunctions = 50_000

// functions is api/functions: the functions of a range and some lanes, by total.
func (r *recording) functions(w http.ResponseWriter, q *query) error {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	from, to := q.interval()
	lanes := q.lanes(len(tl.Lanes()))
	limit, ticket := q.integer("limit", maxFunctions, 0, maxFunctions), q.ticket()
	if q.err != nil {
		return q.err
	}
	var list []reel.FunctionSummary
	if from == 0 && to >= tl.Duration() && lanes == nil {
		list, err = r.allFunctions(q.ctx, ticket)
	} else {
		list, err = r.summarize(q.ctx, span{from, to, lanes}, ticket)
	}
	if err != nil {
		return err
	}
	answer := struct {
		Functions   []functionJSON `json:"functions"`
		Total       int            `json:"total"` // functions, listed or not
		Approximate bool           `json:"approximate"`
		Off         *offsJSON      `json:"off,omitempty"` // if functions were off
	}{Off: offIn(tl, from, to), Functions: []functionJSON{}, Total: len(list)}
	off := rowOff(tl, from, to)
	naming, states := newNaming(tl.File()), tl.File().HasStates()
	for _, f := range list[:min(len(list), limit)] {
		f.Name, f.Module = naming.given(f.ID, f.Name, f.Module)
		fn := FunctionOf(&f)
		if states {
			fn.FunctionStates = StatesOf(&f)
		}
		fn.FunctionOff = off(f.ID)
		answer.Functions = append(answer.Functions, functionJSON{f.ID, fn})
	}
	return writeJSON(w, answer)
}
