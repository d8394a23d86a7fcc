package viewer

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/markindex"
	"github.com/callreel/callreel/reel/timeline"
)

// marked is what the program said, as the page has it: by lanes of the timeline, and by tracks. It doesn't change.
type marked struct {
	x      *markindex.Index
	lanes  []*markindex.Lane // by the timeline's lanes; nil: it said nothing
	ids    map[markindex.LaneKey]uint32
	names  map[uint64]string // of goroutines, by their IDs
	alone  []*markindex.Lane // goroutines that have no lane, behind the index's tracks
	hidden int               // further ones
	pauses []reel.Pause
	many   bool // there are several processes
}

const (
	// firstTrack is the first track's place among lanes.
	firstTrack = 1 << 31
	// maxAlone is how many goroutines that have made no recorded call are shown for what they said.
	maxAlone = 256
)

// readMarks reads what the program said, for views from then on. What was there before stays if that fails.
func (r *recording) readMarks(ctx context.Context) {
	f := r.timeline.File()
	if before := r.marks.Load(); before != nil && before.x.Marks == f.MarkCount() {
		if len(before.lanes) != len(r.timeline.Lanes()) || !slices.Equal(before.pauses, f.Pauses()) {
			r.marks.Store(newMarked(before.x, f, r.timeline.Lanes()))
		}
		return
	}
	var x *markindex.Index
	err := catchFaults(func() (err error) {
		x, err = markindex.Build(ctx, f, func(done, total uint64) {
			r.marking.Store(uint64(float64(done) / float64(max(total, 1)) * progressWhole))
		})
		return err
	})
	if err != nil && r.marks.Load() != nil {
		return
	}
	if err != nil {
		x = markindex.None(f)
	}
	r.marks.Store(newMarked(x, f, r.timeline.Lanes()))
}

func newMarked(x *markindex.Index, f *reel.File, lanes []timeline.Lane) *marked {
	m := &marked{x: x, lanes: make([]*markindex.Lane, len(lanes)), ids: map[markindex.LaneKey]uint32{}, pauses: f.Pauses(), names: f.GoroutineNames()}
	for i := range lanes {
		m.many = m.many || lanes[i].Process != lanes[0].Process
		k := markindex.LaneKey{Goroutine: lanes[i].Goroutine}
		if k.Goroutine == 0 {
			k.Thread = lanes[i].Thread
		}
		m.ids[k] = uint32(i)
		m.lanes[i] = x.Lane(k)
	}
	for _, l := range x.Lanes() {
		if _, ok := m.ids[l.LaneKey]; ok {
			continue
		}
		if len(m.alone) >= maxAlone {
			m.hidden++
			continue
		}
		m.ids[l.LaneKey] = uint32(firstTrack + len(x.Tracks()) + len(m.alone))
		m.alone = append(m.alone, l)
	}
	return m
}

// lane is what was said on a lane, or by a goroutine without one; nil if that is nothing.
func (m *marked) lane(id uint32) *markindex.Lane {
	if m == nil {
		return nil
	}
	if uint64(id) < uint64(len(m.lanes)) {
		return m.lanes[id]
	}
	if i := int64(id) - firstTrack - int64(len(m.x.Tracks())); i >= 0 && i < int64(len(m.alone)) {
		return m.alone[i]
	}
	return nil
}

// track is the index of a track of the index, -1 if the lane is none.
func (m *marked) track(id uint32) int {
	if m == nil || id < firstTrack || int64(id)-firstTrack >= int64(len(m.x.Tracks())) {
		return -1
	}
	return int(id - firstTrack)
}

// idOf is the lane or track of an item; ok is false of a goroutine that isn't shown.
func (m *marked) idOf(it *markindex.Item) (uint32, bool) {
	if it.Track >= 0 {
		return uint32(firstTrack + it.Track), true
	}
	id, ok := m.ids[it.Lane]
	return id, ok
}

// trackJSON is a track as api/marks has it.
type trackJSON struct {
	ID       uint32   `json:"id"`
	Kind     string   `json:"kind"` // async, counter, or spans: of a goroutine that has made no recorded call
	Title    uint32   `json:"title"`
	Name     string   `json:"name"`
	Category string   `json:"category,omitempty"`
	PID      int      `json:"pid,omitempty"` // of a counter, where there are several processes
	Rows     int      `json:"rows"`
	Count    uint64   `json:"count"`
	Instants int      `json:"instants,omitempty"`
	More     uint64   `json:"more,omitempty"` // spans that are in the last row together
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Last     *float64 `json:"last,omitempty"`
}

type pauseJSON struct {
	FromNS uint64 `json:"from_ns"`
	ToNS   uint64 `json:"to_ns"`
	By     string `json:"by,omitempty"`
	PID    int    `json:"pid,omitempty"`  // 0: all
	Open   bool   `json:"open,omitempty"` // its end isn't in the reel: it goes on, if the recording does
}

