package dwarf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/callreel/callreel/internal/leb128"
)

// A lineStep is what a special opcode adds to the address and to the line.
type lineStep struct {
	addr uint32
	line int32
}

// stepKey is what the steps of special opcodes depend on.
type stepKey struct {
	lineBase, lineRange int64
	minInst             uint64
	opcodeBase          uint8
}

var errLineRange = errors.New("special opcode with a line range of 0")

// readLines reads the unit's line table: files and rows.
func (r *reader) readLines() {
	r.lines.count, r.lines.zero = 0, false
	u := r.unit
	if !r.root.hasLines {
		return
	}
	s := u.source
	at, data := r.root.stmtList, s.line.data
	if at >= uint64(len(data)) {
		r.note(u.problem(int(u.first), "line table at %#x is outside of %s (%#x bytes)", at, s.line.name, len(data)))
		return
	}
	c := cursor{data: data, at: int(at), big: s.big}
	n, _ := c.initialLength()
	if c.bad || n > uint64(c.remaining()) {
		r.note(s.problem(&s.line, at, "line table of %#x bytes: %w", n, errEnd))
		n = uint64(c.remaining()) // what there is of it
	}
	c.data = data[:uint64(c.at)+n]
	c.at, c.bad = int(at), false
	if !r.data.lineWork.charge(&u.charged, n) {
		r.note(s.problem(&s.line, at, "%w", errLineWork))
		return
	}
	// A file's name takes a byte or two, a row one: each may be all that there is.
	if r.budget -= int64(n) * rowCost; r.budget < 0 {
		r.note(s.problem(&s.line, at, "line table of %#x bytes: %w", n, r.tooMuch()))
		r.budget += int64(n) * rowCost
		return
	}
	defer func() { r.budget += int64(n) * rowCost }() // rows are few as a rule
	if err := r.readLineHeader(&c); err != nil {
		r.note(s.problem(&s.line, at, "header of a line table: %w", err))
		return
	}
	first := len(r.contents.Rows)
	p, err := r.runLines(&c)
	if err != nil {
		r.note(s.problem(&s.line, uint64(p), "line program of the table at %#x: %w", at, err))
	}
	// A sequence without an end is damaged; what is not closed is no sequence.
	if n := len(r.contents.Rows); n > first && !r.contents.Rows[n-1].End {
		for n > first && !r.contents.Rows[n-1].End {
			n--
		}
		r.contents.Rows = r.contents.Rows[:n]
	}
}

// prepare fills in the steps of the special opcodes (DWARF 5 §6.2.5.1).
func (l *lineReader) prepare() {
	h := &l.header
	key := stepKey{h.lineBase, int64(h.lineRange), h.minInst, h.opcodeBase}
	if key == l.stepOf {
		return
	}
	l.stepOf = key
	for op := int64(h.opcodeBase); op < 256 && h.lineRange != 0; op++ {
		adjusted := op - int64(h.opcodeBase)
		l.steps[op] = lineStep{
			addr: uint32(uint64(adjusted/key.lineRange) * h.minInst),
			line: int32(h.lineBase + adjusted%key.lineRange),
		}
	}
}

// lineState is the registers of the state machine that matter (DWARF 5 §6.2.2).
type lineState struct {
	addr    uint64
	opIndex uint64
	line    uint32
	file    uint32 // index in Contents.Files
}

// runLines runs the line program and appends its rows (DWARF 5 §6.2.5). It returns
// where it stopped.
func (r *reader) runLines(c *cursor) (int, error) {
	l := &r.lines
	h := &l.header
	if h.lineRange == 0 && h.program < len(c.data) {
		return h.program, errLineRange
	}
	l.prepare()
	var p int
	var err error
	if h.maxOps > 1 {
		r.contents.Rows, p, err = r.runWideLines(c, r.contents.Rows)
	} else {
		r.contents.Rows, p, err = r.runPlainLines(c, r.contents.Rows)
	}
	return p, err
}

