package demangle

import "strings"

// cppBuiltins are the types of one letter (5.1.5.2).
var cppBuiltins = [256]string{
	'v': "void", 'w': "wchar_t", 'b': "bool", 'c': "char", 'a': "signed char", 'h': "unsigned char",
	's': "short", 't': "unsigned short", 'i': "int", 'j': "unsigned int", 'l': "long", 'm': "unsigned long",
	'x': "long long", 'y': "unsigned long long", 'n': "__int128", 'o': "unsigned __int128",
	'f': "float", 'd': "double", 'e': "long double", 'g': "__float128", 'z': "...",
}

// cppBuiltinsD are those whose letter follows a D.
var cppBuiltinsD = [256]string{
	'd': "decimal64", 'e': "decimal128", 'f': "decimal32", 'h': "half", 'i': "char32_t", 's': "char16_t", 'u': "char8_t",
	'a': "auto", 'c': "decltype(auto)", 'n': "std::nullptr_t",
}

// parseType reads a type (5.1.5). All but the builtin ones can be referred to later.
func (p *cppParser) parseType() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	c, d := p.peek(0), p.peek(1)
	if name := cppBuiltins[c]; name != "" {
		p.pos++
		return p.word(name)
	}
	switch c {
	case 'r', 'V', 'K':
		if p.functionFollows() {
			return p.substitutable(p.functionType())
		}
		return p.substitutable(p.qualifiedType())
	case 'U':
		if d == 'l' || d == 't' || d == 'b' {
			break // a type of no scope
		}
		return p.substitutable(p.qualifiedType())
	case 'u':
		p.pos++
		return p.substitutable(p.vendorType())
	case 'D':
		return p.typeD()
	case 'F':
		return p.substitutable(p.functionType())
	case 'A':
		return p.substitutable(p.arrayType())
	case 'M':
		return p.substitutable(p.memberType())
	case 'T':
		if d != 's' && d != 'u' && d != 'e' {
			return p.parameterType()
		}
	case 'P', 'R', 'O', 'C', 'G':
		p.pos++
		return p.substitutable(p.compoundType(c, p.parseType()))
	case 'S':
		if d != 0 && d != 't' {
			return p.substitutionType()
		}
	}
	return p.substitutable(p.classEnumType())
}

// functionFollows says whether the qualifiers that come are those of a function's type.
func (p *cppParser) functionFollows() bool {
	k := 0
	for _, c := range []byte("rVK") {
		if p.peek(k) == c {
			k++
		}
	}
	if p.peek(k) == 'F' {
		return true
	}
	if p.peek(k) != 'D' {
		return false
	}
	switch p.peek(k + 1) {
	case 'o', 'O', 'w', 'x':
		return true
	}
	return false
}

// qualifiers reads cv-qualifiers.
func (p *cppParser) qualifiers() uint8 {
	quals := uint8(0)
	if p.next('r') {
		quals |= qualRestrict
	}
	if p.next('V') {
		quals |= qualVolatile
	}
	if p.next('K') {
		quals |= qualConst
	}
	return quals
}

// qualifiedType reads a type with qualifiers, those of vendors first (5.1.5.1).
func (p *cppParser) qualifiedType() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	if !p.next('U') {
		quals := p.qualifiers()
		of := p.parseType()
		if quals == 0 || of == 0 {
			return of
		}
		return p.make(cppNode{kind: cppQualified, quals: quals, traits: p.at(of).traits}, of)
	}
	name := p.identifier()
	if rest, ok := strings.CutPrefix(name, "objcproto"); ok {
		sub := cppParser{text: rest}
		sub.limit = len(rest)
		protocol := sub.identifier()
		if sub.over {
			return p.fail()
		}
		return p.make(cppNode{kind: cppObjC, text: protocol}, p.qualifiedType())
	}
	n := cppNode{kind: cppVendor, text: name}
	if p.peek(0) == 'I' {
		n.b = p.templateArgs(p.word(""), false)
	}
	return p.make(n, p.qualifiedType())
}

// vendorType reads a builtin type of a vendor, or one that a type is transformed by.
func (p *cppParser) vendorType() nodeID {
	name := p.identifier()
	if !p.next('I') {
		return p.word(name)
	}
	of := p.parseType()
	p.want('E')
	return p.make(cppNode{kind: cppTransformed, text: name}, of)
}

// typeD reads the types that begin with a D.
func (p *cppParser) typeD() nodeID {
	d := p.peek(1)
	if name := cppBuiltinsD[d]; name != "" {
		p.pos += 2
		return p.word(name)
	}
	switch d {
	case 'F':
		return p.fixedFloat()
	case 'B', 'U':
		p.pos += 2
		size := nodeID(0)
		if isDigit(p.peek(0)) {
			size = p.word(p.number(false))
		} else {
			size = p.expr()
		}
		p.want('_')
		return p.make(cppNode{kind: cppBitInt, flag: d == 'U'}, size)
	case 'k', 'K':
		p.pos += 2
		text := " auto"
		if d == 'K' {
			text = " decltype(auto)"
		}
		return p.make(cppNode{kind: cppPostfix, text: text}, p.name(nil))
	case 't', 'T':
		return p.substitutable(p.decltype())
	case 'v':
		return p.substitutable(p.vectorType())
	case 'p':
		p.pos += 2
		return p.substitutable(p.make(cppNode{kind: cppExpansion}, p.parseType()))
	case 'o', 'O', 'w', 'x':
		return p.substitutable(p.functionType())
	}
	return p.fail()
}