// marksJSON is api/marks.
type marksJSON struct {
	State    string  `json:"state"` // none, pending or ready
	Progress float64 `json:"progress"`
	// Lanes are those that have any: lane, rows of spans, spans, instants.
	Lanes  [][4]uint64 `json:"lanes"`
	Tracks []trackJSON `json:"tracks"`
	Pauses []pauseJSON `json:"pauses"`
	Marks  uint64      `json:"marks"`
	Flows  int         `json:"flows"`
	// Left are those that aren't shown because there are too many.
	Left uint64 `json:"left,omitempty"`
}

// marksOf is api/marks: which lanes have spans and instants, which tracks there are beside them, and when the recording was paused.
func (r *recording) marksOf(w http.ResponseWriter, q *query) error {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	m := r.marks.Load()
	answer := marksJSON{State: "pending", Progress: float64(r.marking.Load()) / progressWhole, Lanes: [][4]uint64{}, Tracks: []trackJSON{}, Pauses: []pauseJSON{}}
	f := tl.File()
	if m == nil {
		if !f.HasMarks() && len(f.Pauses()) == 0 {
			answer.State, answer.Progress = "none", 1
		}
		return writeJSON(w, answer)
	}
	answer.State, answer.Progress, answer.Marks, answer.Flows = "ready", 1, m.x.Marks, m.x.FlowCount()
	answer.Left = m.x.Left + m.x.Lost + uint64(m.hidden)
	if m.x.Marks == 0 && len(m.pauses) == 0 {
		answer.State = "none"
	}
	for i, l := range m.lanes {
		if l != nil {
			answer.Lanes = append(answer.Lanes, [4]uint64{uint64(i), uint64(l.Rows()), l.Spans, uint64(l.Instants.Len())})
		}
	}
	for i, t := range m.x.Tracks() {
		j := trackJSON{ID: uint32(firstTrack + i), Kind: "async", Title: t.Title, PID: t.Process, Rows: t.Rows(), Count: t.Count, More: t.More}
		title, ok := m.x.Title(t.Title)
		if j.Name, j.Category = title.Name, title.Category; !ok {
			j.Name = reel.OtherTitles
		}
		if !m.many {
			j.PID = 0
		}
		if t.Counter {
			j.Kind, j.Min, j.Max, j.Last = "counter", &t.Min, &t.Max, &t.Last
		}
		answer.Tracks = append(answer.Tracks, j)
	}
	for i, l := range m.alone {
		j := trackJSON{ID: uint32(firstTrack + len(m.x.Tracks()) + i), Kind: "spans", Name: "goroutine " + strconv.FormatUint(l.Goroutine, 10), Rows: l.Rows(), Count: l.Spans, Instants: l.Instants.Len()}
		if l.Goroutine == 0 {
			j.Name = "thread"
		} else if name := m.names[l.Goroutine]; name != "" {
			j.Name += " " + name
		}
		answer.Tracks = append(answer.Tracks, j)
	}
	answer.Pauses = pausesOf(tl, m.pauses)
	return writeJSON(w, answer)
}

// pausesOf are pauses in nanoseconds; more than a page can draw are merged.
func pausesOf(tl *timeline.Timeline, pauses []reel.Pause) []pauseJSON {
	list := []pauseJSON{}
	least := tl.Duration() / maxListed
	for _, p := range pauses {
		j := pauseJSON{FromNS: tl.NS(p.From), ToNS: tl.Duration(), By: cut(p.By, maxLaneName), PID: p.Process, Open: p.To == 0}
		if p.To != 0 {
			j.ToNS = min(tl.NS(p.To), math.MaxUint64)
		}
		if n := len(list); n > maxListed && list[n-1].PID == p.Process && j.FromNS < list[n-1].ToNS+least {
			list[n-1].ToNS, list[n-1].Open = max(list[n-1].ToNS, j.ToNS), list[n-1].Open || j.Open
			continue
		}
		if len(list) > 4*maxListed {
			break
		}
		list = append(list, j)
	}
	return list
}

// titleJSON is a title as api/titles and api/findmarks have it; the page takes it for a function's name.
type titleJSON struct {
	ID     uint32 `json:"id"`
	Name   string `json:"name"`
	Module string `json:"module"` // category
	Count  uint64 `json:"count"`
}

// titlesOf is api/titles: what the titles with these IDs are.
func (r *recording) titlesOf(w http.ResponseWriter, q *query) error {
	ids := q.list("ids", maxNames)
	if q.err != nil {
		return q.err
	}
	answer := make(map[string]titleJSON, len(ids))
	if m := r.marks.Load(); m != nil {
		for _, id := range ids {
			if t, ok := m.x.Title(id); ok {
				answer[strconv.FormatUint(uint64(id), 10)] = titleJSON{id, t.Name, t.Category, countOf(&t)}
			}
		}
	}
	return writeJSON(w, answer)
}

func countOf(t *markindex.Title) uint64 { return t.Spans + t.Async + t.Counts + t.Instants }
