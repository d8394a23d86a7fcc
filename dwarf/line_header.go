package dwarf

import (
	"errors"
	"fmt"
)

// A lineReader reads line tables. Its memory is used again.
type lineReader struct {
	header lineHeader
	dirs   []lineName
	count  int  // of the table's files
	zero   bool // files are numbered from 0
	steps  [256]lineStep
	stepOf stepKey
}

// lineHeader is what a line program's header says (DWARF 5 §6.2.4).
type lineHeader struct {
	version    uint16
	addrSize   int
	offset     int // bytes of an offset
	minInst    uint64
	maxOps     uint64
	lineBase   int64
	lineRange  uint64
	opcodeBase uint8
	lengths    [256]uint8 // of the standard opcodes' operands
	program    int        // where the program starts
}

// lineName is a directory or the name of a file.
type lineName struct {
	text     String
	absolute bool
}

var errLineFormat = errors.New("unknown form in a file table")

// file turns the number of a file in the table into an index in Contents.Files.
func (l *lineReader) file(number uint64) uint32 {
	if l.zero {
		number++
	}
	if number == 0 || number > uint64(l.count) {
		return 0
	}
	return uint32(number)
}

// readHeader reads the header at the cursor, files and directories included; the
// cursor's data must end with the table.
func (r *reader) readLineHeader(c *cursor) error {
	l := &r.lines
	h := &l.header
	_, h.offset = c.initialLength()
	h.version = c.u16()
	if c.bad {
		return errEnd
	}
	if h.version < 2 || h.version > 5 {
		return fmt.Errorf("version %d, want 2 to 5", h.version)
	}
	h.addrSize = int(r.unit.shape.addr)
	if h.version >= 5 {
		h.addrSize = int(c.u8())
		c.u8() // size of a segment selector
	}
	length := c.fixed(h.offset)
	if c.bad || length > uint64(c.remaining()) {
		return fmt.Errorf("header of %#x bytes: %w", length, errEnd)
	}
	h.program = c.at + int(length)
	if err := h.readParameters(c); err != nil {
		return err
	}
	if c.at > h.program {
		return fmt.Errorf("header of %#x bytes: %w", length, errEnd)
	}
	tables := cursor{data: c.data[:h.program], at: c.at, big: c.big}
	if h.version >= 5 {
		return r.readFiles5(&tables)
	}
	return r.readFiles2(&tables)
}

// readParameters reads what the opcodes mean.
func (h *lineHeader) readParameters(c *cursor) error {
	h.minInst, h.maxOps = uint64(c.u8()), 1
	if h.version >= 4 {
		h.maxOps = max(uint64(c.u8()), 1)
	}
	c.u8() // default of is_stmt
	h.lineBase = int64(int8(c.u8()))
	h.lineRange = uint64(c.u8())
	h.opcodeBase = c.u8()
	if c.bad || h.opcodeBase == 0 {
		return errEnd
	}
	clear(h.lengths[:])
	copy(h.lengths[1:], c.take(uint64(h.opcodeBase)-1))
	if c.bad {
		return errEnd
	}
	return nil
}

// readFiles2 reads the tables of versions 2 to 4, whose numbers start with 1: 0 is
// the compilation directory (DWARF 4 §6.2.4).
func (r *reader) readFiles2(c *cursor) error {
	l := &r.lines
	l.zero = false
	l.dirs = append(l.dirs[:0], lineName{})
	for {
		start, n := c.text()
		if c.bad {
			return fmt.Errorf("directories: %w", errEnd)
		}
		if n == 0 {
			break
		}
		l.dirs = append(l.dirs, r.lineText(c, start, n))
	}
	for {
		start, n := c.text()
		if c.bad {
			return fmt.Errorf("files: %w", errEnd)
		}
		if n == 0 {
			return nil
		}
		r.defineFile(c, start, n)
		if c.bad {
			return fmt.Errorf("files: %w", errEnd)
		}
	}
}

// defineFile reads what follows the name of a file in versions 2 to 4.
func (r *reader) defineFile(c *cursor, start, n int) {
	dir := c.uleb()
	c.uleb() // time
	c.uleb() // size
	if !c.bad {
		r.addFile(r.lineText(c, start, n), dir)
	}
}

