package export

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// markSink writes what marks came to. Times are in nanoseconds since the recording started; those of a lane never decrease. What it is given is
// valid during the call only, but for lanes and tracks.
type markSink interface {
	markLane(l *markLane)    // a new one
	markTrack(t *asyncTrack) // a new one

	spanBegin(l *markLane, at int64, x *said)
	spanEnd(l *markLane, at int64, x *said)
	instant(l *markLane, at int64, x *said)

	asyncBegin(t *asyncTrack, at int64, x *said)
	asyncStep(t *asyncTrack, at int64, x *said)
	asyncEnd(t *asyncTrack, at int64, x *said)

	// flowOut returns what flowIn is given, once or several times, or never. Lanes are those of the innermost span, or else call, around it; alone
	// says that there is none.
	flowOut(l *lane, at int64, x *said, alone bool) any
	flowIn(l *lane, at int64, x *said, from any, alone bool)

	counter(pid int, at int64, x *said, v number)
}

// said is what an event of a marker says.
type said struct {
	marker          uint32 // whose title and category are these, 0 if they aren't the marker's alone
	title, category string
	values                 // of the mark
	end             string // how it ended that was not seen to end
	unstarted       bool   // it was not seen to begin
	by              string // who asked for a pause
}

// number is a counter's value.
type number struct {
	whole bool // it is int, else float
	int   int64
	float float64
}

// Bounds of what is kept of marks besides what is open. Beyond them a lane or a track may be made anew.
const (
	maxMarkLanes   = 1 << 16
	maxAsyncTracks = 1 << 16
	maxCounters    = 1 << 16
	maxRenamed     = 1 << 12
	// maxBefore is how many spans of a lane, and asynchronous ones of a title, can begin with the recording as their own beginnings aren't in
	// it. They lie inside of each other: more would be a wall.
	maxBefore    = 16
	maxAllBefore = 1 << 14
)

// markWalk reads the marks of a reel, and its pauses, for a sink. Nothing of it is in the memory but what is open.
type markWalk struct {
	*walk
	sink   markSink
	pairer *reel.SpanPairer
	of     map[uint32]reel.Thread // by key
	steps  int64                  // events told, which is the time without a clock
	least  int64                  // time that nothing is before: where a file begins

	// The mark that is being pushed.
	thread uint32
	mark   *reel.Mark
	marker *reel.Marker
	said   said

	lanes     map[markLaneKey]*markLane
	maxLanes  int
	beside    map[laneKey][]*markLane // lanes of pairs that cross others
	points    flowPoints
	crossing  map[pairKey]bool         // pairs whose spans have lanes of their own
	before    map[markLaneKey][]before // of lanes that aren't made yet
	ran       map[uint64]struct{}      // goroutines that have marks, if they aren't too many
	marking   map[uint32]struct{}      // threads that have, by key
	tracks    map[trackKey]*asyncTracks
	made      int // tracks that are known
	maxTracks int
	number    uint64 // of the track made last
	unstarted int    // asynchronous spans that began with the recording
	renamed   map[[2]uint32]renaming
	kept      []reel.Value
	counters  map[string]string // see providersOf
	left      []*reel.Span      // that the end of the recording ends
	finishing bool

	pauses []pauseEdge   // to come
	paused []*asyncTrack // of each pause

	pull func() (markOf, bool) // the next mark, where they are read in steps
	stop func()
	next markOf
	some bool
}

// markOf is a mark and its thread's key.
type markOf struct {
	thread uint32
	mark   *reel.Mark
}

// newMarkWalk returns nil for a reel that has neither marks nor pauses.
func newMarkWalk(w *walk, sink markSink) *markWalk {
	pauses := w.f.Pauses()
	if !w.f.HasMarks() && len(pauses) == 0 {
		return nil
	}
	m := &markWalk{
		walk: w, sink: sink, of: map[uint32]reel.Thread{}, lanes: map[markLaneKey]*markLane{}, maxLanes: maxMarkLanes,
		tracks: map[trackKey]*asyncTracks{}, maxTracks: maxAsyncTracks, renamed: map[[2]uint32]renaming{}, counters: providersOf(w.f.Markers()),
	}
	for _, t := range w.f.Threads() {
		m.of[t.Key] = t
	}
	m.beside = map[laneKey][]*markLane{}
	m.edges(pauses)
	m.survey()
	w.flowPoints = &m.points
	m.pairer = reel.NewSpanPairer(w.f)
	m.pairer.OnBegin, m.pairer.OnSpan, m.pairer.OnStep, m.pairer.OnOut, m.pairer.OnFlow = m.begin, m.end, m.step, m.out, m.in
	return m
}

// all tells everything.
func (m *markWalk) all() {
	n := 0
	m.f.AllMarks(func(thread uint32, x *reel.Mark) bool {
		m.push(thread, x)
		n++
		return n%1024 != 0 || !m.failed()
	})
	m.finish()
}

