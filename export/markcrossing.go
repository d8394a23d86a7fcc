package export

import (
	"cmp"
	"maps"
	"slices"

	"github.com/callreel/callreel/reel"
)

// pairKey tells pairs of markers apart.
type pairKey struct{ provider, pair string }

func (m *markWalk) pairOf(s *reel.Span) pairKey {
	marker, _ := m.f.Marker(s.Marker)
	return pairKey{marker.Provider, s.Pair}
}

// Bounds of what a survey keeps. What crosses beyond them is cut where the span around it ends.
const (
	maxPairs     = 1 << 14
	maxCrossings = 1 << 12
	maxOutlived  = 16 // pairs that one span has outlived
)

// markSurvey finds out what has to be known before the first event is written: which pairs' spans cross those of others, which spans began
// before the recording, and who has marks.
type markSurvey struct {
	m         *markWalk
	open      map[laneKey][]*surveyed
	spans     map[pairKey]int // how many there are
	crossings map[pairKey]map[pairKey]bool
	some      int // crossings
	list      map[laneKey][]candidate
	total     int
}

// surveyed is a span that is open.
type surveyed struct {
	pair     pairKey
	outlived []pairKey // pairs of spans that were open when it began, and have ended
}

// candidate is a span that was not seen to begin; around are those that were open when it ended, as they were then.
type candidate struct {
	before
	pair   pairKey
	around []surveyed
}

// survey reads all marks.
func (m *markWalk) survey() {
	s := &markSurvey{m: m, open: map[laneKey][]*surveyed{}, spans: map[pairKey]int{}, crossings: map[pairKey]map[pairKey]bool{}, list: map[laneKey][]candidate{}}
	m.ran, m.marking = map[uint64]struct{}{}, map[uint32]struct{}{}
	p := reel.NewSpanPairer(m.f)
	p.OnBegin, p.OnSpan = s.begin, s.end
	n := 0
	m.f.AllMarks(func(thread uint32, x *reel.Mark) bool {
		if x.Goroutine == 0 {
			m.marking[thread] = struct{}{}
		} else if len(m.ran) < maxMarkLanes {
			m.ran[x.Goroutine] = struct{}{}
		}
		switch marker, _ := m.f.Marker(x.Marker); {
		case marker == nil:
		case marker.Kind == reel.MarkBegin || marker.Kind == reel.MarkEnd:
			p.Push(thread, x)
		case marker.Kind == reel.MarkFlowOut || marker.Kind == reel.MarkFlowIn:
			if k := keyOf(thread, x.Goroutine); len(s.open[k]) == 0 {
				m.points.add(k, x.Time)
			}
		}
		n++
		return n%1024 != 0 || !m.failed()
	})
	m.crossing = s.crossing()
	m.before = s.before()
}

func (s *markSurvey) begin(x *reel.Span) {
	k, o := keyOf(x.Thread, x.Goroutine), &surveyed{pair: s.m.pairOf(x)}
	if _, known := s.spans[o.pair]; known || len(s.spans) < maxPairs {
		s.spans[o.pair]++
	}
	x.Tag = o
	s.open[k] = append(s.open[k], o)
}

func (s *markSurvey) end(x *reel.Span) {
	k := keyOf(x.Thread, x.Goroutine)
	open := s.open[k]
	if x.Unstarted {
		s.unstarted(x, k, open)
		return
	}
	o := x.Tag.(*surveyed)
	at := slices.Index(open, o)
	if !x.Unfinished {
		for _, pair := range o.outlived {
			s.cross(o.pair, pair)
		}
		for _, in := range open[at+1:] {
			if len(in.outlived) < maxOutlived && !slices.Contains(in.outlived, o.pair) {
				in.outlived = append(in.outlived, o.pair)
			}
		}
	}
	if open = slices.Delete(open, at, at+1); len(open) == 0 {
		delete(s.open, k)
		return
	}
	s.open[k] = open
}

// cross notes that spans of two pairs cross.
func (s *markSurvey) cross(a, b pairKey) {
	if s.crossings[a][b] || s.some >= maxCrossings {
		return
	}
	s.some++
	for _, k := range [...][2]pairKey{{a, b}, {b, a}} {
		if s.crossings[k[0]] == nil {
			s.crossings[k[0]] = map[pairKey]bool{}
		}
		s.crossings[k[0]][k[1]] = true
	}
}

// crossing are pairs without which none cross any more: first that which crosses the most others, of those with as many the one with the fewest
// spans. They get lanes of their own.
func (s *markSurvey) crossing() map[pairKey]bool {
	out := map[pairKey]bool{}
	for len(s.crossings) > 0 {
		worst := slices.MaxFunc(slices.Collect(maps.Keys(s.crossings)), func(a, b pairKey) int {
			return cmp.Or(cmp.Compare(len(s.crossings[a]), len(s.crossings[b])), cmp.Compare(s.spans[b], s.spans[a]),
				cmp.Compare(b.pair, a.pair), cmp.Compare(b.provider, a.provider))
		})
		out[worst] = true
		for other := range s.crossings[worst] {
			if delete(s.crossings[other], worst); len(s.crossings[other]) == 0 {
				delete(s.crossings, other)
			}
		}
		delete(s.crossings, worst)
	}
	return out
}

// unstarted notes a span that was not seen to begin.
func (s *markSurvey) unstarted(x *reel.Span, k laneKey, open []*surveyed) {
	c := candidate{before: before{x.Title, x.Marker, x.End}, pair: s.m.pairOf(x)}
	if s.total >= maxAllBefore || len(s.list[k]) >= 4*maxBefore || len(open) > maxOutlived {
		return
	}
	for _, o := range open {
		c.around = append(c.around, surveyed{o.pair, slices.Clone(o.outlived)})
	}
	s.list[k] = append(s.list[k], c)
	s.total++
}

// before are those of each lane that enclose what comes before their ends, so that they can be drawn from the beginning. They have to be written
// first.
func (s *markSurvey) before() map[markLaneKey][]before {
	out := map[markLaneKey][]before{}
	for k, list := range s.list {
		for _, c := range list {
			of := markLaneKey{k, pairKey{}}
			if s.m.crossing[c.pair] {
				of.pair = c.pair // of whose spans none is open
			} else if slices.ContainsFunc(c.around, s.m.among) {
				continue
			}
			if len(out[of]) < maxBefore {
				out[of] = append(out[of], c.before)
			}
		}
	}
	return out
}

// among says whether a span is open in the lane of those that don't cross others: there what outlives one ends with it.
func (m *markWalk) among(o surveyed) bool {
	return !m.crossing[o.pair] && !slices.ContainsFunc(o.outlived, func(p pairKey) bool { return !m.crossing[p] })
}
