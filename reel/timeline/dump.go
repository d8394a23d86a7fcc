package timeline

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/reel"
)

// window is where the window of a dump begins, in ticks from the start; 0 if the reel is none.
func (s *snapshot) window() uint64 {
	d, ok := s.f.Dump()
	if !ok || s.clock.untimed {
		return 0
	}
	return s.clock.rel(d.From)
}

// Bounds on what is missing from a dump: each stretch of all threads becomes a gap of every lane.
const (
	maxMissing    = 1 << 12
	maxMissingAll = 16
)

// missingByThread is what is missing from a dump, in order, overlaps merged; that of all threads is at 0. Stretches beyond the bounds
// become one.
func missingByThread(f *reel.File) map[uint32][]reel.Missing {
	d, ok := f.Dump()
	if !ok || len(d.Missing) == 0 {
		return nil
	}
	by := map[uint32][]reel.Missing{}
	list := slices.Clone(d.Missing)
	slices.SortStableFunc(list, func(a, b reel.Missing) int { return cmp.Compare(a.From, b.From) })
	for _, m := range list {
		m.To = min(m.To, f.LastTick())
		if m.To < m.From {
			continue
		}
		most := maxMissing
		if m.Thread == 0 {
			most = maxMissingAll
		}
		of := by[m.Thread]
		if n := len(of); n > 0 && (m.From <= of[n-1].To || n == most) {
			of[n-1].To = max(of[n-1].To, m.To)
			continue
		}
		by[m.Thread] = append(of, m)
	}
	return by
}

// missingGaps notes what is missing from a dump. Of a thread that runs goroutines it isn't known whose calls those were: that is noted
// with its own stack, as are its drops.
func (lb *laneBuilder) missingGaps() {
	if lb.b.missing == nil || lb.b.s.clock.untimed {
		return
	}
	for _, m := range lb.b.missing[0] {
		lb.gap(m.From, m.To, 0)
	}
	if lb.l.Goroutine != 0 || lb.l.Thread == 0 {
		return
	}
	for _, m := range lb.b.missing[lb.l.Thread] {
		lb.gap(m.From, m.To, 0)
	}
}
