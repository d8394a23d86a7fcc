package lint

import (
	"fmt"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
)

// What a row says something about, as bits: the general registers by their number, and these.
const (
	bitRA    = returnAddress
	bitCFA   = 17
	bitOther = 18 // registers that are not general
	bitSplit = 19
	bits     = 20
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
	right  uint32
	wrong  uint32
	issues *[bits]*issue // nil where nothing is wrong
}

// comparison compares rows with states.
type comparison struct {
	*function
	before   []int32 // the node that control comes from without a branch, or -1
	effects  *effects
	escaped  uint32
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
		if n.inst.Kind == amd64.Return && s.at(place{fromCFA, -8}).holds(returnAddress) && s.regs[rsp] == (value{kind: onStack, off: -8}) {
			m.set(bitRA, &issue{kind: WrongRA, says: "ra=undefined", truth: "ra=[cfa-8]", directive: ".cfi_offset rip, -8"})
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
	if n.inst.Kind == amd64.Return && len(p.rows) > 1 {
		switch i := m.issue(bitCFA); {
		case i == nil && known:
			c.rets.right++
		case i != nil && i.kind == WrongEpilogue:
			c.rets.late++
		}
	}
}

func (m *mark) set(bit int, i *issue) {
	if m.issues == nil {
		m.issues = new([bits]*issue)
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
	if r.End >= n.addr+uint64(n.inst.Len) || r.End >= p.end || p.nodes[r.End-p.start] != 0 {
		return
	}
	next := p.rowAt(r.End)
	if next == nil || next.sameRules(r) {
		return
	}
	m.set(bitSplit, &issue{
		kind: SplitInsn, delta: int64(r.End),
		says:  fmt.Sprintf("from %#x on %s", r.End, next.Format(names)),
		truth: fmt.Sprintf("the instruction reaches from %#x to %#x", n.addr, n.addr+uint64(n.inst.Len)),
	})
}

func names(reg uint32) string { return amd64.DWARFName(int(reg)) }

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
		m.set(bitCFA, c.wrongCFA(id, s, r, r.CFA.Offset-8))
	}
	return false
}

// varies says whether what an anchor stands for is at another distance from the CFA from call to call. A stack pointer that
// is aligned to 16 bytes may always have been so; and calls that touch the pages of a large frame keep its size in a register.
func (c *comparison) varies(anchor int32) bool {
	const stackAlignment = 16 // System V AMD64 ABI §3.2.2
	in := &c.nodes[anchor].inst
	if in.Opcode == 0x81 || in.Opcode == 0x83 {
		return in.Imm < -stackAlignment
	}
	before := c.before[anchor]
	return (in.Opcode == 0x29 || in.Opcode == 0x2B) && before >= 0 && c.nodes[before].inst.Kind == amd64.Other // sub, by what is not known
}

// badRegister says whether the CFA is relative to a register that cannot lead to the frame: one that holds what it held
// on entry, what a function that was called left there, or that holds no addresses.
func (c *comparison) badRegister(s *state, r *row) bool {
	if r.CFA.Kind != cfi.RegOffset {
		return false
	}
	reg, ok := general(uint32(r.CFA.Reg))
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
	if n.inst.Kind != amd64.Return || s.regs[rsp].framed() || r.CFA.Kind != cfi.RegOffset || r.CFA.Reg != dwarfRSP || r.CFA.Offset == 8 {
		return false
	}
	before := c.before[id]
	return before >= 0 && shrinks(&c.nodes[before].inst)
}

// shrinks says whether the instruction takes something off the stack, as epilogues do.
func shrinks(in *amd64.Inst) bool {
	if in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary || in.Kind != amd64.Other {
		return false
	}
	if in.Opcode == 0xC9 {
		return true
	}
	delta, known := in.StackDelta()
	return known && delta > 0 || !known && in.GPRWritten() == 1<<rsp && in.Opcode == 0x8D
}

// wrongCFA makes the issue of a CFA that is off by delta.
func (c *comparison) wrongCFA(id int32, s *state, r *row, delta int64) *issue {
	i := &issue{kind: WrongCFA, delta: delta, says: cfaText(&r.CFA, names), truth: "another value"}
	n := &c.nodes[id]
	reg, off, ok := s.trueCFA(r)
	if !ok && n.inst.Kind == amd64.Return {
		reg, off, ok = rsp, 8, true
	}
	if ok {
		i.truth = fmt.Sprintf("cfa=%s%+d", reg, off)
		i.directive = c.cfaDirective(n, r, reg, off)
	}
	if c.leavesEpilogueOut(id, r, delta) {
		i.kind = WrongEpilogue
	}
	return i
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
func (s *state) trueCFA(r *row) (amd64.Reg, int64, bool) {
	order := []amd64.Reg{rsp, amd64.RBP}
	if reg, ok := general(uint32(r.CFA.Reg)); ok && r.CFA.Kind == cfi.RegOffset {
		order = append([]amd64.Reg{reg}, order...)
	}
	for k := range s.regs {
		order = append(order, amd64.Reg(k))
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
func (c *comparison) cfaDirective(n *node, r *row, reg amd64.Reg, off int64) string {
	same := r.CFA.Kind == cfi.RegOffset && uint32(r.CFA.Reg) == dwarfOf(int(reg))
	p := &c.parts[n.part]
	switch {
	case !same:
		return fmt.Sprintf(".cfi_def_cfa %s, %d", reg, off)
	case n.addr > p.start && off > r.CFA.Offset && c.beginsAnew(n) && p.hadRow(n.addr, reg, off):
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
func (p *part) hadRow(addr uint64, reg amd64.Reg, off int64) bool {
	for k := range p.rows[:min(len(p.rows), maxRowsBack)] {
		r := &p.rows[k]
		if r.Start < addr && r.CFA.Kind == cfi.RegOffset && uint32(r.CFA.Reg) == dwarfOf(int(reg)) && r.CFA.Offset == off {
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
	for c.before[first] >= 0 && c.nodes[c.before[first]].addr >= r.Start && shrinks(&c.nodes[c.before[first]].inst) {
		first = c.before[first]
		n, _ := c.nodes[first].inst.StackDelta()
		taken += int64(n)
	}
	byRSP := r.CFA.Kind == cfi.RegOffset && r.CFA.Reg == dwarfRSP
	if first == id || byRSP && taken != delta {
		return false
	}
	for range maxEpilogue {
		n := &c.nodes[id]
		switch n.inst.Kind {
		case amd64.Return:
			return n.addr < r.End
		case amd64.Jump, amd64.IndirectJump:
			return n.target < 0 && n.addr < r.End
		case amd64.Other:
		default:
			return false
		}
		if id = n.next; id < 0 {
			return false
		}
	}
	return false
}
