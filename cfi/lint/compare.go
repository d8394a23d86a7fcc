package lint

import (
	"fmt"

	"github.com/callreel/callreel/cfi"
)

// What a row says something about, as bits: the registers by their number, and these. The return address has the bit of its id.
const (
	bitCFA   = returnAddress + 1
	bitOther = returnAddress + 2 // registers that are not followed
	bitSplit = returnAddress + 3
	bitCount = returnAddress + 4
)

// issue is one thing that a row says wrong about one instruction.
type issue struct {
	kind                   Kind
	says, truth, directive string
	delta                  int64 // equal for instructions with the same error
}

// mark is what the comparison of one instruction's row gave.
type mark struct {
	addr   uint64
	right  uint64
	wrong  uint64
	issues *[bitCount]*issue // nil where nothing is wrong
}

// comparison compares rows with states.
type comparison struct {
	*function
	before   []int32 // the node that control comes from without a branch, or -1
	effects  *effects
	escaped  uint64
	switches bool
	// evaluator computes expressions.
	evaluator *cfi.Evaluator
	marks     []mark
	rets      tally
}

// tally counts the returns of functions with a frame by whether the row there is right.
type tally struct{ right, late int }

// node compares one instruction.
func (c *comparison) node(id int32, s *state) {
	n := &c.nodes[id]
	p := &c.parts[n.part]
	r := p.rowAt(n.addr)
	if r == nil {
		return
	}
	m := mark{addr: n.addr}
	if r.RA().Kind == cfi.Undefined { // an outermost frame has no caller whose registers could be asked for
		if n.inst.way == returns && c.holdsRA(s) && s.regs[c.p.sp] == (value{kind: onStack, off: -c.p.entryCFA}) {
			_, truth, directive := s.describe(int(c.p.ra), &cfi.Rule{Kind: cfi.Undefined})
			m.set(int(c.p.ra), &issue{kind: WrongRA, says: "ra=undefined", truth: truth, directive: directive})
			c.marks = append(c.marks, m)
		}
		return
	}
	c.split(p, n, r, &m)
	known := c.cfa(id, s, r, &m)
	if m.wrong>>bitCFA&1 == 0 && (known || !c.switches) {
		c.registers(n, s, r, known, &m)
	}
	c.marks = append(c.marks, m)
	if n.inst.way == returns && len(p.rows) > 1 {
		switch i := m.issue(bitCFA); {
		case i == nil && known:
			c.rets.right++
		case i != nil && i.kind == WrongEpilogue:
			c.rets.late++
		}
	}
}

// holdsRA says whether what a return goes by is the return address.
func (c *comparison) holdsRA(s *state) bool {
	if c.p.keepsRA() {
		return s.regs[c.p.ra].holds(c.p.ra)
	}
	return s.at(place{fromCFA, -c.p.entryCFA}).holds(c.p.ra)
}

func (m *mark) set(bit int, i *issue) {
	if m.issues == nil {
		m.issues = new([bitCount]*issue)
	}
	m.wrong |= 1 << bit
	m.issues[bit] = i
}

// issue returns what is wrong, nil if nothing is.
func (m *mark) issue(bit int) *issue {
	if m.issues == nil {
		return nil
	}
	return m.issues[bit]
}

// split looks for a row that begins within the instruction.
func (c *comparison) split(p *part, n *node, r *row, m *mark) {
	if r.End >= n.end() || r.End >= p.end || p.nodes[r.End-p.start] != 0 {
		return
	}
	next := p.rowAt(r.End)
	if next == nil || next.sameRules(r) {
		return
	}
	m.set(bitSplit, &issue{
		kind: SplitInsn, delta: int64(r.End),
		says:  fmt.Sprintf("from %#x on %s", r.End, next.Format(c.p.names)),
		truth: fmt.Sprintf("the instruction reaches from %#x to %#x", n.addr, n.end()),
	})
}