// fixedFloat reads a floating-point type of so many bits.
func (p *cppParser) fixedFloat() nodeID {
	p.pos += 2
	bits := p.number(false)
	switch {
	case bits == "16" && p.next('b'):
		return p.word("std::bfloat16_t")
	case bits != "" && p.next('_'):
		return p.add(cppNode{kind: cppBinaryFP, text: bits})
	case bits != "" && p.next('x'):
		return p.make(cppNode{kind: cppPostfix, text: "x"}, p.add(cppNode{kind: cppBinaryFP, text: bits}))
	}
	return p.fail()
}

// decltype reads the type of an expression.
func (p *cppParser) decltype() nodeID {
	p.pos += 2
	of := p.expr()
	p.want('E')
	return p.make(cppNode{kind: cppEnclosed, text: "decltype"}, of)
}

// vectorType reads a vector that a compiler adds to the language.
func (p *cppParser) vectorType() nodeID {
	p.pos += 2
	size := nodeID(0)
	switch {
	case isDigit(p.peek(0)):
		size = p.word(p.number(false))
		p.want('_')
		if p.next('p') {
			return p.make(cppNode{kind: cppVector, flag: true}, p.word("pixel"), size)
		}
	case p.next('_'):
		if p.peek(0) == '_' { // of a size that is not known
			p.pos++
			break
		}
		if size = p.expr(); size == 0 || !p.want('_') {
			return p.fail()
		}
	default:
		if size = p.expr(); size == 0 || !p.want('_') {
			return p.fail()
		}
	}
	n := cppNode{kind: cppVector, b: size}
	return p.make(n, p.parseType())
}

// compoundType makes a type of another.
func (p *cppParser) compoundType(c byte, of nodeID) nodeID {
	if of == 0 {
		return p.fail()
	}
	behind := p.at(of).traits & behindMask
	switch c {
	case 'P':
		return p.make(cppNode{kind: cppPointer, traits: behind}, of)
	case 'R':
		return p.make(cppNode{kind: cppReference, traits: behind}, of)
	case 'O':
		return p.make(cppNode{kind: cppReference, traits: behind, flag: true}, of)
	case 'C':
		return p.make(cppNode{kind: cppPostfix, text: " complex"}, of)
	}
	return p.make(cppNode{kind: cppPostfix, text: " imaginary"}, of)
}

// functionType reads a function's type, its qualifiers and exceptions first (5.1.5.3).
func (p *cppParser) functionType() nodeID {
	n := cppNode{kind: cppType, traits: functionLike, quals: p.qualifiers()}
	switch {
	case p.nextText("Do"):
		n.c = p.word("noexcept")
	case p.nextText("DO"):
		n.c = p.make(cppNode{kind: cppNoexcept}, p.expr())
		p.want('E')
	case p.nextText("Dw"):
		base := p.gather()
		for p.until('E') {
			p.push(p.parseType())
		}
		n.c = p.make(cppNode{kind: cppThrow}, p.gathered(base))
	}
	p.nextText("Dx") // transaction-safe
	if !p.want('F') {
		return 0
	}
	p.next('Y') // extern "C"
	result := p.parseType()
	base := p.gather()
	for p.until('E') {
		if p.next('v') {
			continue
		}
		if p.nextText("RE") {
			n.quals |= refLvalue
			break
		}
		if p.nextText("OE") {
			n.quals |= refRvalue
			break
		}
		p.push(p.parseType())
	}
	return p.make(n, result, p.gathered(base))
}

// arrayType reads an array's type (5.1.5.5).
func (p *cppParser) arrayType() nodeID {
	p.pos++
	n := cppNode{kind: cppArray, traits: arrayLike}
	switch {
	case isDigit(p.peek(0)):
		n.b = p.word(p.number(false))
		p.want('_')
	case !p.next('_'):
		n.b = p.expr()
		p.want('_')
	}
	return p.make(n, p.parseType())
}

// memberType reads the type of a pointer to a member (5.1.5.6).
func (p *cppParser) memberType() nodeID {
	p.pos++
	class := p.parseType()
	member := p.parseType()
	return p.make(cppNode{kind: cppMember, traits: p.at(member).traits & behindMask}, class, member)
}

// parameterType reads a template parameter, which may be a template with arguments.
func (p *cppParser) parameterType() nodeID {
	id := p.templateParam()
	if p.wholeTypes && p.peek(0) == 'I' {
		p.substitutable(id)
		id = p.templateArgs(id, false)
	}
	return p.substitutable(id)
}

// substitutionType reads a type that begins with a substitution, which is no new one if
// that is all.
func (p *cppParser) substitutionType() nodeID {
	name, substitution := p.unscopedName(nil)
	if p.peek(0) == 'I' && (!substitution || p.wholeTypes) {
		if !substitution {
			p.substitutable(name)
		}
		return p.substitutable(p.templateArgs(name, false))
	}
	if substitution {
		return name
	}
	return p.substitutable(name)
}

// classEnumType reads the name of a class or an enumeration (5.1.5.4).
func (p *cppParser) classEnumType() nodeID {
	kind := ""
	switch {
	case p.nextText("Ts"):
		kind = "struct"
	case p.nextText("Tu"):
		kind = "union"
	case p.nextText("Te"):
		kind = "enum"
	}
	name := p.name(nil)
	if kind == "" {
		return name
	}
	return p.make(cppNode{kind: cppElaborated, text: kind}, name)
}
