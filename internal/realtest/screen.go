package realtest

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Screen is what a terminal shows: as much of xterm as pages need that are drawn from the top.
type Screen struct {
	Alternate bool // the screen that programs draw on is shown, not the shell's
	Hidden    bool // the cursor is
	NoWrap    bool // lines that are too long are cut
	Unknown   []string

	columns, lines int
	cells, other   [][]rune
	x, y           int
	saved          [2]int
	rest           []byte // of a sequence that is not whole
}

// String is the text, without blanks at the end of lines.
func (s Screen) String() string {
	var b strings.Builder
	for _, row := range s.cells {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return b.String()
}

// Lines are the screen's.
func (s Screen) Lines() []string { return strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n") }

func (s *Screen) clone() Screen {
	c := *s
	c.cells, c.Unknown, c.rest = blank(0, 0), slices.Clone(s.Unknown), nil
	for _, row := range s.cells {
		c.cells = append(c.cells, slices.Clone(row))
	}
	return c
}

func blank(columns, lines int) [][]rune {
	cells := make([][]rune, lines)
	for i := range cells {
		cells[i] = slices.Repeat([]rune{' '}, columns)
	}
	return cells
}

// resize empties the screen.
func (s *Screen) resize(columns, lines int) {
	s.columns, s.lines = columns, lines
	s.cells, s.other = blank(columns, lines), blank(columns, lines)
	s.x, s.y = 0, 0
}

func (s *Screen) write(b []byte) {
	b = append(s.rest, b...)
	s.rest = nil
	for len(b) > 0 {
		switch {
		case b[0] == 0x1b:
			n := sequence(b)
			if n == 0 {
				s.rest = slices.Clone(b)
				return
			}
			s.control(string(b[:n]))
			b = b[n:]
			continue
		case b[0] == '\r':
			s.x = 0
		case b[0] == '\n':
			s.down()
		case b[0] == 8:
			s.x = max(0, s.x-1)
		case b[0] < ' ' || b[0] == 0x7f:
			s.Unknown = append(s.Unknown, strconv.Quote(string(b[:1])))
		default:
			if !utf8.FullRune(b) {
				s.rest = slices.Clone(b)
				return
			}
			r, n := utf8.DecodeRune(b)
			s.put(r)
			b = b[n:]
			continue
		}
		b = b[1:]
	}
}

// sequence is how many bytes the escape sequence is long that b begins with, 0 if it isn't whole.
func sequence(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != '[' {
		return 2
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= '@' && b[i] <= '~' {
			return i + 1
		}
	}
	return 0
}

func (s *Screen) down() {
	if s.y++; s.y == s.lines {
		s.y--
		s.cells = append(s.cells[1:], slices.Repeat([]rune{' '}, s.columns))
	}
}

func (s *Screen) put(r rune) {
	if s.x == s.columns {
		if s.NoWrap {
			s.x--
		} else {
			s.x = 0
			s.down()
		}
	}
	s.cells[s.y][s.x] = r
	s.x++
}

func (s *Screen) control(sequence string) {
	switch sequence {
	case "\x1b[H":
		s.x, s.y = 0, 0
	case "\x1b[K":
		s.clear(s.y, s.column())
	case "\x1b[J":
		s.clear(s.y, s.column())
		for y := s.y + 1; y < s.lines; y++ {
			s.clear(y, 0)
		}
	case "\x1b[?1049h", "\x1b[?1049l":
		if on := strings.HasSuffix(sequence, "h"); on != s.Alternate {
			s.Alternate = on
			s.cells, s.other = s.other, s.cells
			if here := [2]int{s.x, s.y}; on {
				s.saved = here
				s.cells = blank(s.columns, s.lines)
			} else {
				s.x, s.y = s.saved[0], s.saved[1]
			}
		}
	case "\x1b[?25h", "\x1b[?25l":
		s.Hidden = strings.HasSuffix(sequence, "l")
	case "\x1b[?7h", "\x1b[?7l":
		s.NoWrap = strings.HasSuffix(sequence, "l")
	default:
		if !strings.HasPrefix(sequence, "\x1b[") || !strings.HasSuffix(sequence, "m") { // colours are not kept
			s.Unknown = append(s.Unknown, strconv.Quote(sequence))
		}
	}
}

// column is where the cursor is. Behind a character in the last column it stays there, until another comes.
func (s *Screen) column() int { return min(s.x, s.columns-1) }

func (s *Screen) clear(y, x int) {
	for ; x < s.columns; x++ {
		s.cells[y][x] = ' '
	}
}
