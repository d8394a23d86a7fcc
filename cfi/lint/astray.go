package lint

// astray says whether a branch leads into another function's cold part, to which control never comes: what is behind a
// branch that cannot be taken, such as the default of a switch over all values, is empty where compilers move it away, and
// the branch leads to what happens to stand there. It is told by a row that contradicts the state, where calls enter, where
// another branch has the row's CFA, or where the branch is that of a switch.
func (w *flow) astray(from, to int32, s *state) bool {
	source, n := &w.nodes[from], &w.nodes[to]
	p := &w.parts[n.part]
	if source.part == n.part || n.addr != p.start {
		return false
	}
	r := p.rowAt(n.addr)
	if r == nil {
		return false
	}
	if v, ok := s.cfaOf(&r.CFA, n.addr); !ok || v.kind != onStack || v.off == 0 {
		return false
	}
	return p.abiEntry || w.defaultOfSwitch(source) || w.ownedByAnother(from, to, r)
}

// ownedByAnother says whether a branch from elsewhere leads to a node with the CFA of the row there.
func (w *flow) ownedByAnother(from, to int32, r *row) bool {
	for _, id := range w.entrants(to) {
		other := &w.nodes[id]
		if id == from || other.part == w.nodes[from].part {
			continue
		}
		if o := w.parts[other.part].rowAt(other.addr); o != nil && sameRule(&o.CFA, &r.CFA) {
			return true
		}
	}
	return false
}

// entrants lists the nodes of other parts that lead to the start of a part.
func (w *flow) entrants(to int32) []int32 {
	if w.into == nil {
		w.into = map[int32][]int32{}
	}
	list, known := w.into[to]
	if known && w.intoOf == len(w.nodes) {
		return list
	}
	if w.intoOf != len(w.nodes) {
		clear(w.into)
		w.intoOf = len(w.nodes)
	}
	for id := range w.nodes {
		n := &w.nodes[id]
		if n.part != w.nodes[to].part && (n.target == to || n.pad == to) {
			list = append(list, int32(id))
		}
	}
	w.into[to] = list
	return list
}

// defaultOfSwitch says whether a branch is one for values above those of a table by which the code behind it jumps.
func (w *flow) defaultOfSwitch(n *node) bool {
	const near = 12
	if n.inst.way != condJump || !w.p.above(&n.inst) {
		return false
	}
	for range near {
		if n.next < 0 {
			return false
		}
		switch n = &w.nodes[n.next]; n.inst.way {
		case indirectJump:
			return true
		case goesOn:
		default:
			return false
		}
	}
	return false
}
