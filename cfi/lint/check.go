package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/callreel/callreel/cfi"
)

// checker compares one function with its rows. It keeps its memory from one function to the next.
type checker struct {
	read func(addr, n uint64) ([]byte, error)
	rets tally
	// described says whether an address has call frame information, or is no code. Nil knows nothing.
	described func(addr uint64) bool
	// symbolsEnd and follows are those of the linter. Nil where described is.
	symbolsEnd func(start, end uint64) uint64
	follows    func(end, to uint64) bool

	evaluator cfi.Evaluator
	keeps     map[uint64]uint64 // by address of a function: see kept
}

// check returns the findings of a function, whose parts are in the order of their addresses.
func (k *checker) check(f *function) []Finding {
	size := 0
	for i := range f.parts {
		size += len(f.parts[i].code)
		f.parts[i].nodes = make([]int32, len(f.parts[i].code))
	}
	const most, each = 1 << 12, 4 // bytes an instruction, about
	f.nodes = make([]node, 0, min(size/each+1, most))
	before := k.decode(f)
	ends := k.boundaries(f)
	c, clashes := k.follow(f, before)
	if c == nil {
		return nil
	}
	return slices.Concat(c.findings(), clashes, ends)
}

// follow carries states through a decoded function and checks its rows against them; nil where that would take too long.
func (k *checker) follow(f *function, before []int32) (*comparison, []Finding) {
	w := flow{function: f, proving: true}
	w.effects.saved = f.saves()
	for id := range f.nodes {
		if in := &f.nodes[id].inst; in.way == returns {
			w.effects.relied |= f.p.relies(in)
		}
	}
	if f.framedByScratch() {
		w.effects.kept = func(in *inst) uint64 { return k.kept(f.p, in) }
	}
	var clashes []Finding
	k.prove(&w)
	before = k.predecessors(f, before)
	k.followRows(&w, &clashes)
	before = k.predecessors(f, before)
	if w.exhausted() {
		return nil, nil
	}
	return k.compare(&w, before), clashes
}

// saves returns the registers of which a row says that they are in the frame.
func (f *function) saves() (mask uint64) {
	for i := range f.parts {
		for k := range f.parts[i].rows {
			for _, rule := range f.parts[i].rows[k].Regs {
				if r, ok := f.p.general(rule.Reg); ok && rule.Kind == cfi.Offset {
					mask |= 1 << r
				}
			}
		}
	}
	return mask
}

// decode explores the function from where calls enter it.
func (k *checker) decode(f *function) []int32 {
	for i := range f.parts {
		p := &f.parts[i]
		for _, at := range f.entries(p) {
			f.explore(at)
		}
	}
	f.bad = false
	f.link(0)
	before := k.predecessors(f, nil)
	k.tables(f, before)
	if len(f.nodes) > 0 {
		f.pads()
	}
	return before
}

// entries lists the addresses at which calls enter a part.
func (f *function) entries(p *part) []uint64 {
	if !p.abiEntry {
		return nil
	}
	list := []uint64{p.start}
	if p.stubs {
		return append(list, f.behindJumps(p)...)
	}
	if p.plt {
		for at := p.start + pltEntry; at < p.end; at += pltEntry {
			list = append(list, at)
		}
	}
	return list
}

// behindJumps lists where code begins behind an indirect jump and padding.
func (f *function) behindJumps(p *part) (list []uint64) {
	var in inst
	jumped := false
	for off := 0; off < len(p.code); off += int(in.size) {
		if !f.p.decode(&in, p.code[off:], p.start+uint64(off)) {
			return list
		}
		if jumped && !in.padding {
			list = append(list, p.start+uint64(off))
			jumped = false
		}
		jumped = jumped || in.way == indirectJump
	}
	return list
}

// predecessors tells for each node the one that control comes from without a branch. It appends to what is known.
func (k *checker) predecessors(f *function, before []int32) []int32 {
	from := len(before)
	for len(before) < len(f.nodes) {
		before = append(before, -1)
	}
	for id := from; id < len(f.nodes); id++ {
		if next := f.nodes[id].next; next >= 0 {
			before[next] = int32(id)
		}
	}
	return before
}

// tables follows jumps through tables, those included that are only reached so.
func (k *checker) tables(f *function, before []int32) {
	entriesLeft := maxTable + 16*len(f.nodes) // entries of all tables
	for id := 0; id < len(f.nodes); id++ {
		if f.nodes[id].inst.way != indirectJump || f.parts[f.nodes[id].part].plt {
			continue
		}
		if id >= len(before) {
			before = k.predecessors(f, before)
		}
		targets := f.p.table(f, int32(id), before, k.read)
		if entriesLeft -= len(targets); entriesLeft < 0 {
			return
		}
		from := len(f.nodes)
		for _, at := range targets {
			if to := f.explore(at); to >= 0 {
				f.nodes[id].table = append(f.nodes[id].table, to)
			}
		}
		f.link(from)
	}
}

// prove follows the states that calls enter with.
func (k *checker) prove(w *flow) {
	for i := range w.parts {
		p := &w.parts[i]
		for n, at := range w.entries(p) {
			id := w.nodeAt(at)
			if id < 0 {
				continue
			}
			s := w.p.onEntry()
			if p.plt && n == 0 { // the others jump to the first with a word on the stack
				s.regs[w.p.sp].off -= 8
			}
			w.seed(id, s)
		}
	}
	w.run()
}