// cfa compares the CFA and says whether it is known to be right.
func (c *comparison) cfa(id int32, s *state, r *row, m *mark) (known bool) {
	n := &c.nodes[id]
	v, ok := s.cfaOf(&r.CFA, n.addr)
	if r.CFA.Kind == cfi.ValExpression && !(ok && v.kind == onStack) && !c.switches {
		switch c.try(s, n.addr, &r.CFA, false, value{kind: onStack}) {
		case right:
			m.right |= 1 << bitCFA
			return true
		case wrong:
			m.set(bitCFA, c.wrongCFA(id, s, r, 1<<41))
			return false
		}
	}
	switch {
	case ok && v.kind == onStack && v.off == 0:
		m.right |= 1 << bitCFA
		return true
	case ok && v.kind == onStack:
		m.set(bitCFA, c.wrongCFA(id, s, r, v.off))
	case c.switches:
	case ok && v.kind == anchored && r.CFA.Kind == cfi.RegOffset && c.varies(v.id):
		m.set(bitCFA, c.wrongCFA(id, s, r, 1<<42+int64(v.id)))
	case ok && v.kind == constant, ok && v.kind == unknown && v.may == 0, c.badRegister(s, r), ok && r.CFA.Kind == cfi.ValExpression && v.notCFA():
		m.set(bitCFA, c.wrongCFA(id, s, r, 1<<40+int64(r.CFA.Reg)))
	case c.atReturn(id, s, r):
		m.set(bitCFA, c.wrongCFA(id, s, r, r.CFA.Offset-c.p.entryCFA))
	}
	return false
}

// varies says whether what an anchor stands for is at another distance from the CFA from call to call.
func (c *comparison) varies(anchor int32) bool {
	var before *inst
	if k := c.before[anchor]; k >= 0 {
		before = &c.nodes[k].inst
	}
	return c.p.varies(&c.nodes[anchor].inst, before)
}

// badRegister says whether the CFA is relative to a register that cannot lead to the frame: one that holds what it held
// on entry, what a function that was called left there, or that holds no addresses.
func (c *comparison) badRegister(s *state, r *row) bool {
	if r.CFA.Kind != cfi.RegOffset {
		return false
	}
	reg, ok := c.p.general(uint32(r.CFA.Reg))
	if !ok {
		return true
	}
	v := s.regs[reg]
	return v.kind == entry || v.kind == unknown && v.may&(mayCallee|mayOwn) == mayCallee
}

// notCFA says whether what an expression read is certainly not where the frame is: what a register held on entry, or what
// the function has not written.
func (v value) notCFA() bool {
	return v.kind == never || v.kind == entry || v.kind == unknown && v.may&(mayCallee|mayOwn) == mayCallee
}

// atReturn says whether a row is wrong since a return takes what is on the top of the stack. What was pushed just before
// is a jump's target.
func (c *comparison) atReturn(id int32, s *state, r *row) bool {
	n := &c.nodes[id]
	if n.inst.way != returns || s.regs[c.p.sp].framed() || !c.p.bySP(&r.CFA) || r.CFA.Offset == c.p.entryCFA {
		return false
	}
	before := c.before[id]
	return before >= 0 && c.p.shrinks(&c.nodes[before].inst)
}

// bySP says whether a rule gives the CFA by the stack pointer.
func (p *processor) bySP(cfa *cfi.Rule) bool {
	return cfa.Kind == cfi.RegOffset && uint32(cfa.Reg) == p.dwarf(p.sp)
}

// wrongCFA makes the issue of a CFA that is off by delta.
func (c *comparison) wrongCFA(id int32, s *state, r *row, delta int64) *issue {
	i := &issue{kind: WrongCFA, delta: delta, says: cfaText(&r.CFA, c.p.names), truth: "another value"}
	n := &c.nodes[id]
	reg, off, ok := s.trueCFA(r)
	if !ok && n.inst.way == returns {
		reg, off, ok = c.p.sp, c.p.entryCFA, true
	}
	if ok {
		i.truth = fmt.Sprintf("cfa=%s%+d", c.p.name(reg), off)
		i.directive = c.cfaDirective(n, r, reg, off)
	}
	if c.leavesEpilogueOut(id, r, delta) {
		i.kind = WrongEpilogue
	} else if c.leavesPrologueOut(n, r) {
		i.kind = wrongPrologue
	}
	return i
}

// wrongPrologue is what becomes WrongCFA, unless rows leave prologues out throughout.
const wrongPrologue Kind = "prologue"

// leavesPrologueOut says whether the row is that of a function's entry, and merely goes on to where its frame is there: rows of what isn't
// asked for asynchronous unwind tables change once, behind the prologue.
func (c *comparison) leavesPrologueOut(n *node, r *row) bool {
	p := &c.parts[n.part]
	if !c.p.latePrologues || r.Start != p.start || !p.abiEntry || r.End >= p.end || r.End-r.Start > maxEpilogue*c.p.minLen {
		return false
	}
	for at := r.Start; at < r.End; {
		id := p.nodes[at-p.start] - 1
		if id < 0 || c.nodes[id].inst.way != goesOn {
			return false
		}
		at = c.nodes[id].end()
	}
	return true
}