// runPlainLines is runLines for all but processors with several operations in an
// instruction. Its state is in local variables, which stay in registers.
func (r *reader) runPlainLines(c *cursor, rows []Row) ([]Row, int, error) {
	l := &r.lines
	h := &l.header
	steps, opcodeBase, minInst := &l.steps, h.opcodeBase, h.minInst
	b, p := c.data, h.program
	first := len(rows) // of the sequence
	firstFile := l.file(1)
	addr, line, file := uint64(0), uint32(1), firstFile
	for uint(p) < uint(len(b)) {
		code := b[p]
		p++
		if code >= opcodeBase {
			step := steps[code]
			addr += uint64(step.addr)
			line += uint32(step.line)
		} else {
			switch code {
			case lnsCopy:
			case lnsSetColumn:
				if p = leb128.Skip(b, p); p < 0 {
					return rows, len(b), errEnd
				}
				continue
			case lnsAdvancePC:
				var v uint64
				if v, p = leb128.Uint(b, p); p < 0 {
					return rows, len(b), errEnd
				}
				addr += v * minInst
				continue
			case lnsAdvanceLine:
				var v int64
				if v, p = leb128.Int(b, p); p < 0 {
					return rows, len(b), errEnd
				}
				line += uint32(v)
				continue
			case lnsSetFile:
				var v uint64
				if v, p = leb128.Uint(b, p); p < 0 {
					return rows, len(b), errEnd
				}
				file = l.file(v)
				continue
			case lnsConstAddPC:
				addr += uint64(steps[255].addr)
				continue
			case lnsNegateStmt, lnsSetBasicBlock, lnsSetPrologueEnd, lnsSetEpilogue:
				continue
			default:
				c.at = p
				s := lineState{addr: addr, line: line, file: file}
				end, err := r.rareOpcode(c, code, &s)
				if p = c.at; err != nil {
					return rows, p, err
				}
				addr = s.addr
				if end {
					rows = r.endSequence(rows, first, addr)
					first = len(rows)
					addr, line, file = 0, 1, firstFile
				}
				continue
			}
		}
		// Neither a row that another one at the same address replaces is wanted,
		// nor one that says what the last one said.
		if n := len(rows); n > first {
			last := &rows[n-1]
			if last.Addr == addr {
				last.File, last.Line = file, line
				continue
			}
			if last.Line == line && last.File == file {
				continue
			}
		}
		rows = append(rows, Row{Addr: addr, File: file, Line: line})
	}
	return rows, len(b), nil
}

// rareOpcode runs an opcode that is extended, rare or not known; end is true for
// the end of a sequence.
func (r *reader) rareOpcode(c *cursor, code uint8, s *lineState) (end bool, err error) {
	if code == lnsExtended {
		return r.extended(c, s)
	}
	r.lines.header.otherStandard(c, code, s)
	if c.bad {
		return false, errEnd
	}
	return false, nil
}

// otherStandard runs a standard opcode that is rare, or one that is not known,
// whose operands the header counts.
func (h *lineHeader) otherStandard(c *cursor, code uint8, s *lineState) {
	switch code {
	case lnsFixedAdvancePC:
		s.addr += uint64(c.u16())
		s.opIndex = 0
	default:
		for range h.lengths[code] {
			c.uleb()
		}
	}
}

// extended runs an extended opcode (DWARF 5 §6.2.5.3); end is true for the end of a
// sequence.
func (r *reader) extended(c *cursor, s *lineState) (end bool, err error) {
	n := c.uleb()
	body := c.take(n)
	if c.bad {
		return false, errEnd
	}
	if n == 0 {
		return false, nil
	}
	switch body[0] {
	case lneEndSequence:
		return true, nil
	case lneSetAddress:
		addr, ok := fixed(body[1:], len(body)-1, c.big)
		if !ok {
			return false, fmt.Errorf("address of %d bytes", len(body)-1)
		}
		s.addr, s.opIndex = addr, 0
	case lneDefineFile:
		if r.lines.zero {
			break // not in version 5, whose file numbers it would upset
		}
		d := cursor{data: c.data[:c.at], at: c.at - len(body) + 1, big: c.big}
		if start, n := d.text(); !d.bad {
			r.defineFile(&d, start, n)
		}
	}
	return false, nil
}

// endSequence completes the sequence rows[first:], or takes it back when it holds
// no code.
func (r *reader) endSequence(rows []Row, first int, end uint64) []Row {
	if len(rows) == first {
		return rows
	}
	sequence := rows[first:]
	byAddr := func(a, b Row) int { return cmp.Compare(a.Addr, b.Addr) }
	if !slices.IsSortedFunc(sequence, byAddr) {
		slices.SortStableFunc(sequence, byAddr)
		sequence = lastOfEach(sequence)
	}
	low := sequence[0].Addr
	region := r.region
	if low < region.Low || low >= region.High {
		var ok bool
		if region, ok = r.data.regionOf(low); !ok {
			return rows[:first]
		}
		r.region = region
	}
	end = min(end, region.High)
	for len(sequence) > 0 && sequence[len(sequence)-1].Addr >= end {
		sequence = sequence[:len(sequence)-1]
	}
	if len(sequence) == 0 {
		return rows[:first]
	}
	return append(rows[:first+len(sequence)], Row{Addr: end, End: true})
}

// lastOfEach keeps the last of rows with the same address.
func lastOfEach(rows []Row) []Row {
	kept := rows[:0]
	for k, row := range rows {
		if k+1 == len(rows) || rows[k+1].Addr != row.Addr {
			kept = append(kept, row)
		}
	}
	return kept
}
