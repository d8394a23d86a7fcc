package demangle

// specialNames are the words for what compilers make for a type, by the letter behind T
// (5.1.4.1, 5.1.4.4).
var specialNames = map[byte]string{
	'V': "vtable for ", 'T': "VTT for ", 'I': "typeinfo for ", 'S': "typeinfo name for ",
}

// special reads the name of something that a compiler makes (5.1.4).
func (p *cppParser) special() nodeID {
	c, d := p.peek(0), p.peek(1)
	if c == 'G' {
		return p.specialG()
	}
	if words, ok := specialNames[d]; ok {
		p.pos += 2
		return p.make(cppNode{kind: cppSpecial, text: words}, p.parseType())
	}
	switch d {
	case 'A':
		p.pos += 2
		return p.make(cppNode{kind: cppSpecial, text: "template parameter object for "}, p.templateArg())
	case 'W':
		p.pos += 2
		return p.make(cppNode{kind: cppSpecial, text: "thread-local wrapper routine for "}, p.name(nil))
	case 'H':
		p.pos += 2
		return p.make(cppNode{kind: cppSpecial, text: "thread-local initialization routine for "}, p.name(nil))
	case 'C':
		p.pos += 2
		in := p.parseType()
		if p.number(true) == "" || !p.want('_') {
			return p.fail()
		}
		return p.make(cppNode{kind: cppInstead}, p.parseType(), in)
	case 'c':
		p.pos += 2
		p.callOffset()
		p.callOffset()
		return p.make(cppNode{kind: cppSpecial, text: "covariant return thunk to "}, p.encoding(false))
	case 'v', 'h':
		p.pos++
		p.callOffset()
		words := "non-virtual thunk to "
		if d == 'v' {
			words = "virtual thunk to "
		}
		return p.make(cppNode{kind: cppSpecial, text: words}, p.encoding(false))
	}
	return p.fail()
}

// specialG reads those that begin with a G.
func (p *cppParser) specialG() nodeID {
	d := p.peek(1)
	p.pos += 2
	switch d {
	case 'V':
		return p.make(cppNode{kind: cppSpecial, text: "guard variable for "}, p.name(nil))
	case 'R':
		of := p.name(nil)
		p.sequence()
		return p.make(cppNode{kind: cppSpecial, text: "reference temporary for "}, of)
	case 'I':
		module := p.moduleName(0)
		return p.make(cppNode{kind: cppSpecial, text: "initializer for module "}, module)
	case 'A': // GCC's
		return p.make(cppNode{kind: cppSpecial, text: "hidden alias for "}, p.encoding(false))
	case 'T': // GCC's
		c := p.peek(0)
		p.pos++
		words := "transaction clone for "
		if c == 'n' {
			words = "non-transaction clone for "
		} else if c != 't' {
			return p.fail()
		}
		return p.make(cppNode{kind: cppSpecial, text: words}, p.encoding(false))
	}
	return p.fail()
}

// callOffset passes over what a thunk adds (5.1.4.2).
func (p *cppParser) callOffset() {
	switch {
	case p.next('h'):
	case p.next('v'):
		if p.number(true) == "" || !p.want('_') {
			p.over = true
		}
	default:
		p.over = true
	}
	if p.number(true) == "" || !p.want('_') {
		p.over = true
	}
}