// lineText names a string in .debug_line itself.
func (r *reader) lineText(c *cursor, start, n int) lineName {
	s := r.unit.source
	return lineName{s.string(partLine, uint64(start)), isAbsolute(c.data[start : start+n])}
}

// addFile appends a file to Contents.Files.
func (r *reader) addFile(name lineName, dir uint64) {
	f := File{Name: name.text}
	if !name.absolute {
		var in lineName
		if dir < uint64(len(r.lines.dirs)) {
			in = r.lines.dirs[dir]
		}
		f.Dir = in.text
		if !in.absolute && (dir != 0 || !r.lines.zero) {
			f.CompDir = r.root.compDir
		}
	}
	r.budget -= fileCost
	r.contents.Files = append(r.contents.Files, f)
	r.lines.count++
}

// isAbsolute says whether a path is one, as Unix or Windows has them.
func isAbsolute(path []byte) bool {
	if len(path) > 0 && (path[0] == '/' || path[0] == '\\') {
		return true
	}
	return len(path) > 2 && path[0] != 0 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}

// maxLineFormat is how many kinds of values an entry of a file table may have.
// There are five in the standard.
const maxLineFormat = 32

// lineFormat describes the entries of a version 5 table.
type lineFormat struct {
	fields [maxLineFormat]struct {
		content  uint64
		encoding encoding
		form     uint8
	}
	count int
}

// readLineFormat reads the description of a table and how many entries it has.
func (h *lineHeader) readLineFormat(c *cursor, f *lineFormat) (entries uint64, err error) {
	f.count = int(c.u8())
	if f.count > maxLineFormat {
		return 0, fmt.Errorf("%d fields an entry", f.count)
	}
	s := shape{addr: uint8(h.addrSize), offset: uint8(h.offset)}
	size := false
	for k := range f.count {
		field := &f.fields[k]
		field.content = c.uleb()
		field.encoding, field.form = s.encode(c.uleb())
		switch field.encoding {
		case encConst, encIndirect, encUnknown:
			return 0, errLineFormat
		}
		size = size || field.encoding != encNothing
	}
	entries = c.uleb()
	if c.bad {
		return 0, errEnd
	}
	if !size {
		entries = 0 // entries of no bytes could be of any number
	}
	return entries, nil
}

// readFiles5 reads the tables of version 5, whose numbers start with 0, and whose
// directory 0 is the compilation directory (DWARF 5 §6.2.4.1).
func (r *reader) readFiles5(c *cursor) error {
	l := &r.lines
	l.zero = true
	l.dirs = l.dirs[:0]
	var format lineFormat
	n, err := l.header.readLineFormat(c, &format)
	if err != nil {
		return fmt.Errorf("directories: %w", err)
	}
	for range n {
		dir, _ := r.lineEntry(c, &format)
		if c.bad {
			return fmt.Errorf("directories: %w", errEnd)
		}
		l.dirs = append(l.dirs, dir)
	}
	if n, err = l.header.readLineFormat(c, &format); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	for range n {
		name, dir := r.lineEntry(c, &format)
		if c.bad {
			return fmt.Errorf("files: %w", errEnd)
		}
		r.addFile(name, dir)
	}
	return nil
}

// lineEntry reads one entry of a version 5 table.
func (r *reader) lineEntry(c *cursor, f *lineFormat) (name lineName, dir uint64) {
	for k := range f.count {
		field := &f.fields[k]
		v, end := field.encoding.value(c.data, c.at, c.big)
		if c.bad || end < 0 {
			c.bad = true
			return name, 0
		}
		c.at = end
		switch field.content {
		case lnctPath:
			name = r.lineString(field.form, v)
		case lnctDirectoryIndex:
			dir = v
		}
	}
	return name, dir
}

// lineString turns a value of class string in a line table into a name.
func (r *reader) lineString(form uint8, v uint64) lineName {
	var text String
	if form == formString {
		text = r.unit.source.string(partLine, v)
	} else {
		text = r.unit.string(&r.root, form, v)
	}
	return lineName{text, r.data.startsAbsolute(text)}
}

// startsAbsolute looks at no more of the string than it must: it may be long.
func (d *Data) startsAbsolute(s String) bool {
	b := d.from(s)
	return isAbsolute(b[:min(len(b), 3)])
}
