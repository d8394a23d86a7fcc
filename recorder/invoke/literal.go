package invoke

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// LiteralKind says what a literal is.
type LiteralKind uint8

// The kinds.
const (
	Integer LiteralKind = iota // a number, a character, true, false, NULL
	Double                     // of 8 bytes
	Single                     // a float, of 4 bytes
	Text                       // a string, whose address is passed
	Symbol                     // the address of a symbol
	Offset                     // an address within an image
)

// A Literal is an argument as somebody has written it.
type Literal struct {
	Kind  LiteralKind
	Bits  uint64 // of a number, as a register has it
	Text  []byte // of a string, without the zero at its end
	Image string // of a symbol or an offset: the base name of its file, or a glob; "" for any
	Name  string // of a symbol
	Add   int64  // to a symbol's address, or from an image's first byte
}

func parseLiteral(text string) (Literal, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Literal{}, errors.New("there is nothing")
	case text[0] == '"':
		b, err := parseStrings(text)
		return Literal{Kind: Text, Text: b}, err
	case text[0] == '\'':
		return parseCharacter(text)
	case text[0] == '&':
		return parseAddress(strings.TrimSpace(text[1:]))
	}
	switch text {
	case "NULL", "nullptr", "false":
		return Literal{}, nil
	case "true":
		return Literal{Bits: 1}, nil
	}
	if l, ok := parseInteger(text); ok {
		return l, nil
	}
	if l, ok := parseFloat(text); ok {
		return l, nil
	}
	if at := strings.LastIndex(text, "+0x"); at > 0 && !strings.ContainsAny(text[:at], "\"'() ") {
		if n, err := strconv.ParseInt(text[at+1:], 0, 64); err == nil {
			return Literal{Kind: Offset, Image: text[:at], Add: n}, nil
		}
	}
	return Literal{}, fmt.Errorf("%q is neither a number, 'c', \"text\", true, false, NULL, &symbol nor image+0x10", text)
}

// parseInteger reads C's integers: of every base, with a sign and a suffix.
func parseInteger(text string) (Literal, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	digits = strings.TrimSpace(digits)
	if digits == "" || digits[0] < '0' || digits[0] > '9' || strings.ContainsAny(digits, "_oO") { // Go's own forms
		return Literal{}, false
	}
	number := strings.TrimRight(digits, "uUlL")
	if len(digits)-len(number) > 3 {
		return Literal{}, false
	}
	n, err := strconv.ParseUint(number, 0, 64)
	if err != nil || negative && n > 1<<63 {
		return Literal{}, false
	}
	if negative {
		n = -n
	}
	return Literal{Bits: n}, true
}

// parseFloat reads a double, or with f at its end a float.
func parseFloat(text string) (Literal, bool) {
	number, single := text, false
	hex := strings.Contains(text, "0x") || strings.Contains(text, "0X")
	if !hex || strings.ContainsAny(text, "pP") {
		if n, ok := strings.CutSuffix(strings.TrimSuffix(text, "F"), "f"); ok || n != text {
			number, single = n, true
		}
	}
	if !strings.ContainsAny(number, "0123456789") || !strings.ContainsAny(number, ".eEpP") || strings.Contains(number, "_") {
		return Literal{}, false
	}
	size := 64
	if single {
		size = 32
	}
	v, err := strconv.ParseFloat(number, size)
	if err != nil {
		return Literal{}, false
	}
	if single {
		return Literal{Kind: Single, Bits: uint64(math.Float32bits(float32(v)))}, true
	}
	return Literal{Kind: Double, Bits: math.Float64bits(v)}, true
}

func parseCharacter(text string) (Literal, error) {
	b, rest, err := parseQuoted(text, '\'')
	switch {
	case err != nil:
		return Literal{}, err
	case strings.TrimSpace(rest) != "":
		return Literal{}, fmt.Errorf("%q stands behind a character", rest)
	case len(b) != 1:
		return Literal{}, fmt.Errorf("%s is %d bytes, not one character", text, len(b))
	}
	return Literal{Bits: uint64(int64(int8(b[0])))}, nil // char has a sign
}

// parseStrings reads a string, or several behind one another, which are one.
func parseStrings(text string) ([]byte, error) {
	out := []byte{}
	for text != "" {
		if text[0] != '"' {
			return nil, fmt.Errorf("%q stands behind a string", text)
		}
		b, rest, err := parseQuoted(text, '"')
		if err != nil {
			return nil, err
		}
		out, text = append(out, b...), strings.TrimSpace(rest)
	}
	return out, nil
}

// simpleEscapes are those of one letter (C17 §6.4.4.4), and \e.
var simpleEscapes = map[byte]byte{
	'n': '\n', 't': '\t', 'r': '\r', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v', 'e': 27, '\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// parseQuoted reads what stands between quotes, and returns what follows.
func parseQuoted(text string, quote byte) (out []byte, rest string, err error) {
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == quote:
			return out, text[i+1:], nil
		case c != '\\':
			out = append(out, c)
			continue
		}
		i++
		if i == len(text) {
			break
		}
		b, n, err := escape(text[i:])
		if err != nil {
			return nil, "", err
		}
		out = append(out, b)
		i += n - 1
	}
	return nil, "", fmt.Errorf("%s has no end", text)
}

// escape reads what stands behind a backslash, and how long it is.
func escape(text string) (b byte, n int, err error) {
	digits := func(from, most, base int) (uint64, int) {
		end := from
		for end < len(text) && end-from < most && strings.IndexByte("0123456789abcdefABCDEF"[:min(base+base/16*6, 22)], text[end]) >= 0 {
			end++
		}
		v, _ := strconv.ParseUint(text[from:end], base, 16)
		return v, end
	}
	switch c := text[0]; {
	case c == 'x':
		v, end := digits(1, 2, 16)
		if end == 1 {
			return 0, 0, errors.New(`\x has no digits`)
		}
		return byte(v), end, nil
	case c >= '0' && c <= '7':
		v, end := digits(0, 3, 8)
		if v > 255 {
			return 0, 0, fmt.Errorf(`\%s is no byte`, text[:end])
		}
		return byte(v), end, nil
	default:
		b, ok := simpleEscapes[c]
		if !ok {
			return 0, 0, fmt.Errorf(`\%c is no escape`, c)
		}
		return b, 1, nil
	}
}

// parseAddress reads [IMAGE:]SYMBOL[+N], N also negative.
func parseAddress(text string) (Literal, error) {
	l := Literal{Kind: Symbol}
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		l.Image, text = text[:at], text[at+1:]
	}
	if at := strings.IndexAny(text, "+-"); at >= 0 {
		n, ok := parseInteger(strings.TrimPrefix(text[at:], "+"))
		if !ok {
			return l, fmt.Errorf("%q is no number", text[at:])
		}
		l.Add, text = int64(n.Bits), strings.TrimSpace(text[:at])
	}
	if !isSymbol(text) {
		return l, fmt.Errorf("&%s is no symbol's address", text)
	}
	l.Name = text
	return l, nil
}
