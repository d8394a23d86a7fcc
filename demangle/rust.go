package demangle

import "strings"

// rustName returns what a name of Rust's v0 mangling stands for, and the steps that took. It
// is the name itself if it cannot be read.
func rustName(s string, short bool) (string, int) {
	text, ok := strings.CutPrefix(s, "_R")
	if !ok {
		return s, 0
	}
	text, suffix := cutSuffix(text)
	var p rustParser
	p.budget = newBudget(s)
	p.text, p.short = text, short
	p.path(inValue, false)
	if p.pos < len(p.text) { // the crate that the instance was made in
		p.quiet++
		p.path(inValue, false)
		p.quiet--
	}
	if p.over || p.pos < len(p.text) || p.n == 0 {
		return s, p.spent
	}
	if suffix != "" && !short {
		p.write(" (")
		p.write(suffix)
		p.writeByte(')')
	}
	if p.over {
		return s, p.spent
	}
	return string(p.written()), p.spent
}

// cutSuffix takes what linkers and compilers add to a name off it.
func cutSuffix(s string) (name, suffix string) {
	if at := strings.IndexByte(s, '.'); at >= 0 {
		return s[:at], s[at:]
	}
	return s, ""
}

// A rustParser reads a name in the v0 mangling (RFC 2603; the rustc book, "v0 Symbol Format")
// and writes it as it goes. A back reference is read again where it refers to, for which the
// budget pays.
type rustParser struct {
	output
	text  string
	pos   int
	quiet int // what is read isn't written where this is above zero
	bound int // lifetimes that binders around have introduced
	short bool
}

// A rustContext says what a path stands for: Rust writes the arguments of values with ::
// before them.
type rustContext bool

const (
	inValue rustContext = false
	inType  rustContext = true
)

func (p *rustParser) fail() { p.over = true }

