package step

import (
	"encoding/binary"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/cfi/lint"
)

// What a row says something about, as bits: registers by their DWARF numbers, and these.
const (
	bitCFA  = 33
	bitNone = 34 // there is no row, or it cannot be read
	bitSign = 35 // whether the return address is signed
	bits    = 36
)

// issue is one thing that a row says wrong at one instruction.
type issue struct {
	kind                   lint.Kind
	says, truth, directive string
	delta                  uint64 // equal for instructions with the same error
	adjust                 int64  // what an adjustment of the CFA's offset would have to add, where one would mend it
}

// mark is what comparing the row of one instruction gave, each time that it was carried out.
type mark struct {
	wrong  uint64
	issues map[int]*issue // by bit; nil where nothing is wrong
}

func (m *mark) set(bit int, i *issue) {
	if m.wrong>>bit&1 != 0 {
		return // what was found first stands
	}
	if m.issues == nil {
		m.issues = map[int]*issue{}
	}
	m.wrong |= 1 << bit
	m.issues[bit] = i
}

// comparison compares the row of an instruction with a call.
type comparison struct {
	evaluator cfi.Evaluator
	// read reads the memory of the process.
	read func(addr uint64, buf []byte) error

	// saveArea is the memory below the CFA, where registers are saved, read once for an instruction.
	saveArea   [saveAreaSize]byte
	saveAreaOK bool

	row   *cfi.Row
	regs  *registers
	call  *shadow
	mark  *mark
	slide uint64
	cfa   uint64 // the call's
}

// saveAreaSize holds what functions save at the beginning of their frames: eight registers.
const saveAreaSize = 64

// look gets ready for an instruction of a call, and says whether the call is still what it was when it began: a function
// that has put another return address in the place of its own, as unwinders do that install the frame of a handler, will
// return to where nothing is known of.
func (c *comparison) look(regs *registers, call *shadow) bool {
	c.regs, c.call, c.cfa = regs, call, call.cfa
	c.saveAreaOK = c.read(call.cfa-saveAreaSize, c.saveArea[:]) == nil
	return c.intact()
}

// compare compares the row of the instruction that was looked at with its call. slide leads from link addresses to those of
// the process.
func (c *comparison) compare(row *cfi.Row, slide uint64, m *mark) {
	ra := row.RA()
	if ra.Kind == cfi.Undefined {
		return // an outermost frame has no caller to go back to
	}
	c.row, c.slide, c.mark = row, slide, m
	call := c.call
	cfa, ok := c.computeCFA()
	if !ok || cfa != call.cfa {
		if elsewhere(row.Reg(dwarfSP).Kind) {
			return
		}
		c.mark.set(bitCFA, c.wrongCFA(cfa))
		return // what is relative to it would be wrong again
	}
	c.holdRA(&ra)
	for k, reg := range calleeSaved {
		rule := row.Reg(reg)
		c.hold(int(reg), &rule, call.saved[k])
	}
	if rule := row.Reg(dwarfSP); rule.Kind != cfi.Unspecified {
		c.hold(dwarfSP, &rule, call.cfa)
	}
}

// elsewhere says whether a rule of the stack pointer takes it from somewhere else than the CFA. Rows with such a rule and another
// CFA describe the frame that is about to be installed, as those of longjmp and setcontext do.
func elsewhere(k cfi.RuleKind) bool {
	return k == cfi.Register || k == cfi.Offset || k == cfi.Expression || k == cfi.ValExpression
}

// hold compares what one rule gives with the truth.
func (c *comparison) hold(bit int, rule *cfi.Rule, truth uint64) {
	v, ok := c.value(bit, rule)
	if rule.Kind == cfi.Undefined || ok && v == truth {
		return
	}
	if c.mark.wrong>>bit&1 == 0 {
		c.mark.set(bit, c.wrongRule(bit, rule, truth))
	}
}

// computeCFA says false when the CFA cannot be computed.
func (c *comparison) computeCFA() (uint64, bool) {
	switch c.row.CFA.Kind {
	case cfi.RegOffset:
		v, ok := c.register(uint32(c.row.CFA.Reg))
		return v + uint64(c.row.CFA.Offset), ok
	case cfi.ValExpression:
		return c.evaluate(c.row.CFA.Expr, false)
	}
	return 0, false
}

// value computes a register's value in the caller.
func (c *comparison) value(bit int, rule *cfi.Rule) (uint64, bool) {
	switch rule.Kind {
	case cfi.Unspecified, cfi.SameValue:
		return c.register(uint32(bit)) // false for the return address, which is in no register of its own
	case cfi.Offset:
		return c.word(c.cfa + uint64(rule.Offset))
	case cfi.ValOffset:
		return c.cfa + uint64(rule.Offset), true
	case cfi.Register:
		return c.register(uint32(rule.Reg))
	case cfi.Expression:
		at, ok := c.evaluate(rule.Expr, true)
		if !ok {
			return 0, false
		}
		return c.word(at)
	case cfi.ValExpression:
		return c.evaluate(rule.Expr, true)
	}
	return 0, false
}

func (c *comparison) register(reg uint32) (uint64, bool) {
	if reg >= uint32(len(c.regs.general)) {
		return 0, false
	}
	return c.regs.general[reg], true
}

func (c *comparison) word(addr uint64) (uint64, bool) {
	if at := addr - (c.cfa - saveAreaSize); c.saveAreaOK && at <= saveAreaSize-8 {
		return binary.LittleEndian.Uint64(c.saveArea[at:]), true
	}
	var b [8]byte
	if c.read(addr, b[:]) != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// evaluate computes an expression. On x86-64 the column of the return address stands for the program counter, which
// procedure linkage tables go by; it is an address of the running process, as DW_OP_addr is not, which is not met here.
func (c *comparison) evaluate(expr []byte, withCFA bool) (uint64, bool) {
	v, err := c.evaluator.Eval(expr, &cfi.EvalInput{
		CFA: c.cfa, HasCFA: withCFA, Read: c.read,
		Reg: func(reg uint32) (uint64, bool) {
			if reg == columnPC {
				return c.regs.pc, true
			}
			return c.register(reg)
		},
	})
	return v, err == nil
}
