package demangle

import "encoding/hex"

// literalTypes are how the values of integer types are written, by the type's letter: those
// of up to three letters behind the value, others before it.
var literalTypes = map[byte]string{
	'w': "wchar_t", 'c': "char", 'a': "signed char", 'h': "unsigned char", 's': "short", 't': "unsigned short",
	'i': "", 'j': "u", 'l': "l", 'm': "ul", 'x': "ll", 'y': "ull", 'n': "__int128", 'o': "unsigned __int128",
}

// exprPrimary reads a literal (5.1.6.1).
func (p *cppParser) exprPrimary() nodeID {
	if !p.want('L') {
		return 0
	}
	c := p.peek(0)
	if words, ok := literalTypes[c]; ok {
		p.pos++
		n := cppNode{kind: cppInteger, text: p.number(true)}
		if n.text == "" || !p.want('E') {
			return p.fail()
		}
		return p.make(n, p.word(words))
	}
	switch {
	case p.nextText("b0E"):
		return p.add(cppNode{kind: cppBool, text: "false"})
	case p.nextText("b1E"):
		return p.add(cppNode{kind: cppBool, text: "true"})
	case c == 'b':
		return p.fail()
	case c == 'f' || c == 'd' || c == 'e':
		p.pos++
		return p.float(c)
	case p.nextText("_Z"):
		of := p.encoding(false)
		p.want('E')
		return of
	case c == 'A':
		of := p.parseType()
		p.want('E')
		return p.make(cppNode{kind: cppString}, of)
	case p.nextText("Dn"):
		p.next('0')
		p.want('E')
		return p.word("nullptr")
	case c == 'U':
		if p.peek(1) != 'l' {
			return p.fail()
		}
		of := p.unnamedType(nil)
		p.want('E')
		return p.make(cppNode{kind: cppLambda}, of)
	}
	of := p.parseType()
	n := cppNode{kind: cppEnum, text: p.number(true)}
	if n.text == "" || !p.want('E') {
		return p.fail()
	}
	return p.make(n, of)
}

// floatDigits are how many hexadecimal digits a floating-point literal has: all of its bytes,
// the most significant first; long double is x86's.
var floatDigits = map[byte]int{'f': 8, 'd': 16, 'e': 20}

// float reads the value of a floating-point literal.
func (p *cppParser) float(c byte) nodeID {
	n := floatDigits[c]
	if p.pos+n > len(p.text) {
		return p.fail()
	}
	digits := p.text[p.pos : p.pos+n]
	if _, err := hex.DecodeString(digits); err != nil {
		return p.fail()
	}
	p.pos += n
	p.want('E')
	return p.add(cppNode{kind: cppFloat, text: digits, num: int32(c)})
}