// followRows takes the rows of code that was not reached for granted where it begins, and follows it from there.
func (k *checker) followRows(w *flow, clashes *[]Finding) {
	w.proving, w.effects.fromRows = false, true
	w.gaps(func(i int, at uint64) {
		p := &w.parts[i]
		r := p.rowAt(at)
		from := len(w.nodes)
		w.bad = false
		id := w.explore(at)
		w.link(from)
		if id < 0 || r == nil || w.bad {
			return // data, or what follows a call that does not return
		}
		if r.RA().Kind == cfi.Undefined {
			*clashes = append(*clashes, w.outermostReturns(from)...)
			return
		}
		s := w.p.stateOf(r, p.bKey)
		if w.p.earlyEpilogues && !s.regs[w.p.sp].framed() {
			w.comesFromJumps(s)
		}
		if !s.regs[w.p.sp].framed() && r.CFA.Kind != cfi.RegOffset {
			return
		}
		w.clash = func(from, to int32, s *state) {
			a, b := s.regs[w.p.sp], w.nodes[to].state.regs[w.p.sp]
			if a.kind == onStack && b.kind == onStack && a.off != b.off && len(*clashes) < maxClashes {
				*clashes = append(*clashes, w.p.clash(r, at, a.off-b.off))
			}
			w.clash = nil
		}
		w.seed(id, s)
		w.run()
	})
}

// comesFromJumps takes the stack pointer to be what it is at all jumps of which it isn't known where in the function they lead, if that
// is one. Rows by a frame pointer don't say it.
func (w *flow) comesFromJumps(s *state) {
	known := value{}
	for id := range w.nodes {
		n := &w.nodes[id]
		if n.inst.way != indirectJump || len(n.table) > 0 || !n.jumped.framed() {
			continue
		}
		if known.framed() && known != n.jumped {
			return
		}
		known = n.jumped
	}
	if known.framed() {
		s.regs[w.p.sp] = known
	}
}

// outermostReturns reports returns of code that is said to have no caller, among the nodes from one on.
func (w *flow) outermostReturns(from int) (list []Finding) {
	for id := from; id < len(w.nodes) && len(list) < maxClashes; id++ {
		n := &w.nodes[id]
		if r := w.parts[n.part].rowAt(n.addr); n.inst.way == returns && r != nil && r.RA().Kind == cfi.Undefined {
			list = append(list, Finding{Kind: WrongRA, Address: n.addr, Says: "ra=undefined", Truth: "the code returns"})
		}
	}
	return list
}

// maxClashes bounds the findings of this kind for one function.
const maxClashes = 100

// clash makes the finding that a row gives another CFA than the code that control goes on to.
func (p *processor) clash(r *row, at uint64, delta int64) Finding {
	says := r.CFA
	truth := says
	truth.Offset += delta
	f := Finding{Kind: WrongCFA, Address: at, Says: cfaText(&says, p.names), Truth: "cfa=" + truth.Format(p.names)}
	if says.Kind == cfi.RegOffset {
		f.Directive = ".cfi_def_cfa_offset " + itoa(truth.Offset)
	}
	return f
}

// compare compares every instruction's row with its state.
func (k *checker) compare(w *flow, before []int32) *comparison {
	c := &comparison{function: w.function, before: before, effects: &w.effects, escaped: w.effects.escaped, switches: w.effects.switches, evaluator: &k.evaluator}
	s := &w.scratch
	for id := range w.nodes {
		if w.nodes[id].state == nil {
			continue
		}
		s.copyFrom(w.nodes[id].state)
		for at := int32(id); ; {
			c.node(at, s)
			n := &w.nodes[at]
			w.effects.step(w.p, s, n, at)
			next := n.next
			if next < 0 || w.nodes[next].leader || w.cut(n, s) {
				break
			}
			w.equalize(n, at, s)
			at = next
		}
	}
	k.rets.right += c.rets.right
	k.rets.late += c.rets.late
	return c
}

// after is the directive where that for the error before, nil for none, is given too: adjustments add up.
func (i *issue) after(before *issue) string {
	if before != nil && strings.HasPrefix(i.directive, adjust) {
		return adjust + itoa(before.delta-i.delta)
	}
	return i.directive
}

// findings makes one finding of each run of instructions with the same error.
func (c *comparison) findings() []Finding {
	some := false
	for i := range c.marks {
		some = some || c.marks[i].wrong != 0
	}
	if !some {
		return nil
	}
	slices.SortFunc(c.marks, func(a, b mark) int { return cmp.Compare(a.addr, b.addr) })
	var list []Finding
	var open [bitCount]*issue
	for i := range c.marks {
		m := &c.marks[i]
		for bit := range open {
			issue := m.issue(bit)
			switch {
			case m.right>>bit&1 != 0:
				open[bit] = nil
			case issue == nil:
			case open[bit] == nil || open[bit].delta != issue.delta || open[bit].kind != issue.kind:
				list = append(list, Finding{Kind: issue.kind, Address: m.addr, Says: issue.says, Truth: issue.truth, Directive: issue.after(open[bit])})
				fallthrough
			default:
				open[bit] = issue
			}
		}
	}
	return list
}
