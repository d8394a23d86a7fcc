package markindex

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/callreel/callreel/reel"
)

// Build reads the marks of a reel. progress, if set, is called now and then with how many have been read. In a reel without a clock
// (reel.ClockNone) they are nowhere.
func Build(ctx context.Context, f *reel.File, progress func(done, total uint64)) (*Index, error) {
	b := &builder{
		x:   None(f),
		ids: map[titleKey]uint32{}, fixed: make([]uint32, len(f.Markers())+1), processes: map[uint32]int{}, goroutines: f.Header().Goroutines,
	}
	if !f.HasMarks() || f.Header().Clock.Mode == reel.ClockNone {
		return b.x, nil
	}
	for i := range f.Threads() {
		t := &f.Threads()[i]
		b.processes[t.Key] = t.Process
	}
	p := reel.NewSpanPairer(f)
	p.OnSpan, p.OnFlow = b.span, b.flow
	const step = 1 << 16 // marks between looks at the context
	for thread, m := range f.AllMarks {
		if b.x.Marks%step == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if progress != nil {
				progress(b.x.Marks, f.MarkCount())
			}
		}
		b.x.Marks++
		b.mark(thread, m)
		p.Push(thread, m)
	}
	p.Finish()
	b.x.Lost = p.Lost
	b.finish()
	return b.x, ctx.Err()
}

// maxTitle is how many bytes of a title are kept, and of a category.
const maxTitle = 512

// short cuts a title at a character's end.
func short(s string) string {
	if len(s) <= maxTitle {
		return s
	}
	n := maxTitle
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n])
}

type titleKey struct {
	name, category string
	process        int
}

// builder makes an index.
type builder struct {
	x          *Index
	ids        map[titleKey]uint32
	fixed      []uint32 // by marker: the ID of a title that its marks all have
	processes  map[uint32]int
	goroutines bool
	items      uint64
	async      []asyncTrack // of tracks
	others     int          // track of asynchronous spans without one of their own, + 1
	graphs     int
	spans      int // tracks of them
}

// room says whether one more may be kept.
func (b *builder) room() bool {
	if b.items >= maxItems {
		b.x.Left++
		return false
	}
	b.items++
	return true
}

// title is the ID of what a marker's mark is called.
func (b *builder) title(marker uint32, m *reel.Marker, name func() string, process int) uint32 {
	same := m.Title != "" || m.TitleArg < 0
	if same && process == 0 && b.fixed[marker] != 0 {
		return b.fixed[marker]
	}
	k := titleKey{short(name()), short(m.Of()), process}
	id, known := b.ids[k]
	if !known {
		if len(b.x.titles) > maxTitles {
			k = titleKey{name: reel.OtherTitles}
			id, known = b.ids[k]
		}
		if !known {
			id = uint32(len(b.x.titles))
			b.ids[k] = id
			b.x.titles = append(b.x.titles, Title{Name: k.name, Category: k.category, Process: k.process, CounterTrack: -1, AsyncTrack: -1})
		}
	}
	if same && process == 0 {
		b.fixed[marker] = id
	}
	return id
}

// lane is that of a thread or a goroutine, nil if there are too many.
func (b *builder) lane(thread uint32, goroutine uint64) *Lane {
	k := LaneKey{Thread: thread}
	if goroutine != 0 {
		k = LaneKey{Goroutine: goroutine}
	}
	l := b.x.lanes[k]
	if l == nil {
		if len(b.x.order) >= maxLanes {
			b.x.Left++
			return nil
		}
		l = &Lane{LaneKey: k}
		b.x.lanes[k] = l
		b.x.order = append(b.x.order, l)
	}
	return l
}