// cfaText writes a CFA's rule.
func cfaText(rule *cfi.Rule, names cfi.NameFunc) string {
	if rule.Kind == cfi.Unspecified {
		return "no cfa"
	}
	return "cfa=" + rule.Format(names)
}

// trueCFA returns a register and what to add to it for the CFA: the row's own register if that leads there, then the
// stack pointer, then any.
func (s *state) trueCFA(r *row) (int, int64, bool) {
	order := []int{s.p.sp, s.p.fp}
	if reg, ok := s.p.general(uint32(r.CFA.Reg)); ok && r.CFA.Kind == cfi.RegOffset {
		order = append([]int{reg}, order...)
	}
	for k := range s.regs {
		order = append(order, k)
	}
	for _, reg := range order {
		if v := s.regs[reg]; v.kind == onStack {
			return reg, -v.off, true
		}
	}
	return 0, 0, false
}

const adjust = ".cfi_adjust_cfa_offset "

// cfaDirective writes what would define the CFA: an adjustment where the row goes on over an instruction that moved the
// stack pointer, a state remembered where other code begins, else a definition.
func (c *comparison) cfaDirective(n *node, r *row, reg int, off int64) string {
	same := r.CFA.Kind == cfi.RegOffset && uint32(r.CFA.Reg) == c.p.dwarf(reg)
	p := &c.parts[n.part]
	switch {
	case !same:
		return fmt.Sprintf(".cfi_def_cfa %s, %d", c.p.asm(reg), off)
	case n.addr > p.start && off > r.CFA.Offset && c.beginsAnew(n) && p.hadRow(n.addr, c.p.dwarf(reg), off):
		return ".cfi_restore_state" // of one remembered before the epilogue
	case r.Start < n.addr:
		return adjust + itoa(off-r.CFA.Offset)
	}
	return fmt.Sprintf(".cfi_def_cfa_offset %d", off)
}

// beginsAnew says whether control does not come to a node from the instruction before it.
func (c *comparison) beginsAnew(n *node) bool {
	id := c.parts[n.part].nodes[n.addr-c.parts[n.part].start] - 1
	return c.before[id] < 0
}

// maxRowsBack is how many rows of a function are looked at for one to return to.
const maxRowsBack = 256

// hadRow says whether a row before addr gave the CFA in this way.
func (p *part) hadRow(addr uint64, reg uint32, off int64) bool {
	for k := range p.rows[:min(len(p.rows), maxRowsBack)] {
		r := &p.rows[k]
		if r.Start < addr && r.CFA.Kind == cfi.RegOffset && uint32(r.CFA.Reg) == reg && r.CFA.Offset == off {
			return true
		}
	}
	return false
}

// maxEpilogue is the number of instructions of the longest epilogue that is told as one.
const maxEpilogue = 24

// leavesEpilogueOut says whether the row is that of the body, right before what is taken off the stack, and merely goes
// on to the function's exit. It is off by delta.
func (c *comparison) leavesEpilogueOut(id int32, r *row, delta int64) bool {
	first, taken := id, int64(0)
	at := id
	for range maxEpilogue {
		if at = c.before[at]; at < 0 || c.nodes[at].addr < r.Start {
			break
		}
		in := &c.nodes[at].inst
		switch {
		case c.p.shrinks(in), c.p.ofEpilogue(in):
			first = at
			taken += c.p.taken(in)
		case c.p.mixedEpilogues && in.way == goesOn:
		default:
			at = -1
		}
		if at < 0 {
			break
		}
	}
	if first == id || c.p.bySP(&r.CFA) && taken != delta {
		return false
	}
	return c.exits(id, r)
}

// exits says whether control goes on from a node to the function's exit, over nothing but what epilogues are made of, by the same row.
func (c *comparison) exits(id int32, r *row) bool {
	for range maxEpilogue {
		n := &c.nodes[id]
		switch n.inst.way {
		case returns:
			return n.addr < r.End
		case jump, indirectJump:
			return n.target < 0 && n.addr < r.End
		case goesOn:
		default:
			return false
		}
		if id = n.next; id < 0 {
			return false
		}
	}
	return false
}
