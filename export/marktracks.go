package export

import (
	"fmt"
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// markLane is where the spans, the instants and the ends of flows of a thread, or a goroutine, are. Spans have it to themselves: they need not
// nest with calls. Those of pairs that cross others are in lanes of their pair.
type markLane struct {
	lane
	pair   pairKey     // {} for all that don't cross others
	open   []*markOpen // spans that were seen to begin
	before []before    // that were not, and are still to end, in the order of their ends
}

// markOpen is a span that is open in a lane.
type markOpen struct {
	lane *markLane
	span *reel.Span
	over bool // it has ended, but for what lies in it
	told bool // and that was told
}

// enclosed says whether a span is open.
func (l *markLane) enclosed() bool { return len(l.open) > 0 || len(l.before) > 0 }

// before is a span that began before the recording did.
type before struct {
	title  string
	marker uint32 // that ends it
	end    uint64
}

// laneKey is a goroutine, else a thread by its key.
type laneKey struct {
	thread    uint32
	goroutine uint64
}

type markLaneKey struct {
	laneKey
	pair pairKey // see markLane
}

func keyOf(thread uint32, goroutine uint64) laneKey {
	if goroutine != 0 {
		return laneKey{goroutine: goroutine}
	}
	return laneKey{thread: thread}
}

func (m *markWalk) processOf(thread uint32) int { return m.pid(m.of[thread]) }

// lane is the lane of a thread, or a goroutine.
func (m *markWalk) lane(thread uint32, goroutine uint64) *markLane {
	return m.laneFor(thread, goroutine, pairKey{})
}

// laneOf is the lane of a span.
func (m *markWalk) laneOf(s *reel.Span) *markLane {
	k := m.pairOf(s)
	if !m.crossing[k] {
		k = pairKey{}
	}
	return m.laneFor(s.Thread, s.Goroutine, k)
}

func (m *markWalk) laneFor(thread uint32, goroutine uint64, pair pairKey) *markLane {
	k := markLaneKey{keyOf(thread, goroutine), pair}
	l := m.lanes[k]
	if l != nil {
		return l
	}
	if len(m.lanes) >= m.maxLanes {
		for k, l := range m.lanes {
			if !l.enclosed() {
				delete(m.lanes, k)
			}
		}
		for k, list := range m.beside {
			if list = slices.DeleteFunc(list, func(l *markLane) bool { return !l.enclosed() }); len(list) == 0 {
				delete(m.beside, k)
			} else {
				m.beside[k] = list
			}
		}
		m.maxLanes = max(maxMarkLanes, 2*len(m.lanes))
	}
	t := m.of[thread]
	l = &markLane{pair: pair, lane: lane{pid: m.pid(t), tid: m.extraLane(), thread: t, goroutine: goroutine, marks: true, last: -m.gap}}
	l.main = &l.lane
	// Next to the thread's first lane: viewers order what has the same number by name or by tid.
	l.order = int(t.Key) * reel.MaxStacks
	name := t.Name
	if name == "" {
		name = "thread"
	}
	if l.name = fmt.Sprintf("%s (%d): markers", name, t.TID); goroutine != 0 {
		l.name, l.order = m.goroutineLane(goroutine)+": markers", math.MaxInt32
	}
	if pair != (pairKey{}) {
		l.name += ", " + cut(pair.pair, maxName)
		m.beside[k.laneKey] = append(m.beside[k.laneKey], l)
	}
	m.lanes[k] = l
	m.sink.markLane(l)
	l.before = m.before[k]
	delete(m.before, k)
	for i := len(l.before) - 1; i >= 0; i-- {
		b := &l.before[i]
		marker, _ := m.f.Marker(b.marker)
		x := said{title: cut(b.title, maxName), category: categoryOf(marker), unstarted: true}
		if b.title == marker.Title {
			x.marker = b.marker
		}
		m.sink.spanBegin(l, m.timeIn(l, m.f.FirstTick()), &x)
	}
	return l
}

// asyncTrack is where asynchronous spans are of which one ends before the next begins. Those of a title that overlap are in several.
type asyncTrack struct {
	key    trackKey
	number uint64 // from 1
	data   any    // the sink's
}

type trackKey struct {
	pid             int
	category, title string
}

// asyncTracks are those of a title.
type asyncTracks struct {
	free   []*asyncTrack
	open   int
	before int // spans that began with the recording
}

// track takes a track that is free, or makes one.
func (m *markWalk) track(k trackKey) *asyncTrack {
	of := m.tracksOf(k)
	of.open++
	if n := len(of.free); n > 0 {
		t := of.free[n-1]
		of.free = of.free[:n-1]
		return t
	}
	return m.newTrack(k)
}

// trackBefore makes one that is free since the recording began; it returns nil if there are too many.
func (m *markWalk) trackBefore(k trackKey) *asyncTrack {
	of := m.tracksOf(k)
	if of.before >= maxBefore || m.unstarted >= maxAllBefore {
		return nil
	}
	of.before++
	m.unstarted++
	of.open++
	return m.newTrack(k)
}

func (m *markWalk) newTrack(k trackKey) *asyncTrack {
	m.number++
	m.made++
	t := &asyncTrack{key: k, number: m.number}
	m.sink.markTrack(t)
	return t
}

func (m *markWalk) tracksOf(k trackKey) *asyncTracks {
	if of := m.tracks[k]; of != nil {
		return of
	}
	if m.made >= m.maxTracks {
		m.made = 0
		for k, of := range m.tracks {
			if of.free = nil; of.open == 0 {
				delete(m.tracks, k)
			}
			m.made += of.open
		}
		m.maxTracks = max(maxAsyncTracks, 2*m.made)
	}
	of := &asyncTracks{}
	m.tracks[k] = of
	return of
}

// release says that nothing is open on a track.
func (m *markWalk) release(t *asyncTrack) {
	of := m.tracks[t.key]
	of.open--
	of.free = append(of.free, t)
}
