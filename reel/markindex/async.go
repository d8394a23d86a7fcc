package markindex

import (
	"slices"

	"github.com/callreel/callreel/reel"
)

// asyncTrack is a track of asynchronous spans while they are being read, in order of their ends.
type asyncTrack struct {
	list []asyncSpan
}

type asyncSpan struct {
	start, end, id uint64
	what, thread   uint32
	steps          []reel.SpanStep
}

func (b *builder) asyncSpan(s *reel.Span, m *reel.Marker) {
	id := b.title(s.Marker, m, func() string { return s.Title }, 0)
	title := &b.x.titles[id]
	title.Async++
	if title.AsyncTrack < 0 {
		switch {
		case b.spans < maxTracks && title.Name != reel.OtherTitles:
			b.spans++
			title.AsyncTrack = b.track(Track{Title: id})
		default:
			if b.others == 0 {
				b.others = b.track(Track{}) + 1
			}
			title.AsyncTrack = b.others - 1
		}
	}
	b.x.tracks[title.AsyncTrack].Count++
	steps := s.Steps
	if b.items += uint64(len(steps)); b.items > maxItems {
		b.items -= uint64(len(steps))
		b.x.Left += uint64(len(steps))
		steps = nil
	}
	for i := range steps {
		steps[i].Values = nil // are read again when they are looked at
	}
	a := &b.async[title.AsyncTrack]
	a.list = append(a.list, asyncSpan{s.Begin, max(s.Begin, s.End), s.ID, id | uint32(flagsOf(s))<<titleBits, s.Thread, steps})
}

// pack puts each span into the first row that is free when it begins. Those for which there is none are in the last row together.
func (a *asyncTrack) pack(t *Track) {
	slices.SortStableFunc(a.list, func(x, y asyncSpan) int { return compare(x.start, y.start) })
	var left row
	for i := range a.list {
		s := &a.list[i]
		at := 0
		for at < len(t.rows) && t.rows[at].last() > s.start {
			at++
		}
		if at == MaxRows-1 {
			left.add(s.start, s.end, s.what&titleMask, Several)
			t.More++
			continue
		}
		if at == len(t.rows) {
			t.rows, t.steps = append(t.rows, row{}), append(t.steps, points{})
		}
		r := &t.rows[at]
		r.add(s.start, s.end, s.what&titleMask, Flags(s.what>>titleBits))
		r.id, r.thread = append(r.id, s.id), append(r.thread, s.thread)
		p := &t.steps[at]
		for _, x := range s.steps {
			p.at, p.what, p.id = append(p.at, x.Time), append(p.what, x.Marker), append(p.id, x.Thread)
		}
	}
	if len(left.start) > 0 {
		left.unite()
		t.rows, t.steps = append(t.rows, left), append(t.steps, points{})
	}
	for i := range t.rows {
		t.rows[i].finish()
		t.steps[i].finish()
	}
	a.list = nil
}