// mark takes marks that are something by themselves.
func (b *builder) mark(thread uint32, x *reel.Mark) {
	m, ok := b.x.f.Marker(x.Marker)
	if !ok {
		return
	}
	switch m.Kind {
	case reel.MarkInstant:
		l := b.lane(thread, x.Goroutine)
		if l == nil || !b.room() {
			return
		}
		id := b.title(x.Marker, m, func() string { return m.TitleOf(x) }, 0)
		b.x.titles[id].Instants++
		l.Instants.at, l.Instants.what = append(l.Instants.at, x.Time), append(l.Instants.what, id)
		if l.Goroutine != 0 {
			l.Instants.id = append(l.Instants.id, thread)
		}
	case reel.MarkCounter:
		if v, ok := m.ValueOf(x); ok {
			b.count(thread, x, m, v)
		}
	}
}

func (b *builder) count(thread uint32, x *reel.Mark, m *reel.Marker, v float64) {
	id := b.title(x.Marker, m, func() string { return m.TitleOf(x) }, b.processes[thread])
	title := &b.x.titles[id]
	if title.CounterTrack < 0 && b.graphs < maxTracks && title.Name != reel.OtherTitles {
		b.graphs++
		title.CounterTrack = b.track(Track{Title: id, Counter: true, Process: b.processes[thread], Min: v, Max: v})
	}
	if title.CounterTrack < 0 {
		b.x.Left++
		return
	}
	if !b.room() {
		return
	}
	title.Counts++
	t := b.x.tracks[title.CounterTrack]
	t.Count++
	t.Min, t.Max, t.Last = min(t.Min, v), max(t.Max, v), v
	t.graph.at, t.graph.value = append(t.graph.at, x.Time), append(t.graph.value, v)
}

func (b *builder) track(t Track) int {
	b.x.tracks = append(b.x.tracks, &t)
	b.async = append(b.async, asyncTrack{})
	return len(b.x.tracks) - 1
}

func flagsOf(s *reel.Span) (f Flags) {
	if s.Unstarted {
		f |= Unstarted
	}
	if s.Unfinished {
		f |= Unfinished
	}
	return f
}

func (b *builder) span(s *reel.Span) {
	m, ok := b.x.f.Marker(s.Marker)
	if !ok {
		return
	}
	if s.Async {
		if b.room() {
			b.asyncSpan(s, m)
		}
		return
	}
	l := b.lane(s.Thread, s.Goroutine)
	if l == nil || !b.room() {
		return
	}
	id := b.title(s.Marker, m, func() string { return s.Title }, 0)
	b.x.titles[id].Spans++
	l.Spans++
	depth := min(s.Depth, MaxRows-1)
	for len(l.rows) <= depth {
		l.rows = append(l.rows, row{})
	}
	r := &l.rows[depth]
	start := s.Begin
	if s.Depth < MaxRows-1 {
		// Of one whose beginning isn't there nobody knows more than that it was not before what ended in its place.
		start = min(max(start, r.last()), s.End)
		if start < r.last() {
			b.x.Left++
			return
		}
	}
	r.add(start, s.End, id, flagsOf(s))
	if b.goroutines {
		r.thread = append(r.thread, s.Thread)
	}
}

func (b *builder) flow(w *reel.Flow) {
	m, ok := b.x.f.Marker(w.FromMarker)
	if !ok || !b.room() {
		return
	}
	id := b.title(w.FromMarker, m, func() string { return w.Title }, 0)
	b.x.titles[id].Flows++
	b.x.flows.list = append(b.x.flows.list, Flow{endOf(w.From, w.FromThread, w.FromGoroutine), endOf(w.To, w.ToThread, w.ToGoroutine), id, w.ID})
}

func endOf(tick uint64, thread uint32, goroutine uint64) End {
	if goroutine != 0 {
		thread = 0
	}
	return End{tick, LaneKey{thread, goroutine}}
}

func (b *builder) finish() {
	for _, l := range b.x.order {
		l.Instants.finish()
		if n := len(l.rows); n == MaxRows {
			l.rows[n-1].thread = nil
			l.rows[n-1].unite()
		}
		for i := range l.rows {
			l.rows[i].finish()
		}
	}
	for i, t := range b.x.tracks {
		t.graph.finish()
		if !t.Counter {
			b.async[i].pack(t)
		}
	}
	b.x.flows.finish()
}
