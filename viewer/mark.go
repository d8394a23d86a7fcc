package viewer

import (
	"math"
	"net/http"
	"strconv"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/markindex"
	"github.com/callreel/callreel/reel/timeline"
)

// markJSON is a span, an asynchronous one, an instant, or a counter's value.
type markJSON struct {
	Kind       string   `json:"kind"` // span, async, instant, value
	Lane       uint32   `json:"lane"` // or track
	Row        int      `json:"row"`
	Title      uint32   `json:"title"`
	Name       string   `json:"name"`
	Category   string   `json:"category,omitempty"`
	Provider   string   `json:"provider,omitempty"`
	Marker     string   `json:"marker,omitempty"`
	StartNS    uint64   `json:"start_ns"`
	DurationNS uint64   `json:"duration_ns"`
	Unstarted  bool     `json:"unstarted,omitempty"`
	Unfinished bool     `json:"unfinished,omitempty"`
	Count      uint32   `json:"count,omitempty"` // several that there was no room to tell apart
	ID         *string  `json:"id,omitempty"`
	Value      *float64 `json:"value,omitempty"`
	// Arguments are those of its beginning, Results those of its end.
	Arguments []argumentJSON `json:"arguments,omitempty"`
	Results   []argumentJSON `json:"results,omitempty"`
	Steps     []stepJSON     `json:"steps,omitempty"`
	Among     *amongJSON     `json:"among,omitempty"`
	Flows     []flowJSON     `json:"flows,omitempty"`
}

type stepJSON struct {
	AtNS      uint64         `json:"at_ns"`
	Name      string         `json:"name"`
	Arguments []argumentJSON `json:"arguments,omitempty"`
}

// amongJSON is where a span is among those of its title.
type amongJSON struct {
	Count    uint64       `json:"count"`
	Complete uint64       `json:"complete"`
	TotalNS  uint64       `json:"total_ns"`
	P50NS    uint64       `json:"p50_ns"`
	P99NS    uint64       `json:"p99_ns"`
	MinNS    uint64       `json:"min_ns"`
	MaxNS    uint64       `json:"max_ns"`
	Shorter  uint64       `json:"shorter"` // complete ones that took less time
	Buckets  []bucketJSON `json:"buckets"`
}

// maxFlows is how many flows of a span are listed, maxMarkValues how many steps with their values.
const (
	maxFlows      = 300
	maxMarkValues = 64
)

// markAt is api/mark: the span, instant or counter's value of a lane or track at a time, or null. near is how far it may be, in nanoseconds;
// with brief=1 only what it says itself.
func (r *recording) markAt(w http.ResponseWriter, q *query) error {
	kind := q.choice("kind", "span", "instant", "value")
	lane, row := uint32(q.integer("lane", 0, 0, math.MaxUint32)), q.integer("row", 0, 0, markindex.MaxRows)
	at, near := q.time("at", 0), q.time("near", 0)
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	m := r.marks.Load()
	if m == nil {
		return writeJSON(w, nil)
	}
	it, ok := m.itemAt(tl, kind, lane, row, at, near)
	if !ok {
		return writeJSON(w, nil)
	}
	return r.mark(w, q, tl, m, &it)
}

// itemAt is what a lane or a track has at a time, or no further from it than near, both in nanoseconds.
func (m *marked) itemAt(tl *timeline.Timeline, kind string, lane uint32, row int, at, near uint64) (it markindex.Item, ok bool) {
	tick := tl.Tick(at)
	away := tl.Tick(at+near) - tick
	l, track := m.lane(lane), m.track(lane)
	switch {
	case l != nil && kind == "span":
		return l.SpanAt(row, tick, away)
	case l != nil && kind == "instant":
		return l.InstantAt(tick, away)
	case track >= 0 && (kind == "span" || kind == "async"):
		return m.x.SpanAt(track, row, tick, away)
	case track >= 0 && kind == "value":
		return m.x.ValueAt(track, tl.Tick(at+1)-1)
	}
	return it, false
}

var itemKinds = map[markindex.Kind]string{markindex.SpanItem: "span", markindex.AsyncItem: "async", markindex.InstantItem: "instant", markindex.ValueItem: "value"}

// briefly describes an item without reading the reel.
func (m *marked) briefly(tl *timeline.Timeline, it *markindex.Item) markJSON {
	id, _ := m.idOf(it)
	title, _ := m.x.Title(it.Title)
	start := tl.NS(it.Start)
	j := markJSON{
		Kind: itemKinds[it.Kind], Lane: id, Row: it.Row, Title: it.Title, Name: title.Name, Category: title.Category, StartNS: start, DurationNS: tl.NS(max(it.Start, it.End)) - start,
		Unstarted: it.Flags&markindex.Unstarted != 0, Unfinished: it.Flags&markindex.Unfinished != 0,
	}
	if it.Count > 1 {
		j.Count = it.Count
	}
	if it.Kind == markindex.ValueItem {
		j.Value = &it.Value
	}
	if it.Kind == markindex.AsyncItem && it.Count == 1 {
		text := formatID(it.ID)
		j.ID = &text
	}
	return j
}

