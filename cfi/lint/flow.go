package lint

import "github.com/callreel/callreel/isa/amd64"

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
		*n.state = state{overflow: true}
		for r := range n.state.regs {
			n.state.regs[r] = top
		}
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
		w.effects.step(s, &n.inst, n.addr, id)
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
		if next < 0 || w.cut(n) {
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
		w.landing.regs[rsp] = s.regs[rsp].add(int64(r.ArgsSize))
		s = &w.landing
	}
	w.merge(id, n.pad, s)
}

// equalize uses what a loop ends with: behind "cmp rsp, reg; jne" the stack pointer is that register. Loops that touch
// each page of a large frame are made so.
func (w *flow) equalize(n *node, id int32, s *state) {
	if n.inst.Kind != amd64.CondJump || n.inst.Opcode&0xF != 5 || s.regs[rsp].framed() || id == 0 {
		return
	}
	before := &w.nodes[id-1]
	c := &before.inst
	if before.next != id || c.Encoding != amd64.Legacy || c.Map != amd64.MapPrimary || c.Mod != 3 || c.REX&amd64.RexW == 0 || c.Opcode != 0x39 && c.Opcode != 0x3B {
		return
	}
	a, b := amd64.Reg(c.Reg&15), amd64.Reg(c.RM&15)
	if b == rsp {
		a, b = b, a
	}
	if a == rsp && s.regs[b].framed() {
		s.regs[rsp] = s.regs[b]
	}
}

// cut says whether control does not come back from a call: rows follow what instructions do to the stack pointer, and a
// call does nothing to it, so where they change behind one, other code begins. Padding may stand between. What nothing but the
// call leads to is not other code, and the row there is wrong.
func (f *function) cut(n *node) bool {
	if !n.calls() {
		return false
	}
	if to, ok := n.inst.Target(n.addr); ok && to == n.addr+uint64(n.inst.Len) {
		return false // a push of its own address
	}
	at, entered := n.next, f.entered(n.next)
	for f.nodes[at].inst.IsNop() && f.nodes[at].next >= 0 {
		at = f.nodes[at].next
		entered = entered || f.entered(at)
	}
	next := &f.nodes[at]
	a, b := f.parts[n.part].rowAt(n.addr), f.parts[next.part].rowAt(next.addr)
	return entered && a != b && a != nil && b != nil && !a.sameRules(b)
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
		if n.inst.RIPRelative {
			mark(f.nodeAt(n.addr + uint64(n.inst.Len) + uint64(int64(n.inst.Disp))))
		}
		if n.inst.Kind == amd64.IndirectJump && len(n.table) == 0 {
			// Where a jump that may not be a tail call leads is not known.
			r := f.parts[n.part].rowAt(n.addr)
			f.open = f.open || r == nil || !r.entersByCall() || !n.inst.HasMem || n.inst.Index != amd64.NoReg
		}
	}
}
