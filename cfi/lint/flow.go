package lint

// maxVisits bounds how often a place is followed. A register's or slot's value can change some four times, each way to
// less that is known; beyond this, which no compiler's code comes near, nothing is known.
const maxVisits = 200

// flow carries states through a function until nothing changes.
type flow struct {
	*function
	effects effects
	todo    []int32
	proving bool // states come from entries; else from rows
	scratch state
	landing state
	clash   func(from, to int32, s *state)
	work    int // instructions followed

	into   map[int32][]int32 // what entrants found
	intoOf int               // among so many nodes
}

// exhausted says whether a function was followed for longer than compilers' code needs, by far. Nothing is known of it then.
func (w *flow) exhausted() bool { return w.work > 1<<20+400*len(w.nodes) }

// seed lets a state hold before a node.
func (w *flow) seed(id int32, s *state) {
	n := &w.nodes[id]
	n.leader = true
	w.merge(-1, id, s)
}

// merge brings a state to a node. Where a state from a row meets one from an entry, the latter stays.
func (w *flow) merge(from, id int32, s *state) {
	n := &w.nodes[id]
	if from >= 0 && w.astray(from, id, s) {
		return
	}
	switch {
	case n.state == nil:
		n.state, n.proven = s.clone(), w.proving
	case n.proven && !w.proving:
		if w.clash != nil && from >= 0 {
			w.clash(from, id, s)
		}
		return
	case !n.state.meet(s):
		return
	}
	if n.visits++; n.visits > maxVisits {
		n.state.lose()
		if n.visits > maxVisits+1 {
			return
		}
	}
	if !n.queued {
		n.queued = true
		w.todo = append(w.todo, id)
	}
}

// run follows all that is queued.
func (w *flow) run() {
	for len(w.todo) > 0 && !w.exhausted() {
		id := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.nodes[id].queued = false
		w.follow(id)
	}
}

// follow carries the state of a leader to the next leaders.
func (w *flow) follow(id int32) {
	s := &w.scratch
	s.copyFrom(w.nodes[id].state)
	for {
		n := &w.nodes[id]
		w.work += 1 + len(n.table)
		if n.inst.way == indirectJump {
			n.jumped = s.regs[w.p.sp]
		}
		w.effects.step(w.p, s, n, id)
		if n.target >= 0 {
			w.merge(id, n.target, s)
		}
		for _, to := range n.table {
			w.merge(id, to, s)
		}
		if n.pad >= 0 {
			w.land(id, s)
		}
		next := n.next
		if next < 0 || w.cut(n, s) {
			return
		}
		w.equalize(n, id, s)
		if w.nodes[next].leader {
			w.merge(id, next, s)
			return
		}
		id = next
	}
}

// land carries the state behind a call to where an exception that it throws goes on: unwinders take the arguments off the
// stack that were pushed for the call.
func (w *flow) land(id int32, s *state) {
	n := &w.nodes[id]
	if r := w.parts[n.part].rowAt(n.addr); r != nil && r.ArgsSize != 0 {
		w.landing.copyFrom(s)
		w.landing.regs[w.p.sp] = s.regs[w.p.sp].add(int64(r.ArgsSize))
		s = &w.landing
	}
	w.merge(id, n.pad, s)
}

// equalize uses what a loop ends with: behind a comparison of the stack pointer with a register, and a jump if they differ, it is that register. Loops that touch
// each page of a large frame are made so.
func (w *flow) equalize(n *node, id int32, s *state) {
	if n.inst.way != condJump || s.regs[w.p.sp].framed() || id == 0 || w.nodes[id-1].next != id {
		return
	}
	if r, ok := w.p.equal(&w.nodes[id-1].inst, &n.inst); ok && s.regs[r].framed() {
		s.regs[w.p.sp] = s.regs[r]
	}
}

// cut says whether control does not come back from a call: rows follow what instructions do to the stack pointer, and a
// call does nothing to it, so where they change behind one, other code begins. Padding may stand between. What nothing but the
// call leads to is not other code, and the row there is wrong.
//
// Where a processor's rows change before an epilogue, as clang's go over to the stack pointer, a row is that of the same code if
// it gives the same CFA.
func (f *function) cut(n *node, s *state) bool {
	if !n.inst.calls() {
		return false
	}
	if n.inst.direct && n.inst.target == n.end() {
		return false // it takes its own address
	}
	at, entered := n.next, f.entered(n.next)
	for f.nodes[at].inst.nop && f.nodes[at].next >= 0 {
		at = f.nodes[at].next
		entered = entered || f.entered(at)
	}
	next := &f.nodes[at]
	a, b := f.parts[n.part].rowAt(n.addr), f.parts[next.part].rowAt(next.addr)
	if !entered || a == b || a == nil || b == nil || a.sameRules(b) {
		return false
	}
	if !f.p.earlyEpilogues || !a.sameRegisters(b) {
		return true
	}
	v, ok := s.cfaOf(&b.CFA, next.addr)
	return !ok || v.kind != onStack || v.off != 0
}

// entered says whether control may come to a node otherwise than from the one before it.
func (f *function) entered(id int32) bool {
	if f.ways == nil || len(f.ways) != len(f.nodes) {
		f.findWays()
	}
	return f.open || f.ways[id]
}

// findWays notes where branches, tables and exceptions lead, and of which places the address is taken.
func (f *function) findWays() {
	f.ways, f.open = make([]bool, len(f.nodes)), false
	mark := func(id int32) {
		if id >= 0 {
			f.ways[id] = true
		}
	}
	for k := range f.parts {
		if p := &f.parts[k]; len(p.nodes) > 0 {
			mark(p.nodes[0] - 1)
		}
	}
	for id := range f.nodes {
		n := &f.nodes[id]
		mark(n.target)
		mark(n.pad)
		for _, to := range n.table {
			mark(to)
		}
		if n.inst.named {
			mark(f.nodeAt(n.inst.data))
		}
		if n.inst.way == indirectJump && len(n.table) == 0 {
			// Where a jump that may not be a tail call leads is not known.
			r := f.parts[n.part].rowAt(n.addr)
			f.open = f.open || r == nil || !f.p.entersByCall(r) || !f.p.leaves(&n.inst)
		}
	}
}
