package viewer

import (
	"math"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"sync"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// offSteps says how many of some functions were off at once, as it changes over time.
type offSteps struct {
	times  []uint64 // in nanoseconds and order; each step goes on to the next one, the last to the end of the recording
	counts []uint32
	most   uint32
	// functions is how many they are; one is the last of them.
	functions int
	one       uint32
}

// stepsOf counts times in which functions were off, which are sorted by function. A time that is a single tick is one long.
func stepsOf(tl *timeline.Timeline, list []reel.Off) *offSteps {
	s := &offSteps{}
	from, to := make([]uint64, len(list)), make([]uint64, len(list))
	for i := range list {
		if list[i].Function != s.one {
			s.functions, s.one = s.functions+1, list[i].Function
		}
		from[i], to[i] = list[i].From, list[i].To
		if to[i] <= from[i] && from[i] < math.MaxUint64 {
			to[i] = from[i] + 1
		}
	}
	slices.Sort(from)
	slices.Sort(to)
	first, end := tl.File().FirstTick(), tl.Duration()
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
		s.times, s.counts, s.most = append(s.times, min(tl.NS(max(at, first)), end)), append(s.counts, n), max(s.most, n)
	}
	return s
}

// offRun is a stretch from one time to another in which so many functions were off, in nanoseconds.
type offRun [3]uint64

// runs are the stretches between two times in which functions were off. If they are more than so many columns, they are merged: a column has
// the most that were off at once in it, and whole is false.
func (s *offSteps) runs(duration, from, to uint64, width int) (list []offRun, whole bool) {
	ns := func(i int) uint64 {
		if i >= len(s.times) {
			return duration
		}
		return s.times[i]
	}
	to = min(to, duration)
	// The last step that begins before from reaches into the range.
	begin, _ := slices.BinarySearch(s.times, from)
	begin = max(0, begin-1)
	end := begin + sort.Search(len(s.times)-begin, func(i int) bool { return s.times[begin+i] > to })
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

// offViews keeps what was counted last: while a page is moved it asks for parts of the same.
type offViews struct {
	mu   sync.Mutex
	of   *reel.File
	kept map[string]*offSteps
}

// maxOffViews is how many are kept: that of all functions, and those of what was looked for last.
const maxOffViews = 4

func (v *offViews) steps(tl *timeline.Timeline, key string, list func() []reel.Off) *offSteps {
	f := tl.File()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of != f || len(v.kept) >= maxOffViews && v.kept[key] == nil {
		v.of, v.kept = f, map[string]*offSteps{}
	}
	s := v.kept[key]
	if s == nil {
		s = stepsOf(tl, list())
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
	all := r.offViews.steps(tl, "", f.Offs)
	j := offViewJSON{Most: all.most}
	j.Runs, j.Whole = all.runs(tl.Duration(), from, to, width)
	if j.Runs == nil {
		j.Runs = []offRun{}
	}
	if text != "" || function != 0 {
		key := "q" + text
		if text == "" {
			key = "f" + strconv.FormatUint(uint64(function), 10)
		}
		s := r.offViews.steps(tl, key, func() []reel.Off { return r.offsFound(f, text, function) })
		var whole bool
		j.FoundRuns, whole = s.runs(tl.Duration(), from, to, width)
		j.Found, j.Whole = s.functions, j.Whole && whole
		if s.functions == 1 {
			j.Name, _ = newNaming(f).of(s.one)
		}
	}
	return writeJSON(w, j)
}

// offsFound are the times in which functions were off that a text finds, or that one, by function.
func (r *recording) offsFound(f *reel.File, text string, function uint32) (list []reel.Off) {
	if text == "" {
		return f.OffsOf(function)
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
	return list
}
