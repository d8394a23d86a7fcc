package viewer

import (
	"cmp"
	"math"
	"net/http"
	"slices"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// offsJSON says which functions were off in a range: how many, and which were the longest.
type offsJSON struct {
	Functions int           `json:"functions"`
	Longest   []offFunction `json:"longest"`
	// Times are those of one function, where it was asked for; More is how many there are besides.
	Times []offTime `json:"times,omitempty"`
	More  int       `json:"more,omitempty"`
}

type offFunction struct {
	Func   uint32 `json:"func"`
	Name   string `json:"name"`
	Module string `json:"module"`
	FunctionOff
	// Of functions that are listed: how often it was off in the range, and from when to when, which may be beyond it.
	Times  int    `json:"times,omitempty"`
	FromNS uint64 `json:"from_ns,omitempty"`
	ToNS   uint64 `json:"to_ns,omitempty"`
}

type offTime struct {
	FromNS    uint64 `json:"from_ns"`
	ToNS      uint64 `json:"to_ns"`
	Estimated uint64 `json:"estimated,omitempty"`
}

const (
	// namedOff is how many functions that were off are named, and mostNamedOff how many where they are listed.
	namedOff     = 20
	mostNamedOff = 2000
	// listedOff is how many times of one function are told.
	listedOff = 200
)

// budgetJSON is reel.Budget as api/info has it.
type budgetJSON struct {
	Wanted     float64 `json:"wanted"`
	Measured   float64 `json:"measured,omitempty"`
	CallsShare float64 `json:"calls_recorded_share,omitempty"`
	TimeShare  float64 `json:"time_recorded_share,omitempty"`
}

// offIn says which functions were off between two times; nil if none was, or if times are no ticks.
func offIn(tl *timeline.Timeline, from, to uint64) *offsJSON {
	return offList{named: namedOff}.in(tl, from, to)
}

// offList says how functions that were off are listed.
type offList struct {
	named int
	// whole takes the times in which they were off as a whole, not just what of them is in the range.
	whole bool
}

func (l offList) in(tl *timeline.Timeline, from, to uint64) *offsJSON {
	f := tl.File()
	if len(f.Offs()) == 0 || f.Header().Clock.Mode == reel.ClockNone {
		return nil
	}
	first, last := tl.Tick(from), f.LastTick()
	if to < tl.Duration() {
		last = tl.Tick(to)
	}
	first = max(first, f.FirstTick())
	sums := slices.DeleteFunc(f.OffIn(first, last), func(s reel.OffSum) bool { return s.Ticks == 0 && last > first })
	if len(sums) == 0 {
		return nil
	}
	j := &offsJSON{Functions: len(sums), Longest: []offFunction{}}
	slices.SortStableFunc(sums, func(a, b reel.OffSum) int { return cmp.Compare(b.Ticks, a.Ticks) })
	naming := newNaming(f)
	for _, s := range sums[:min(len(sums), l.named)] {
		o := offFunction{Func: s.Function, FunctionOff: offOf(f, s, first, last)}
		o.Name, o.Module = naming.of(s.Function)
		if l.whole {
			l.wholly(tl, &o, first, last)
		}
		j.Longest = append(j.Longest, o)
	}
	return j
}

// wholly says of a function from when to when it was off that reaches into a range of ticks, and what that comes to.
func (offList) wholly(tl *timeline.Timeline, o *offFunction, first, last uint64) {
	f := tl.File()
	list := f.OffsOf(o.Func)
	begin, _ := slices.BinarySearchFunc(list, first, func(x reel.Off, at uint64) int { return cmp.Compare(x.To, at) })
	end := begin
	for end < len(list) && list[end].During(first, last) {
		end++
	}
	if end == begin {
		return
	}
	from, to := max(list[begin].From, f.FirstTick()), max(list[end-1].To, f.FirstTick())
	o.Times, o.FromNS, o.ToNS = end-begin, tl.NS(from), min(tl.NS(to), tl.Duration())
	o.FunctionOff = offOf(f, reel.SumOffs(list[begin:end], f.FirstTick(), f.LastTick()), from, to)
}

// rowOff says for how long functions were off between two times, for rows of tables.
func rowOff(tl *timeline.Timeline, from, to uint64) func(function uint32) *FunctionOff {
	f := tl.File()
	if len(f.Offs()) == 0 || f.Header().Clock.Mode == reel.ClockNone {
		return func(uint32) *FunctionOff { return nil }
	}
	first, last := Recorded(f)
	if from > 0 || to < tl.Duration() {
		first, last = tl.Tick(from), tl.Tick(min(to, tl.Duration()))
	}
	return func(function uint32) *FunctionOff {
		o := OffOf(f, function, first, last)
		if o != nil && o.OffNS == 0 {
			return nil
		}
		return o
	}
}

// offs is api/offs: which functions were off in a range, and with f=ID from when to when that one was; null if none was. It names limit=N of
// them; with whole=1 each with from when to when it was off, also beyond the range.
func (r *recording) offs(w http.ResponseWriter, q *query) error {
	from, to := q.interval()
	function := uint32(q.integer("f", 0, 0, math.MaxUint32))
	l := offList{q.integer("limit", namedOff, 0, mostNamedOff), q.integer("whole", 0, 0, 1) == 1}
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	j := l.in(tl, from, to)
	if j == nil {
		return writeJSON(w, nil)
	}
	f := tl.File()
	for _, o := range f.OffsOf(function) {
		t := offTime{tl.NS(max(o.From, f.FirstTick())), min(tl.NS(max(o.To, f.FirstTick())), tl.Duration()), o.Estimated}
		switch {
		case t.ToNS < from || t.FromNS > to:
		case len(j.Times) == listedOff:
			j.More++
		default:
			j.Times = append(j.Times, t)
		}
	}
	return writeJSON(w, j)
}
