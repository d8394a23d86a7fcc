package trigger

import (
	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Mark is a marker that is recorded, under an ID as ring.MarkID gives it.
type Mark struct {
	ID             uint32
	Provider, Name string
	// Title and Pair are what is known of the span that it begins, or ends.
	Title, Pair string
	Begin, End  bool
}

// TakeMark returns the part that a marker has in triggers. It is for one goroutine.
func (s *Set) TakeMark(m Mark) (list []stub.MarkTrigger) {
	if s.Empty() {
		return nil
	}
	s.mu.Lock()
	about := map[string][]predicate{} // by what is the same for the markers of a span
	var order []string
	for i := range s.list {
		t := &s.list[i]
		key := ""
		switch {
		case t.Marker != "" && glob.MatchAny(t.Marker, []string{m.Provider + ":" + m.Name, m.Name}):
			key = "marker"
		case t.Span != "" && (m.Begin || m.End) && m.Pair != "" && glob.MatchAny(t.Span, []string{m.Pair, m.Title, m.Provider + ":" + m.Title}):
			key = "span"
		default:
			continue
		}
		if about[key] == nil {
			order = append(order, key)
		}
		about[key] = append(about[key], predicate{trigger: i})
	}
	s.mu.Unlock()
	for _, key := range order {
		t := stub.MarkTrigger{Key: m.ID, Begin: true, End: true}
		if key == "span" {
			t.Begin, t.End = m.Begin, m.End
			t.Key = s.keyOf(m)
		}
		if t.Predicates = s.give(t.Key, about[key]); t.Predicates.Count > 0 {
			list = append(list, t)
		}
	}
	return list
}

// keyOf is the key of a span: the ID of the first marker that begins or ends it.
func (s *Set) keyOf(m Mark) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spans == nil {
		s.spans = map[[2]string]uint32{}
	}
	at := [2]string{m.Provider, m.Pair}
	if s.spans[at] == 0 {
		s.spans[at] = m.ID
	}
	return s.spans[at]
}

// Markers are the markers that triggers are about, as they are asked for: with no arguments.
func (s *Set) Markers() (globs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if g := s.list[i].Marker; g != "" {
			globs = append(globs, g+"()")
		}
	}
	return globs
}