// until tells what is before a tick; before is called before each mark.
func (m *markWalk) until(tick uint64, before func(tick uint64)) {
	if m.pull == nil {
		m.pull, m.stop = iter.Pull(func(yield func(markOf) bool) {
			m.f.AllMarks(func(thread uint32, x *reel.Mark) bool { return yield(markOf{thread, x}) })
		})
		m.next, m.some = m.pull()
	}
	for m.some && m.next.mark.Time < tick && !m.failed() {
		before(m.next.mark.Time)
		m.push(m.next.thread, m.next.mark)
		m.next, m.some = m.pull()
	}
	m.tellPauses(tick)
}

// finish ends what is open.
func (m *markWalk) finish() {
	if m.stop != nil {
		m.stop()
	}
	m.tellPauses(math.MaxUint64)
	m.finishing = true
	m.mark = nil
	m.pairer.Finish()
	slices.SortStableFunc(m.left, func(a, b *reel.Span) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(b.Depth, a.Depth)) })
	m.finishing = false
	for _, s := range m.left {
		m.end(s)
	}
	m.left = nil
}

// push takes the next mark.
func (m *markWalk) push(thread uint32, x *reel.Mark) {
	marker, ok := m.f.Marker(x.Marker)
	if !ok {
		return
	}
	m.tellPauses(x.Time)
	m.thread, m.mark, m.marker = thread, x, marker
	if marker.Kind == reel.MarkCounter && m.count() {
		return
	}
	if !m.pairer.Push(thread, x) {
		m.instant("", false)
	}
}

// instant tells the mark as one.
func (m *markWalk) instant(title string, unstarted bool) {
	l := m.lane(m.thread, m.mark.Goroutine)
	s := m.say(title)
	s.unstarted = unstarted
	m.sink.instant(l, m.timeIn(l, m.mark.Time), s)
}

// say is what the mark that is being pushed says.
func (m *markWalk) say(title string) *said {
	m.said = said{category: categoryOf(m.marker), values: values{m.marker.Arguments, m.mark.Values}}
	if title == "" {
		title = m.marker.TitleOf(m.mark)
	}
	switch {
	case title == "":
		title = m.marker.Provider + ":" + m.marker.Name
		m.said.marker = m.mark.Marker
	case title == m.marker.Title:
		m.said.marker = m.mark.Marker
	}
	m.said.title = cut(title, maxName)
	return &m.said
}

// categoryOf is the category of a marker's events. What exporters say themselves has the category "callreel".
func categoryOf(m *reel.Marker) string {
	if c := cut(m.Of(), maxName); c != "callreel" {
		return c
	}
	return "marker"
}

// at is the time of the next event that is in no lane.
func (m *markWalk) at(tick uint64) int64 {
	if m.untimed {
		m.steps++
		return m.steps * 1000
	}
	return max(m.nanoseconds(tick), m.least)
}

// timeIn is the time of a lane's next event.
func (m *markWalk) timeIn(l *markLane, tick uint64) int64 {
	l.last = max(m.at(tick), l.last+m.gap)
	return l.last
}

func (m *markWalk) begin(s *reel.Span) {
	x := m.say(s.Title)
	if s.Async {
		t := m.track(trackKey{m.processOf(s.Thread), x.category, x.title})
		s.Tag = t
		m.sink.asyncBegin(t, m.at(s.Begin), x)
		return
	}
	l := m.laneOf(s)
	o := &markOpen{lane: l, span: s}
	l.open = append(l.open, o)
	s.Tag = o
	m.sink.spanBegin(l, m.timeIn(l, s.Begin), x)
}

func (m *markWalk) step(s *reel.Span, step *reel.SpanStep) {
	m.sink.asyncStep(s.Tag.(*asyncTrack), m.at(step.Time), m.say(""))
}

// end tells of a span that is over: by its own end, by another's, or as the recording is.
func (m *markWalk) end(s *reel.Span) {
	if m.finishing {
		m.left = append(m.left, s)
		return
	}
	if s.Unstarted && !m.begun(s) {
		m.instant(s.Title, true)
		return
	}
	if s.Async {
		t := s.Tag.(*asyncTrack)
		m.sink.asyncEnd(t, m.at(s.End), m.saidOf(s))
		m.release(t)
		return
	}
	if s.Unstarted {
		l := m.laneOf(s)
		l.before = l.before[1:]
		m.sink.spanEnd(l, m.timeIn(l, s.End), m.saidOf(s))
		return
	}
	m.close(s)
}

