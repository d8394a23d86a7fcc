package dwarf

// runWideLines is runLines for processors whose instructions hold several
// operations, of which op_index counts (DWARF 5 §6.2.5.1). There are few of them;
// kept apart, they cost the others nothing.
func (r *reader) runWideLines(c *cursor, rows []Row) ([]Row, int, error) {
	l := &r.lines
	h := &l.header
	first := len(rows)
	start := lineState{line: 1, file: l.file(1)}
	s := start
	c.at = h.program
	for c.remaining() > 0 {
		code := c.u8()
		emit := false
		switch {
		case code >= h.opcodeBase:
			adjusted := uint64(code - h.opcodeBase)
			s.advance(h, adjusted/h.lineRange)
			s.line += uint32(h.lineBase + int64(adjusted%h.lineRange))
			emit = true
		case code == lnsCopy:
			emit = true
		case code == lnsAdvancePC:
			s.advance(h, c.uleb())
		case code == lnsAdvanceLine:
			s.line += uint32(c.sleb())
		case code == lnsSetFile:
			s.file = l.file(c.uleb())
		case code == lnsConstAddPC:
			s.advance(h, uint64(255-h.opcodeBase)/h.lineRange)
		default:
			end, err := r.rareOpcode(c, code, &s)
			if err != nil {
				return rows, c.at, err
			}
			if end {
				rows = r.endSequence(rows, first, s.addr)
				first, s = len(rows), start
			}
		}
		if c.bad {
			return rows, c.at, errEnd
		}
		if emit {
			rows = addRow(rows, first, &s)
		}
	}
	return rows, c.at, nil
}

// advance moves on by n operations.
func (s *lineState) advance(h *lineHeader, n uint64) {
	n += s.opIndex
	s.addr += h.minInst * (n / h.maxOps)
	s.opIndex = n % h.maxOps
}

// addRow appends a row, or changes the last one at the same address.
func addRow(rows []Row, first int, s *lineState) []Row {
	if n := len(rows); n > first && rows[n-1].Addr == s.addr {
		rows[n-1].File, rows[n-1].Line = s.file, s.line
		return rows
	}
	return append(rows, Row{Addr: s.addr, File: s.file, Line: s.line})
}
