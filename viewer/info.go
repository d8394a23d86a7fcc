package viewer

import (
	"math"
	"net/http"
	"slices"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// reelJSON is a reel as api/info has it.
type reelJSON struct {
	Name       string      `json:"name"`
	Path       string      `json:"path"`
	DurationNS uint64      `json:"duration_ns"`
	StartNS    int64       `json:"start_unix_ns"`
	PID        int         `json:"pid,omitempty"`
	Command    []string    `json:"command,omitempty"`
	Host       string      `json:"host,omitempty"`
	Clock      string      `json:"clock"`
	Events     uint64      `json:"events"`
	Calls      uint64      `json:"calls"`
	Dropped    uint64      `json:"dropped"` // entries that were not recorded
	Bytes      int64       `json:"bytes"`
	Closed     bool        `json:"closed"` // its recorder has ended it
	Live       bool        `json:"live"`   // it grows
	Damaged    []string    `json:"damaged"`
	Goroutines bool        `json:"goroutines"`
	Functions  int         `json:"functions"`
	Lanes      int         `json:"lanes"`
	Images     []imageJSON `json:"images"`
	Dump       bool        `json:"dump,omitempty"`
	Off        bool        `json:"off,omitempty"` // functions were off for what they cost, see api/offs
	// Budget is what recording was allowed to cost, if that was bounded.
	Budget *budgetJSON `json:"budget,omitempty"`
	// Scheduling says how the states of threads were learned; absent if nothing is said of it.
	Scheduling *schedulingJSON `json:"scheduling,omitempty"`
	Error      string          `json:"error,omitempty"` // why there is no timeline
}

// schedulingJSON is reel.Scheduling as api/info has it.
type schedulingJSON struct {
	Source  string `json:"source"`
	Reason  string `json:"reason,omitempty"`
	WakeUps bool   `json:"wake_ups"`
	Faults  bool   `json:"faults"`
	States  bool   `json:"states"`            // there are some
	Summing bool   `json:"summing,omitempty"` // which are still being summed up: views have none of some lanes
}

type imageJSON struct {
	ID      int    `json:"id"`
	Path    string `json:"path"`
	BuildID string `json:"build_id"`
}

// maxListed bounds lists of what a reel may have any number of.
const maxListed = 4096

// info is api/info. It answers at once, however far the index is.
func (s *Server) info(w http.ResponseWriter, r *http.Request) error {
	answer := struct {
		Version string     `json:"version"`
		Reels   []reelJSON `json:"reels"`
		Build   struct {
			Progress float64 `json:"progress"`
		} `json:"build"`
		Why bool `json:"why,omitempty"` // it can be said why a call was slow
		// Control says that the recording can be paused.
		Control bool `json:"control,omitempty"`
	}{Version: s.opt.Version, Why: s.opt.Explain != nil, Control: s.controls() != nil && s.reels[0].live.Load()}
	for _, rec := range s.reels {
		answer.Reels = append(answer.Reels, rec.info())
		answer.Build.Progress += float64(rec.progress.Load()) / progressWhole / float64(len(s.reels))
	}
	return writeJSON(w, answer)
}

func (r *recording) info() reelJSON {
	f := r.File()
	h := f.Header()
	j := reelJSON{
		Name: r.name, Path: r.path, StartNS: h.StartUnixNS, PID: h.PID, Command: h.Command, Host: h.Host, Clock: h.Clock.Mode.String(),
		Events: f.Events(), Calls: r.calls(), Bytes: f.Size(), Closed: f.Closed(), Live: r.live.Load(), Damaged: []string{},
		Goroutines: h.Goroutines, Functions: f.FunctionCount(), Images: []imageJSON{},
	}
	_, j.Dump = f.Dump()
	j.Off = len(f.Offs()) > 0
	if b, ok := f.Budget(); ok {
		j.Budget = &budgetJSON{b.Wanted, b.Measured, b.CallsShare, b.TimeShare}
	}
	if x, ok := f.Scheduling(); ok || f.HasStates() {
		j.Scheduling = &schedulingJSON{cut(x.Source, maxLaneName), cut(x.Reason, maxName), x.WakeUps, x.Faults, f.HasStates(), f.HasStates() && !r.summed.Load()}
	}
	for _, d := range f.Drops() {
		j.Dropped += d.Entries
	}
	for _, d := range f.Damage() {
		j.Damaged = append(j.Damaged, d.String())
	}
	for i, im := range f.Images()[:min(len(f.Images()), maxListed)] {
		j.Images = append(j.Images, imageJSON{i + 1, im.Path, im.ID})
	}
	switch {
	case r.isReady():
		j.DurationNS, j.Lanes = r.timeline.Duration(), len(r.timeline.Lanes())
	case r.hasFailed():
		j.Error = r.err.Error()
	default:
		j.DurationNS = f.Clock().Nanoseconds(f.LastTick() - min(f.LastTick(), f.FirstTick()))
	}
	return j
}

// laneJSON is a lane as api/lanes has it.
type laneJSON struct {
	ID        uint32 `json:"id"`
	TID       int    `json:"tid"`
	PID       int    `json:"pid,omitempty"`
	Goroutine uint64 `json:"goroutine,omitempty"`
	Name      string `json:"name"`
	Kind      string `json:"kind"` // thread, goroutine, or stack: a thread's own in a Go program
	Calls     uint64 `json:"calls"`
	Rows      int    `json:"rows"`
	StartNS   uint64 `json:"start_ns"`
	EndNS     uint64 `json:"end_ns"`
	Dropped   uint64 `json:"dropped"`          // events
	States    bool   `json:"states,omitempty"` // when it ran is known
}

// lanes is api/lanes.
func (r *recording) lanes(w http.ResponseWriter, q *query) error {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	goroutines := tl.File().Header().Goroutines
	list := []laneJSON{}
	for _, l := range tl.Lanes() {
		j := laneJSON{ID: l.ID, TID: l.TID, PID: l.Process, Goroutine: l.Goroutine, Name: cut(l.Name, maxLaneName), Kind: "thread", Calls: l.Calls, Rows: l.Rows, StartNS: l.Start, EndNS: l.End, Dropped: l.Dropped, States: l.States}
		switch {
		case l.Goroutine != 0:
			j.Kind = "goroutine"
		case goroutines:
			j.Kind = "stack"
		}
		list = append(list, j)
	}
	return writeJSON(w, list)
}

// overview is api/overview: how busy each column of the whole recording is, 1 being the busiest possible of the lanes that are
// ever busy, and where events are missing.
func (r *recording) overview(w http.ResponseWriter, q *query) error {
	width := q.integer("width", 1000, 1, maxWidth)
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	o, err := tl.Overview(q.ctx, width)
	if err != nil {
		return err
	}
	answer := struct {
		Busy   []float64   `json:"busy"`
		FromNS uint64      `json:"from_ns,omitempty"` // where they begin
		Gaps   [][2]uint64 `json:"gaps"`
	}{make([]float64, len(o.Busy)), o.From, [][2]uint64{}}
	if most := slices.Max(append(o.Busy, 1)); len(o.Busy) > 0 {
		for i, busy := range o.Busy {
			// Three digits are more than a strip shows.
			answer.Busy[i] = math.Round(float64(busy)/float64(most)*1000) / 1000
		}
	}
	for _, g := range o.Gaps[:min(len(o.Gaps), maxListed)] {
		answer.Gaps = append(answer.Gaps, [2]uint64{g.Start, g.End})
	}
	return writeJSON(w, answer)
}

// callJSON is a call as the API has it.
type callJSON struct {
	Lane       uint32       `json:"lane"`
	Row        int          `json:"row"`
	Func       uint32       `json:"func"`
	Name       string       `json:"name"`
	Module     string       `json:"module"`
	StartNS    uint64       `json:"start_ns"`
	DurationNS uint64       `json:"duration_ns"`
	SelfNS     uint64       `json:"self_ns"`
	Depth      int          `json:"depth"`
	Stack      int          `json:"stack,omitempty"`
	Flags      []string     `json:"flags"`
	Callers    []callerJSON `json:"callers,omitempty"` // outermost first
	// Callees is how many calls it made itself, as far as that is quickly counted: absent otherwise.
	Callees *int `json:"callees,omitempty"`
	// Arguments are the values that were recorded of it, the result last.
	Arguments []argumentJSON `json:"arguments,omitempty"`
	// States split the duration; absent where nothing is known of the thread's.
	States *statesJSON `json:"states,omitempty"`
	// Off are the functions that were off while it ran: their calls aren't seen in it.
	Off *offsJSON `json:"off,omitempty"`
}

type callerJSON struct {
	Row        int    `json:"row"`
	Func       uint32 `json:"func"`
	Name       string `json:"name"`
	StartNS    uint64 `json:"start_ns"`
	DurationNS uint64 `json:"duration_ns"`
}

func flagNames(flags reel.CallFlags) []string {
	list := []string{}
	for _, f := range [...]struct {
		flag reel.CallFlags
		name string
	}{{reel.Unfinished, "unfinished"}, {reel.Implicit, "implicit"}, {reel.AcrossLoss, "across-loss"}} {
		if flags&f.flag != 0 {
			list = append(list, f.name)
		}
	}
	return list
}

// call writes a call that was found, or null. callees is nil where it isn't known.
func (r *recording) call(w http.ResponseWriter, tl *timeline.Timeline, c *timeline.Found, callees *int, found bool) error {
	if !found {
		return writeJSON(w, nil)
	}
	f := tl.File()
	j := callJSON{
		Lane: c.Lane, Row: c.Row, Func: c.Func, StartNS: c.Start, DurationNS: c.Duration, SelfNS: c.Self, Depth: c.Depth, Stack: c.Stack,
		Flags: flagNames(c.Flags), Callers: []callerJSON{}, Callees: callees, Arguments: valuesOf(tl, c),
	}
	if s, ok := tl.StateTimes(c.Lane, tl.Tick(c.Start), tl.Tick(c.Start+c.Duration)); ok {
		j.States = splitJSON(f, s)
	}
	j.Off = offIn(tl, c.Start, c.Start+c.Duration)
	naming := newNaming(f)
	j.Name, j.Module = naming.of(c.Func)
	for _, o := range slices.Backward(c.Callers) { // the innermost get their names first
		name, _ := naming.of(o.Func)
		j.Callers = append(j.Callers, callerJSON{o.Row, o.Func, name, o.Start, o.Duration})
	}
	slices.Reverse(j.Callers)
	return writeJSON(w, j)
}