func (p *rustParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// next takes the next byte; at the end it fails.
func (p *rustParser) next() byte {
	c := p.peek()
	if c == 0 {
		p.fail()
		return 0
	}
	p.pos++
	return c
}

func (p *rustParser) nextIf(c byte) bool {
	if p.over || p.peek() != c {
		return false
	}
	p.pos++
	return true
}

// until says whether the next element of a list that ends with E is to be read.
func (p *rustParser) until() bool { return !p.over && !p.nextIf('E') }

// put writes, unless what is being read is not part of what is shown.
func (p *rustParser) put(s string) {
	if p.quiet == 0 {
		p.write(s)
	}
}

func (p *rustParser) putNumber(n int64) {
	if p.quiet == 0 {
		p.writeNumber(n)
	}
}

// decimal reads a decimal number, which has no zeros before it.
func (p *rustParser) decimal() int {
	if p.nextIf('0') {
		return 0
	}
	n, start := 0, p.pos
	for isDigit(p.peek()) {
		if n = n*10 + int(p.text[p.pos]-'0'); n > maxNatural {
			p.fail()
			return 0
		}
		p.pos++
	}
	if p.pos == start {
		p.fail()
	}
	return n
}

// base62 reads '_' as 0 and DIGITS '_' as their value plus 1. It is as large as 64 bits hold:
// the hashes of crates are such numbers.
func (p *rustParser) base62() uint64 {
	if p.nextIf('_') {
		return 0
	}
	n := uint64(0)
	for !p.over {
		c := p.next()
		digit := uint64(0)
		switch {
		case c == '_':
			if n+1 == 0 {
				p.fail()
			}
			return n + 1
		case isDigit(c):
			digit = uint64(c - '0')
		case isLower(c):
			digit = uint64(c-'a') + 10
		case isUpper(c):
			digit = uint64(c-'A') + 36
		default:
			p.fail()
		}
		if n > (1<<64-1-digit)/62 {
			p.fail()
		}
		n = n*62 + digit
	}
	return 0
}

// optional62 reads a number behind a letter as itself plus 1, and 0 without the letter.
func (p *rustParser) optional62(letter byte) uint64 {
	if !p.nextIf(letter) {
		return 0
	}
	n := p.base62()
	if n == 1<<64-1 {
		p.fail()
	}
	return n + 1
}

// identifier reads a name without a number that would tell it from others.
func (p *rustParser) identifier() string {
	unicode := p.nextIf('u')
	n := p.decimal()
	p.nextIf('_') // stands before names that begin with a digit or '_'
	if p.over || n > len(p.text)-p.pos {
		p.fail()
		return ""
	}
	p.pos += n
	name := p.text[p.pos-n : p.pos]
	if !unicode {
		return name
	}
	name, ok := decodePunycode(name, '_', rustDigit, &p.budget)
	if !ok {
		p.fail()
	}
	return name
}

// rustDigit is the value of a digit of Punycode, or -1 (RFC 3492 §5).
func rustDigit(c byte) int {
	switch {
	case isLower(c):
		return int(c - 'a')
	case isDigit(c):
		return int(c-'0') + 26
	}
	return -1
}

// back reads a back reference, goes to where it refers to, and returns where to go on then. What
// isn't shown needs no second look.
func (p *rustParser) back() (resume int, ok bool) {
	start := p.pos - 1
	to := p.base62()
	if p.over || to >= uint64(start) {
		p.fail()
		return 0, false
	}
	if p.quiet > 0 {
		return 0, false
	}
	resume, p.pos = p.pos, int(to)
	return resume, true
}

// path reads a path. With open it leaves off the > behind the last arguments, so that more may
// follow, and says that there is one to come.
func (p *rustParser) path(in rustContext, open bool) (opened bool) {
	if !p.enter() {
		return false
	}
	defer p.leave()
	switch c := p.next(); c {
	case 'C':
		p.optional62('s')
		p.put(p.identifier())
	case 'M':
		p.implPath(in)
		p.put("<")
		p.typ()
		p.put(">")
	case 'X':
		p.implPath(in)
		p.traitImpl()
	case 'Y':
		p.traitImpl()
	case 'N':
		p.nested(in)
	case 'I':
		return p.generic(in, open)
	case 'B':
		if resume, ok := p.back(); ok {
			opened = p.path(in, open)
			p.pos = resume
		}
	default:
		p.fail()
	}
	return opened
}

// implPath reads where an impl stands, which isn't shown.
func (p *rustParser) implPath(in rustContext) {
	p.quiet++
	p.optional62('s')
	p.path(in, false)
	p.quiet--
}

func (p *rustParser) traitImpl() {
	p.put("<")
	p.typ()
	p.put(" as ")
	p.path(inType, false)
	p.put(">")
}

// nested reads a name in a path. The namespaces in capitals are those of what has no name of
// its own.
func (p *rustParser) nested(in rustContext) {
	space := p.next()
	if !isLower(space) && !isUpper(space) {
		p.fail()
		return
	}
	p.path(in, false)
	number := p.optional62('s')
	name := p.identifier()
	if isLower(space) {
		if name != "" {
			p.put("::")
			p.put(name)
		}
		return
	}
	p.put("::{")
	switch space {
	case 'C':
		p.put("closure")
	case 'S':
		p.put("shim")
	default:
		p.put(string(space))
	}
	if name != "" {
		p.put(":")
		p.put(name)
	}
	p.put("#")
	p.putNumber(int64(min(number, 1<<62)))
	p.put("}")
}

// generic reads a path with its arguments. The short form has none.
func (p *rustParser) generic(in rustContext, open bool) (opened bool) {
	p.path(in, false)
	if p.short {
		p.quiet++
		defer func() { p.quiet-- }()
	}
	if in == inValue {
		p.put("::")
	}
	p.put("<")
	for first := true; p.until(); first = false {
		if !first {
			p.put(", ")
		}
		p.genericArg()
	}
	if open && !p.short {
		return true
	}
	p.put(">")
	return false
}

func (p *rustParser) genericArg() {
	switch {
	case p.nextIf('L'):
		p.lifetime(p.base62())
	case p.nextIf('K'):
		p.constant(inType)
	default:
		p.typ()
	}
}

// lifetime writes one by how many binders are between it and the one it is of: 0 is one that
// has no name.
func (p *rustParser) lifetime(index uint64) {
	if index == 0 {
		p.put("'_")
		return
	}
	if index > uint64(p.bound) {
		p.fail()
		return
	}
	p.lifetimeAt(p.bound - int(index))
}

func (p *rustParser) lifetimeAt(depth int) {
	p.put("'")
	if depth < 26 {
		p.put(string(rune('a' + depth)))
		return
	}
	p.put("z")
	p.putNumber(int64(depth - 25))
}

// binder reads the lifetimes that a type introduces, and returns how many there are: they are
// bound until the caller takes them from p.bound.
func (p *rustParser) binder() int {
	n := p.optional62('G')
	if n > uint64(len(p.text)) { // each one is used
		p.fail()
		return 0
	}
	if n > 0 {
		p.put("for<")
		for k := range int(n) {
			if k > 0 {
				p.put(", ")
			}
			if !p.spend(1) {
				return 0
			}
			p.lifetimeAt(p.bound + k)
		}
		p.put("> ")
	}
	p.bound += int(n)
	return int(n)
}
