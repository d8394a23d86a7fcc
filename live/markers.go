package live

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
)

var (
	_ recorder.MarkersTaker = (*Meter)(nil)
	_ recorder.MarksTaker   = (*thread)(nil)
)

// Marker is how often the sites of one marker were passed, since recording began.
type Marker struct {
	Provider, Name string
	Count          uint64
}

// AddMarkers implements recorder.MarkersTaker.
func (m *Meter) AddMarkers(list []reel.Marker) (firstID uint32, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	firstID = uint32(len(m.markers) + 1)
	for i := range list {
		m.markers = append(m.markers, Marker{Provider: list[i].Provider, Name: list[i].Name})
	}
	return firstID, nil
}

// Marks implements recorder.MarksTaker.
func (t *thread) Marks(marks []reel.Mark) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	for i := range marks {
		if id := marks[i].Marker; id > 0 && uint64(id) <= uint64(len(t.m.markers)) {
			t.m.markers[id-1].Count++
		}
	}
	return nil
}

// Markers are those that have been passed, each name once, the most often first. It may be called at any time.
func (m *Meter) Markers() []Marker {
	m.mu.Lock()
	all := slices.Clone(m.markers)
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b Marker) int { return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Name, b.Name)) })
	kept := all[:0]
	for _, x := range all {
		if n := len(kept); n > 0 && kept[n-1].Provider == x.Provider && kept[n-1].Name == x.Name {
			kept[n-1].Count += x.Count
			continue
		}
		kept = append(kept, x)
	}
	slices.SortStableFunc(kept, func(a, b Marker) int { return cmp.Compare(b.Count, a.Count) })
	return kept
}
