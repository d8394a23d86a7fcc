package demangle

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// constant reads a constant.
func (p *rustParser) constant(in rustContext) {
	if !p.enter() {
		return
	}
	defer p.leave()
	switch c := p.next(); c {
	case 'p':
		p.put("_")
	case 'h', 't', 'm', 'y', 'o', 'j':
		p.integer()
	case 'a', 's', 'l', 'x', 'n', 'i':
		if p.nextIf('n') {
			p.put("-")
		}
		p.integer()
	case 'b':
		p.boolean()
	case 'c':
		p.character()
	case 'R':
		if p.nextIf('e') {
			p.stringText()
			return
		}
		p.braced(c, in)
	case 'e', 'Q', 'A', 'T', 'V':
		p.braced(c, in)
	case 'B':
		if resume, ok := p.back(); ok {
			p.constant(in)
			p.pos = resume
		}
	default:
		p.fail()
	}
}

// braced reads a constant that is an expression, which stands in braces among arguments.
func (p *rustParser) braced(c byte, in rustContext) {
	if in == inType {
		p.put("{")
	}
	switch c {
	case 'e': // the str itself, to which a literal is a reference
		p.put("*")
		p.stringText()
	case 'R':
		p.put("&")
		p.constant(inValue)
	case 'Q':
		p.put("&mut ")
		p.constant(inValue)
	case 'A':
		p.put("[")
		p.constants()
		p.put("]")
	case 'T':
		p.put("(")
		p.tuple(true)
		p.put(")")
	case 'V':
		p.variant()
	}
	if in == inType {
		p.put("}")
	}
}

// constants reads constants up to an E.
func (p *rustParser) constants() {
	for first := true; p.until(); first = false {
		if !first {
			p.put(", ")
		}
		p.constant(inValue)
	}
}

// variant reads a struct or a variant of an enum.
func (p *rustParser) variant() {
	p.path(inValue, false)
	switch p.next() {
	case 'U':
	case 'T':
		p.put("(")
		p.constants()
		p.put(")")
	case 'S':
		p.put(" { ")
		for first := true; p.until(); first = false {
			if !first {
				p.put(", ")
			}
			p.optional62('s')
			p.put(p.identifier())
			p.put(": ")
			p.constant(inValue)
		}
		p.put(" }")
	default:
		p.fail()
	}
}

// digits reads hexadecimal digits in lower case up to '_'.
func (p *rustParser) digits() string {
	start := p.pos
	for c := p.peek(); isDigit(c) || c >= 'a' && c <= 'f'; c = p.peek() {
		p.pos++
	}
	digits := p.text[start:p.pos]
	if !p.nextIf('_') {
		p.fail()
	}
	return digits
}

// integer reads a number; one of more than 64 bits is written as it is.
func (p *rustParser) integer() {
	digits := strings.TrimLeft(p.digits(), "0")
	if len(digits) > 16 {
		p.put("0x")
		p.put(digits)
		return
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	if digits != "" && err != nil {
		p.fail()
		return
	}
	p.put(strconv.FormatUint(n, 10))
}

func (p *rustParser) boolean() {
	switch p.digits() {
	case "0":
		p.put("false")
	case "1":
		p.put("true")
	default:
		p.fail()
	}
}

func (p *rustParser) character() {
	digits := p.digits()
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(min(n, 1<<31-1))) {
		p.fail()
		return
	}
	p.put("'")
	p.put(escapeRune(rune(n), '\''))
	p.put("'")
}

// stringText reads the bytes of a string.
func (p *rustParser) stringText() {
	digits := p.digits()
	raw, err := hex.DecodeString(digits)
	if err != nil || !utf8.Valid(raw) {
		p.fail()
		return
	}
	p.put(`"`)
	for _, r := range string(raw) {
		p.put(escapeRune(r, '"'))
	}
	p.put(`"`)
}

// escapeRune writes a character as Rust does between quotes.
func escapeRune(r, quote rune) string {
	switch r {
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	case '\n':
		return `\n`
	case '\\', quote:
		return `\` + string(r)
	}
	if r < utf8.RuneSelf && unicode.IsPrint(r) || r >= utf8.RuneSelf && unicode.IsPrint(r) && quote == '"' {
		return string(r)
	}
	return `\u{` + strconv.FormatInt(int64(r), 16) + `}`
}