// mark answers with all that is known of an item.
func (r *recording) mark(w http.ResponseWriter, q *query, tl *timeline.Timeline, m *marked, it *markindex.Item) error {
	j := m.briefly(tl, it)
	f := tl.File()
	if it.Count > 1 || it.Flags&markindex.Several != 0 { // nobody knows which one is meant
		return writeJSON(w, j)
	}
	if x, ok := m.x.Beginning(it); ok {
		j.Arguments = markValues(f, &x)
		if k, ok := f.Marker(x.Marker); ok {
			j.Provider, j.Marker = cut(k.Provider, maxLaneName), cut(k.Name, maxLaneName)
		}
	}
	if x, ok := m.x.Ending(it); ok {
		j.Results = markValues(f, &x)
	}
	steps := m.x.Steps(it)
	for i := range steps[:min(len(steps), 4*maxMarkValues)] {
		s := stepJSON{AtNS: tl.NS(steps[i].Time)}
		if k, ok := f.Marker(steps[i].Marker); ok {
			s.Name = cut(k.Title, maxName)
		}
		if i < maxMarkValues {
			if x, ok := m.x.StepMark(&steps[i]); ok {
				s.Arguments = markValues(f, &x)
				if k, ok := f.Marker(x.Marker); ok {
					s.Name = cut(k.TitleOf(&x.Mark), maxName)
				}
			}
		}
		j.Steps = append(j.Steps, s)
	}
	if q.choice("brief", "0", "1") == "1" {
		return writeJSON(w, j)
	}
	if it.Kind == markindex.SpanItem || it.Kind == markindex.AsyncItem {
		long := it.End - min(it.Start, it.End)
		p, err := m.x.Among(q.ctx, it.Title, it.Kind == markindex.AsyncItem, long)
		if err != nil {
			return err
		}
		j.Among = m.among(tl, &p)
	}
	if it.Kind == markindex.SpanItem {
		list, _ := m.x.Flows(it.Start, max(it.End, it.Start+1), &it.Lane, maxFlows)
		j.Flows = m.flows(tl, list)
	}
	return writeJSON(w, j)
}

func (m *marked) among(tl *timeline.Timeline, p *markindex.Place) *amongJSON {
	f := tl.File()
	ns := f.Clock().Nanoseconds
	j := &amongJSON{Count: p.Count, Complete: p.Complete, TotalNS: ns(p.Total), P50NS: ns(p.P50), P99NS: ns(p.P99), MinNS: ns(p.Min), MaxNS: ns(p.Max), Shorter: p.Shorter, Buckets: []bucketJSON{}}
	for i, n := range p.Buckets {
		if n == 0 && len(j.Buckets) == 0 {
			continue
		}
		b := bucketJSON{ToNS: ns(uint64(1) << i), Calls: n}
		if i > 0 {
			b.FromNS = ns(uint64(1) << (i - 1))
		}
		j.Buckets = append(j.Buckets, b)
	}
	for n := len(j.Buckets); n > 0 && j.Buckets[n-1].Calls == 0; n-- {
		j.Buckets = j.Buckets[:n-1]
	}
	return j
}

// markValues are the values of a mark.
func markValues(f *reel.File, x *markindex.Told) (list []argumentJSON) {
	m, ok := f.Marker(x.Marker)
	if !ok {
		return nil
	}
	for i := range min(len(m.Arguments), len(x.Values)) {
		a := &m.Arguments[i]
		list = append(list, argumentJSON{cut(a.Name, maxLaneName), cut(a.Type, maxLaneName), cut(a.Text(x.Values[i]), maxName)})
	}
	return list
}

// flowJSON is an arrow. Lanes are null of goroutines that aren't shown.
type flowJSON struct {
	FromLane *uint32 `json:"from_lane"`
	ToLane   *uint32 `json:"to_lane"`
	FromNS   uint64  `json:"from_ns"`
	ToNS     uint64  `json:"to_ns"`
	Title    uint32  `json:"title"`
	ID       string  `json:"id"`
}

func (m *marked) flows(tl *timeline.Timeline, list []markindex.Flow) []flowJSON {
	out := make([]flowJSON, 0, len(list))
	lane := func(e *markindex.End) *uint32 {
		if id, ok := m.ids[e.LaneKey]; ok {
			return &id
		}
		return nil
	}
	for i := range list {
		x := &list[i]
		out = append(out, flowJSON{lane(&x.From), lane(&x.To), tl.NS(x.From.Time), tl.NS(x.To.Time), x.Title, formatID(x.ID)})
	}
	return out
}

// flowsOf is api/flows: those that leave or arrive in a range, of a lane if one is given. Where there are more than limit, there are none, but it
// is said.
func (r *recording) flowsOf(w http.ResponseWriter, q *query) error {
	from, to := q.interval()
	limit := q.integer("limit", maxFlows, 1, 10*maxFlows)
	var lane *markindex.LaneKey
	m := r.marks.Load()
	if q.has("lane") && m != nil {
		id := uint32(q.integer("lane", 0, 0, math.MaxUint32))
		if l := m.lane(id); l != nil {
			lane = &l.LaneKey
		} else {
			lane = m.key(id)
		}
	}
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	answer := struct {
		Flows []flowJSON `json:"flows"`
		More  bool       `json:"more"`
	}{Flows: []flowJSON{}}
	if m != nil {
		list, more := m.x.Flows(tl.Tick(min(from, tl.Duration())), tl.Tick(min(to, tl.Duration()+1)), lane, limit)
		if answer.More = more; !more || lane != nil {
			answer.Flows = m.flows(tl, list)
		}
	}
	return writeJSON(w, answer)
}

// key is the thread or goroutine of a lane that has said nothing else.
func (m *marked) key(id uint32) *markindex.LaneKey {
	for k, x := range m.ids {
		if x == id {
			return &k
		}
	}
	return &markindex.LaneKey{}
}

func formatID(id uint64) string {
	if id > 1<<32 { // an address, as a rule
		return "0x" + strconv.FormatUint(id, 16)
	}
	return strconv.FormatUint(id, 10)
}
