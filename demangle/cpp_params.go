package demangle

// paramScopes are the lists of arguments that template parameters stand for while a name is
// read: T_ is the first of level 0, TL0__ that of level 1 (5.1.5.8). The lists lie one after
// the other, each only grows while it is the last, and so all are ends in one stack.
type paramScopes struct {
	ids    nodeStack
	levels []paramLevel // those in view are levels[base:]
	base   int
}

// A paramLevel is a list of arguments: n of them from ids[first].
type paramLevel struct {
	first, n int
	absent   bool // the level is there for its number only
}

// A paramMark is a state to return to.
type paramMark struct{ ids, levels, base int }

// save puts all levels out of view.
func (s *paramScopes) save() paramMark {
	m := s.mark()
	s.base = len(s.levels)
	return m
}

func (s *paramScopes) mark() paramMark { return paramMark{s.ids.n, len(s.levels), s.base} }

// restore returns to the levels that were in view.
func (s *paramScopes) restore(m paramMark) {
	s.base = m.base
	s.levels = s.levels[:m.levels]
	s.ids.cut(m.ids)
}

// count is how many levels are in view.
func (s *paramScopes) count() int { return len(s.levels) - s.base }

// clear forgets the levels in view.
func (s *paramScopes) clear() {
	if s.count() > 0 {
		s.ids.cut(s.levels[s.base].first)
		s.levels = s.levels[:s.base]
	}
}

// open begins a new level.
func (s *paramScopes) open(absent bool) {
	s.levels = append(s.levels, paramLevel{first: s.ids.n, absent: absent})
}

// put adds an argument to the last level.
func (s *paramScopes) put(id nodeID) bool {
	if !s.ids.push(id) {
		return false
	}
	s.levels[len(s.levels)-1].n++
	return true
}

// find returns the argument of a level.
func (s *paramScopes) find(level, index int) (nodeID, bool) {
	if level >= s.count() {
		return 0, false
	}
	l := s.levels[s.base+level]
	if l.absent || index >= l.n {
		return 0, false
	}
	return s.ids.from(l.first)[index], true
}
