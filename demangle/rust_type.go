package demangle

import "strings"

// rustBasic are the types of one letter.
var rustBasic = [256]string{
	'a': "i8", 'b': "bool", 'c': "char", 'd': "f64", 'e': "str", 'f': "f32", 'h': "u8", 'i': "isize", 'j': "usize",
	'l': "i32", 'm': "u32", 'n': "i128", 'o': "u128", 'p': "_", 's': "i16", 't': "u16", 'u': "()", 'v': "...",
	'x': "i64", 'y': "u64", 'z': "!",
}

// typ reads a type.
func (p *rustParser) typ() {
	if !p.enter() {
		return
	}
	defer p.leave()
	c := p.next()
	if name := rustBasic[c]; name != "" {
		p.put(name)
		return
	}
	switch c {
	case 'A':
		p.put("[")
		p.typ()
		p.put("; ")
		p.constant(inType)
		p.put("]")
	case 'S':
		p.put("[")
		p.typ()
		p.put("]")
	case 'T':
		p.put("(")
		p.tuple(false)
		p.put(")")
	case 'R', 'Q':
		p.reference(c == 'Q')
	case 'P':
		p.put("*const ")
		p.typ()
	case 'O':
		p.put("*mut ")
		p.typ()
	case 'F':
		bound := p.binder()
		p.function()
		p.bound -= bound
	case 'D':
		p.dynamic()
	case 'W':
		p.typ()
		p.put(" is ")
		p.pattern()
	case 'B':
		if resume, ok := p.back(); ok {
			p.typ()
			p.pos = resume
		}
	default:
		p.pos--
		p.path(inType, false)
	}
}

// tuple reads types or constants; a single one has a comma behind it.
func (p *rustParser) tuple(constants bool) {
	n := 0
	for ; p.until(); n++ {
		if n > 0 {
			p.put(", ")
		}
		if constants {
			p.constant(inValue)
		} else {
			p.typ()
		}
	}
	if n == 1 {
		p.put(",")
	}
}

func (p *rustParser) reference(mutable bool) {
	p.put("&")
	if p.nextIf('L') {
		if index := p.base62(); index != 0 {
			p.lifetime(index)
			p.put(" ")
		}
	}
	if mutable {
		p.put("mut ")
	}
	p.typ()
}

// function reads the type of a function behind its lifetimes.
func (p *rustParser) function() {
	if p.nextIf('U') {
		p.put("unsafe ")
	}
	if p.nextIf('K') {
		abi := "C"
		if !p.nextIf('C') {
			abi = strings.ReplaceAll(p.identifier(), "_", "-")
		}
		p.put(`extern "`)
		p.put(abi)
		p.put(`" `)
	}
	p.put("fn(")
	for first := true; p.until(); first = false {
		if !first {
			p.put(", ")
		}
		p.typ()
	}
	p.put(")")
	if p.nextIf('u') {
		return // nothing is returned
	}
	p.put(" -> ")
	p.typ()
}

// dynamic reads a trait object.
func (p *rustParser) dynamic() {
	p.put("dyn ")
	bound := p.binder()
	for first := true; p.until(); first = false {
		if !first {
			p.put(" + ")
		}
		p.dynamicTrait()
	}
	p.bound -= bound
	if !p.nextIf('L') {
		p.fail()
		return
	}
	if index := p.base62(); index != 0 {
		p.put(" + ")
		p.lifetime(index)
	}
}

// dynamicTrait reads a trait and what its associated types are.
func (p *rustParser) dynamicTrait() {
	opened := p.path(inType, true)
	if p.short {
		p.quiet++
		defer func() { p.quiet-- }()
	}
	for p.nextIf('p') {
		if opened {
			p.put(", ")
		} else {
			p.put("<")
		}
		opened = true
		p.put(p.identifier())
		p.put(" = ")
		p.typ()
	}
	if opened {
		p.put(">")
	}
}

// pattern reads what the values of a type are restricted to.
func (p *rustParser) pattern() {
	if !p.enter() {
		return
	}
	defer p.leave()
	switch p.next() {
	case 'R':
		p.constant(inType)
		p.put("..=")
		p.constant(inType)
	case 'O':
		for first := true; p.until(); first = false {
			if !first {
				p.put(" | ")
			}
			p.pattern()
		}
	case 'N':
		p.put("!null")
	default:
		p.fail()
	}
}
