package viewer

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/callreel/callreel/reel/markindex"
)

// spanSumJSON, counterSumJSON and instantSumJSON are rows of api/marktable.
type (
	spanSumJSON struct {
		Title    uint32 `json:"title"`
		Name     string `json:"name"`
		Category string `json:"category,omitempty"`
		Async    bool   `json:"async,omitempty"`
		Count    uint64 `json:"count"`
		TotalNS  uint64 `json:"total_ns"`
		P50NS    uint64 `json:"p50_ns"`
		P99NS    uint64 `json:"p99_ns"`
		MaxNS    uint64 `json:"max_ns"`
	}
	counterSumJSON struct {
		Track    uint32  `json:"track"`
		Title    uint32  `json:"title"`
		Name     string  `json:"name"`
		Category string  `json:"category,omitempty"`
		Values   uint64  `json:"values"`
		Min      float64 `json:"min"`
		Mean     float64 `json:"mean"`
		Max      float64 `json:"max"`
		First    float64 `json:"first"`
		Last     float64 `json:"last"`
	}
	instantSumJSON struct {
		Title    uint32 `json:"title"`
		Name     string `json:"name"`
		Category string `json:"category,omitempty"`
		Count    uint64 `json:"count"`
	}
)

// markTable is api/marktable: what spans, counters and instants come to in a range. Of each the first maxListed are told, and how many there are.
func (r *recording) markTable(w http.ResponseWriter, q *query) error {
	from, to := q.interval()
	if q.err != nil {
		return q.err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	answer := struct {
		Spans    []spanSumJSON    `json:"spans"`
		Counters []counterSumJSON `json:"counters"`
		Instants []instantSumJSON `json:"instants"`
		// Titles are how many spans' and instants' there are.
		Titles [2]int `json:"titles"`
	}{[]spanSumJSON{}, []counterSumJSON{}, []instantSumJSON{}, [2]int{}}
	m := r.marks.Load()
	if m == nil {
		return writeJSON(w, answer)
	}
	t, err := m.x.Sum(q.ctx, tl.Tick(min(from, tl.Duration())), tl.Tick(min(to, tl.Duration()+1)))
	if err != nil {
		return err
	}
	ns := tl.File().Clock().Nanoseconds
	answer.Titles = [2]int{len(t.Spans), len(t.Instants)}
	for _, s := range t.Spans[:min(len(t.Spans), maxListed)] {
		title, _ := m.x.Title(s.Title)
		answer.Spans = append(answer.Spans, spanSumJSON{s.Title, title.Name, title.Category, s.Async, s.Count, ns(s.Total), ns(s.P50), ns(s.P99), ns(s.Max)})
	}
	for _, s := range t.Counters {
		id := m.x.Tracks()[s.Track].Title
		title, _ := m.x.Title(id)
		answer.Counters = append(answer.Counters, counterSumJSON{uint32(firstTrack + s.Track), id, title.Name, title.Category, s.Values, s.Min, s.Mean, s.Max, s.First, s.Last})
	}
	for _, s := range t.Instants[:min(len(t.Instants), maxListed)] {
		title, _ := m.x.Title(s.Title)
		answer.Instants = append(answer.Instants, instantSumJSON{s.Title, title.Name, title.Category, s.Count})
	}
	return writeJSON(w, answer)
}

// findMarks is api/findmarks: the titles that a text finds, by how often they occur.
func (r *recording) findMarks(w http.ResponseWriter, q *query) error {
	text, limit := q.text("q"), q.integer("limit", defaultFound, 0, mostFound)
	if q.err != nil {
		return q.err
	}
	answer := struct {
		Titles  []titleJSON `json:"titles"`
		Matches int         `json:"matches"`
		Count   uint64      `json:"count"`
		Pending bool        `json:"pending,omitempty"`
	}{Titles: []titleJSON{}}
	m := r.marks.Load()
	if m == nil {
		answer.Pending = r.File().HasMarks()
		return writeJSON(w, answer)
	}
	found := m.found(text)
	titles := m.x.Titles()
	var ids []uint32
	for id := 1; id < len(titles); id++ {
		if n := countOf(&titles[id]); n > 0 && found(uint32(id)) {
			ids = append(ids, uint32(id))
			answer.Count += n
		}
	}
	answer.Matches = len(ids)
	slices.SortStableFunc(ids, func(a, b uint32) int { return cmp.Compare(countOf(&titles[b]), countOf(&titles[a])) })
	for _, id := range ids[:min(limit, len(ids))] {
		t := &titles[id]
		answer.Titles = append(answer.Titles, titleJSON{id, t.Name, t.Category, countOf(t)})
	}
	return writeJSON(w, answer)
}

// found says which titles a text finds.
func (m *marked) found(text string) func(id uint32) bool {
	match := newMatcher(text)
	return func(id uint32) bool {
		t, ok := m.x.Title(id)
		return ok && match(strings.ToLower(t.Name))
	}
}

// nextMark is api/nextmark: the next of the titles that a text finds, or of one title, after a place in order of time, or with dir=-1 before
// it; null if there is none. The place is a mark's (kind, lane, row, at), or with kind=after or before any other at a time, before or after all marks of that
// time.
func (r *recording) nextMark(w http.ResponseWriter, q *query) error {
	kind := q.choice("kind", "before", "after", "span", "async", "instant", "value")
	lane, row := uint32(q.integer("lane", 0, 0, math.MaxUint32)), q.integer("row", 0, 0, markindex.MaxRows)
	at, backwards := q.time("at", 0), q.integer("dir", 1, -1, 1) < 0
	text, title := q.text("q"), uint32(q.integer("title", 0, 0, math.MaxUint32))
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
	from := markindex.Item{Start: tl.Tick(at), Track: -1}
	switch kind {
	case "before":
	case "after":
		from.Start, from.Kind = tl.Tick(at+1)-1, math.MaxUint8
	default:
		// A nanosecond may have several ticks: the mark itself says which one it is at.
		if it, ok := m.itemAt(tl, kind, lane, row, at, 1); ok {
			from = it
		}
	}
	wanted := m.found(text)
	if title != 0 {
		wanted = func(id uint32) bool { return id == title }
	}
	it, ok, err := m.x.Next(q.ctx, wanted, &from, backwards)
	if err != nil {
		return err
	}
	if !ok {
		return writeJSON(w, nil)
	}
	return writeJSON(w, m.briefly(tl, &it))
}

var ways = map[string]markindex.Way{"before": markindex.Before, "after": markindex.After, "around": markindex.Around, "within": markindex.Within, "longest": markindex.Longest}

// nearMark is api/nearmark: what is next to a mark (kind, lane, row, at): before or after it in its row, the span around it or the first within
// it, or the longest of its title; null if there is none.
func (r *recording) nearMark(w http.ResponseWriter, q *query) error {
	kind, way := q.choice("kind", "span", "async", "instant", "value"), q.choice("to", "before", "after", "around", "within", "longest")
	lane, row := uint32(q.integer("lane", 0, 0, math.MaxUint32)), q.integer("row", 0, 0, markindex.MaxRows)
	at := q.time("at", 0)
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
	from, ok := m.itemAt(tl, kind, lane, row, at, 1)
	if !ok {
		return writeJSON(w, nil)
	}
	to, ok, err := m.x.Near(q.ctx, &from, ways[way])
	if err != nil {
		return err
	}
	if !ok {
		return writeJSON(w, nil)
	}
	return writeJSON(w, m.briefly(tl, &to))
}
