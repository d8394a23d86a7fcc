package viewer

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// offSteps says how many of some functions were off at once, as it changes over time.
type offSteps struct {
	ticks  []uint64 // in order; each step goes on to the next one
	counts []uint32
	most   uint32
}

// stepsOf counts times in which functions were off. A time that is a single tick is one long.
func stepsOf(list []reel.Off) *offSteps {
	from, to := make([]uint64, len(list)), make([]uint64, len(list))
	for i := range list {
		from[i], to[i] = list[i].From, list[i].To
		if to[i] <= from[i] && from[i] < math.MaxUint64 {
			to[i] = from[i] + 1
		}
	}
	slices.Sort(from)
	slices.Sort(to)
	s := &offSteps{}
	var on, off int
	for off < len(to) {
		at := to[off]
		if on < len(from) {
			at = min(at, from[on])
		}
		for on < len(from) && from[on] == at {
			on++
		}
		for off < len(to) && to[off] == at {
			off++
		}
		n := uint32(on - off)
		if k := len(s.counts); k > 0 && s.counts[k-1] == n {
			continue
		}
		s.ticks, s.counts, s.most = append(s.ticks, at), append(s.counts, n), max(s.most, n)
	}
	return s
}

// offRun is a stretch from one time to another in which so many functions were off, in nanoseconds.
type offRun [3]uint64

// runs are the stretches between two times in which functions were off. If they are more than so many columns, they are merged: a column has
// the most that were off at once in it, and whole is false.
func (s *offSteps) runs(tl *timeline.Timeline, from, to uint64, width int) (list []offRun, whole bool) {
	first := tl.File().FirstTick()
	ns := func(i int) uint64 {
		if i >= len(s.ticks) {
			return tl.Duration()
		}
		return min(tl.NS(max(s.ticks[i], first)), tl.Duration())
	}
	to = min(to, tl.Duration())
	// The last step that begins before from reaches into the range.
	begin := max(0, sortedBefore(s.ticks, tl.Tick(min(from, tl.Duration())))-1)
	end := begin
	for end < len(s.ticks) && ns(end) <= to {
		end++
	}
	if end-begin <= width {
		for i := begin; i < end; i++ {
			if s.counts[i] > 0 && ns(i+1) >= from {
				list = append(list, offRun{ns(i), ns(i + 1), uint64(s.counts[i])})
			}
		}
		return list, true
	}
	columns := make([]uint32, width)
	step := float64(max(1, to-min(from, to))) / float64(width)
	column := func(at uint64) int { return min(width-1, int(float64(at-min(from, at))/step)) }
	for i := begin; i < end; i++ {
		for c, last := column(ns(i)), column(min(ns(i+1), to)); c <= last; c++ {
			columns[c] = max(columns[c], s.counts[i])
		}
	}
	at := func(c int) uint64 { return from + uint64(math.Round(float64(c)*step)) }
	for c, n := range columns {
		switch k := len(list); {
		case n == 0:
		case k > 0 && list[k-1][1] == at(c) && list[k-1][2] == uint64(n):
			list[k-1][1] = at(c + 1)
		default:
			list = append(list, offRun{at(c), at(c + 1), uint64(n)})
		}
	}
	return list, false
}

// sortedBefore is how many of a sorted list are at most v.
func sortedBefore(list []uint64, v uint64) int {
	n, found := slices.BinarySearch(list, v)
	for found && n < len(list) && list[n] == v {
		n++
	}
	return n
}

// offViews keeps what was counted last: while a page is moved it asks for parts of the same.
type offViews struct {
	mu   sync.Mutex
	of   *reel.File
	kept map[string]*offSteps
}

// maxOffViews is how many are kept: that of all functions, and those of what was looked for last.
const maxOffViews = 4

func (v *offViews) steps(f *reel.File, key string, list func() []reel.Off) *offSteps {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of != f || len(v.kept) >= maxOffViews && v.kept[key] == nil {
		v.of, v.kept = f, map[string]*offSteps{}
	}
	s := v.kept[key]
	if s == nil {
		s = stepsOf(list())
		v.kept[key] = s
	}
	return s
}

// maxOffWidth is how many stretches of each kind are told at once.
const maxOffWidth = 4096

// offViewJSON is what api/offview answers.
type offViewJSON struct {
	Most uint32   `json:"most"` // functions that were off at once, at any time
	Runs []offRun `json:"runs"`
	// Whole says that nothing is merged: with the whole recording asked for there is no more to know.
	Whole bool `json:"whole"`
	// Found is how many functions were off at some time of those that were asked for, FoundRuns when they were in the range; Name is what it is
	// called if it is one.
	Found     int      `json:"found,omitempty"`
	FoundRuns []offRun `json:"found_runs,omitempty"`
	Name      string   `json:"name,omitempty"`
}

// offView is api/offview: how many functions were off in the course of a range, and with q=TEXT or f=ID when those were; null if none ever was.
func (r *recording) offView(w http.ResponseWriter, q *query) error {
	from, to := q.interval()
	width, text := q.integer("width", 1024, 1, maxOffWidth), q.text("q")
	function := uint32(q.integer("f", 0, 0, math.MaxUint32))
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	f := tl.File()
	if len(f.Offs()) == 0 || f.Header().Clock.Mode == reel.ClockNone {
		return writeJSON(w, nil)
	}
	all := r.offViews.steps(f, "", f.Offs)
	j := offViewJSON{Most: all.most}
	j.Runs, j.Whole = all.runs(tl, from, to, width)
	if j.Runs == nil {
		j.Runs = []offRun{}
	}
	if text != "" || function != 0 {
		list, key := r.offsFound(f, text, function)
		one := uint32(0)
		for i := range list {
			if i == 0 || list[i].Function != list[i-1].Function {
				j.Found, one = j.Found+1, list[i].Function
			}
		}
		if j.Found > 0 {
			whole := true
			j.FoundRuns, whole = r.offViews.steps(f, key, func() []reel.Off { return list }).runs(tl, from, to, width)
			j.Whole = j.Whole && whole
		}
		if j.Found == 1 {
			j.Name, _ = newNaming(f).of(one)
		}
	}
	return writeJSON(w, j)
}

// offsFound are the times in which functions were off that a text finds, or that one, by function; key names them.
func (r *recording) offsFound(f *reel.File, text string, function uint32) (list []reel.Off, key string) {
	if text == "" {
		return f.OffsOf(function), "f" + strconv.FormatUint(uint64(function), 10)
	}
	found := r.names.matching(text)
	is := false
	for i, all := 0, f.Offs(); i < len(all); i++ {
		if i == 0 || all[i].Function != all[i-1].Function {
			is = found[all[i].Function]
		}
		if is {
			list = append(list, all[i])
		}
	}
	return list, "q" + text
}
