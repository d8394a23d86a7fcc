package screen

import (
	"io"
	"unicode/utf8"
)

// Key is a key that was pressed: a character, or one of those below.
type Key rune

// Keys without a character.
const (
	Up Key = -1 - iota
	Down
	Left
	Right
	PageUp
	PageDown
	Home
	End
	Unknown
)

// Keys that are control characters.
const (
	CtrlC     Key = 3
	Tab       Key = 9
	Enter     Key = 13
	CtrlU     Key = 21
	CtrlZ     Key = 26
	Esc       Key = 27
	CtrlSlash Key = 28 // Ctrl-\
	Space     Key = 32
	Backspace Key = 127
)

// readKeys sends the keys that r's bytes are, until there are no more.
func readKeys(r io.Reader, keys chan<- Key) {
	defer close(keys)
	buf := make([]byte, 256)
	for {
		n, err := r.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			key, used := parseKey(b)
			keys <- key
			b = b[used:]
		}
		if err != nil {
			return
		}
	}
}

// parseKey returns the key that b begins with, and of how many bytes it is. A terminal writes those of one key at once, so an escape
// character with nothing behind it is the key of that name.
func parseKey(b []byte) (Key, int) {
	switch {
	case b[0] == byte(Esc) && len(b) > 2 && (b[1] == '[' || b[1] == 'O'):
		return parseSequence(b)
	case b[0] == '\n':
		return Enter, 1
	case b[0] == 8:
		return Backspace, 1
	case b[0] < utf8.RuneSelf:
		return Key(b[0]), 1
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError {
		return Unknown, n
	}
	return Key(r), n
}

// parseSequence reads a control sequence (ECMA-48 §5.4) or one of xterm's of three bytes.
func parseSequence(b []byte) (Key, int) {
	n := 2
	for n < len(b) && (b[n] < '@' || b[n] > '~') {
		n++
	}
	if n == len(b) {
		return Unknown, n
	}
	switch b[n] {
	case 'A':
		return Up, n + 1
	case 'B':
		return Down, n + 1
	case 'C':
		return Right, n + 1
	case 'D':
		return Left, n + 1
	case 'H':
		return Home, n + 1
	case 'F':
		return End, n + 1
	case '~':
		switch string(b[2:n]) {
		case "1", "7":
			return Home, n + 1
		case "4", "8":
			return End, n + 1
		case "5":
			return PageUp, n + 1
		case "6":
			return PageDown, n + 1
		}
	}
	return Unknown, n + 1
}