// close ends a span that was seen to begin. What lies in it was left open if it is still there; what was left open and has something in it that
// goes on waits for that.
func (m *markWalk) close(s *reel.Span) {
	o := s.Tag.(*markOpen)
	l := o.lane
	if o.told {
		return
	}
	if o.over = true; s.Unfinished && l.open[len(l.open)-1] != o {
		return
	}
	for n := len(l.open); n > 0 && (!o.told || l.open[n-1].over); n-- {
		in := l.open[n-1]
		l.open = l.open[:n-1]
		in.told = true
		x := m.saidOf(in.span)
		if in != o {
			x.end, x.values = "unfinished", values{}
		}
		m.sink.spanEnd(l, m.timeIn(l, s.End), x)
	}
}

// begun says whether a span that was not seen to begin began with the recording.
func (m *markWalk) begun(s *reel.Span) bool {
	if !s.Async {
		l := m.laneOf(s)
		return len(l.open) == 0 && len(l.before) > 0 && l.before[0].end == s.End && l.before[0].marker == s.Marker
	}
	x := m.saidOf(s)
	x.values, x.unstarted = values{}, true
	t := m.trackBefore(trackKey{m.processOf(s.Thread), x.category, x.title})
	if t == nil {
		return false
	}
	s.Tag = t
	m.sink.asyncBegin(t, m.at(s.Begin), x)
	return true
}

// saidOf is what the end of a span says. What its beginning has said already has the name "end_…".
func (m *markWalk) saidOf(s *reel.Span) *said {
	m.said = said{title: cut(s.Title, maxName)}
	marker, _ := m.f.Marker(s.Marker)
	m.said.category = categoryOf(marker)
	switch {
	case marker.Title == s.Title && s.Title != "":
		m.said.marker = s.Marker
	case s.Title == "":
		m.said.title = cut(marker.Provider+":"+marker.Name, maxName)
		m.said.marker = s.Marker
	}
	if s.Unfinished {
		m.said.end = "unfinished"
	} else if m.mark != nil {
		m.said.values = values{m.marker.Arguments, m.mark.Values}
		if !s.Unstarted {
			m.said.values = m.rename(s.Marker, marker, m.mark, m.marker)
		}
	}
	return &m.said
}

// renaming is what is said of a span's end.
type renaming struct {
	arguments []reel.Argument
	from      []int // their places among the values
}

// rename returns what the end of a span says of the values of its mark: readers keep one argument of each name. So what the beginning has said
// as well has another name, but title and ID are not said again.
func (m *markWalk) rename(begin uint32, at *reel.Marker, x *reel.Mark, end *reel.Marker) values {
	if len(at.Arguments) == 0 || len(end.Arguments) == 0 {
		return values{end.Arguments, x.Values}
	}
	key := [2]uint32{begin, x.Marker}
	r, ok := m.renamed[key]
	if !ok {
		for i, a := range end.Arguments {
			said := slices.ContainsFunc(at.Arguments, func(b reel.Argument) bool { return b.Name == a.Name })
			if said && (i == end.IDArg || i == end.TitleArg) {
				continue
			}
			if said {
				a.Name = "end_" + a.Name
			}
			r.arguments, r.from = append(r.arguments, a), append(r.from, i)
		}
		if len(m.renamed) >= maxRenamed {
			clear(m.renamed)
		}
		m.renamed[key] = r
	}
	m.kept = m.kept[:0]
	for _, i := range r.from {
		if i < len(x.Values) {
			m.kept = append(m.kept, x.Values[i])
		}
	}
	return values{r.arguments, m.kept}
}

// count tells a counter's value; it returns false if that isn't known.
func (m *markWalk) count() bool {
	float, ok := m.marker.ValueOf(m.mark)
	if !ok {
		return false
	}
	v := number{float: float, int: int64(m.mark.Values[m.marker.ValueArg].Bits)}
	switch m.marker.Arguments[m.marker.ValueArg].Kind {
	case reel.ArgumentFloat, reel.ArgumentFloat32:
	case reel.ArgumentUint, reel.ArgumentPointer:
		v.whole = v.int >= 0 // readers would take larger ones for negative ones
	default:
		v.whole = true
	}
	x := m.say("")
	if by, told := m.counters[x.title]; told && by != m.marker.Provider {
		x.title += " (" + cut(m.marker.Provider, maxName) + ")"
		x.marker = 0
	}
	m.sink.counter(m.processOf(m.thread), m.at(m.mark.Time), x, v)
	return true
}

// providersOf says whose counters' titles are, as viewers know counters by their names: "" if they are several providers', or the exporter's.
func providersOf(markers []reel.Marker) map[string]string {
	of := map[string]string{"calls per second": "", "open calls": "", "events dropped": ""}
	for i := range markers {
		m := &markers[i]
		if m.Kind != reel.MarkCounter || m.Title == "" {
			continue
		}
		title := cut(m.Title, maxName)
		if by, told := of[title]; !told {
			of[title] = m.Provider
		} else if by != m.Provider {
			of[title] = ""
		}
	}
	return of
}
