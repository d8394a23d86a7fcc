package demangle

// templateArgs reads the arguments of a template (5.1.5.9). Those of the name of a function
// are what its parameters stand for from there on: tag says so.
func (p *cppParser) templateArgs(template nodeID, tag bool) nodeID {
	if !p.want('I') || !p.enter() {
		return 0
	}
	defer p.leave()
	// Arguments in brackets are whole, even in the type of a conversion.
	whole := p.wholeTypes
	p.wholeTypes = true
	defer func() { p.wholeTypes = whole }()
	if tag {
		p.params.clear()
		p.params.open(false)
	}
	n := cppNode{kind: cppTemplate}
	base := p.gather()
	for p.until('E') {
		argument := p.templateArg()
		p.push(argument)
		if tag && p.ok() && !p.params.put(p.standsFor(argument)) {
			return p.fail()
		}
		if p.next('Q') {
			p.constraint()
			p.want('E')
			break
		}
	}
	arguments := p.gathered(base)
	return p.make(n, template, arguments)
}

// standsFor is what a parameter is replaced by for an argument.
func (p *cppParser) standsFor(argument nodeID) nodeID {
	n := *p.at(argument)
	switch n.kind {
	case cppQualifiedArg:
		return n.b
	case cppArgumentPack:
		return p.pack(n.a)
	}
	return argument
}

// pack makes what a parameter pack stands for.
func (p *cppParser) pack(list nodeID) nodeID {
	n := cppNode{kind: cppPack, a: list, traits: allUnknown}
	all := uint8(0)
	for _, id := range p.parts(list) {
		all |= p.at(id).traits
	}
	if !p.spend(int(p.at(list).b)) {
		return 0
	}
	if all == 0 {
		n.traits = 0
	}
	return p.add(n)
}

// templateArg reads one argument.
func (p *cppParser) templateArg() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	switch p.peek(0) {
	case 'X':
		p.pos++
		argument := p.expr()
		if !p.want('E') {
			return 0
		}
		return argument
	case 'J', 'I': // I as GCC wrote it before version 4.7
		p.pos++
		base := p.gather()
		for p.until('E') {
			p.push(p.templateArg())
		}
		return p.make(cppNode{kind: cppArgumentPack}, p.gathered(base))
	case 'L':
		if p.peek(1) != 'Z' {
			return p.exprPrimary()
		}
		p.pos += 2 // without the underscore, as GCC wrote it before version 4.3
		argument := p.encoding(false)
		if !p.want('E') {
			return 0
		}
		return argument
	case 'T':
		if !p.isParamDecl() {
			return p.parseType()
		}
		param := p.paramDecl(false)
		return p.make(cppNode{kind: cppQualifiedArg}, param, p.templateArg())
	}
	return p.parseType()
}

// templateParam reads a template parameter, and returns what it stands for (5.1.5.8).
func (p *cppParser) templateParam() nodeID {
	start := p.pos
	p.want('T')
	level := 0
	if p.next('L') {
		n, _ := p.positive()
		level = n + 1
		p.want('_')
	}
	index, ok := p.index()
	if !ok || !p.ok() {
		return p.fail()
	}
	if p.untracked {
		return p.word(p.text[start : p.pos-1])
	}
	if p.permitForward && level == 0 {
		id := p.add(cppNode{kind: cppForward, num: int32(index), traits: allUnknown})
		if id == 0 || !p.forward.push(id) {
			return p.fail()
		}
		return id
	}
	if id, ok := p.params.find(level, index); ok {
		return id
	}
	if p.lambda == level && level <= p.params.count() {
		// Each auto of a lambda is a parameter (5.1.8). The level goes with the lambda.
		if level == p.params.count() {
			p.params.open(true)
		}
		return p.word("auto")
	}
	return p.fail()
}

// isParamDecl says whether the declaration of a template parameter comes.
func (p *cppParser) isParamDecl() bool {
	if p.peek(0) != 'T' {
		return false
	}
	switch p.peek(1) {
	case 'y', 'p', 't', 'n', 'k':
		return true
	}
	return false
}

// The kinds of parameters that are given names.
const (
	syntheticType = iota
	syntheticNonType
	syntheticTemplate
)

// paramDecl reads the declaration of a template parameter (5.1.5.9). It is given a name,
// which is put on the last level of parameters if keep says so.
func (p *cppParser) paramDecl(keep bool) nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	invent := func(kind int, text string) nodeID {
		id := p.add(cppNode{kind: cppParamName, text: text, num: p.synthetic[kind]})
		p.synthetic[kind]++
		if keep && p.ok() && !p.params.put(id) {
			return p.fail()
		}
		return id
	}
	c := p.peek(1)
	p.pos += 2
	switch c {
	case 'y':
		return p.make(cppNode{kind: cppTypeParam, traits: behindYes}, invent(syntheticType, "$T"))
	case 'k':
		constraint := p.name(nil)
		return p.make(cppNode{kind: cppConstrained, traits: behindYes}, constraint, invent(syntheticType, "$T"))
	case 'n':
		name := invent(syntheticNonType, "$N")
		return p.make(cppNode{kind: cppNonTypeParam, traits: behindYes}, p.parseType(), name)
	case 'p':
		return p.make(cppNode{kind: cppParamPack, traits: behindYes}, p.paramDecl(keep))
	}
	return p.templateTemplate(invent(syntheticTemplate, "$TT"))
}

// templateTemplate reads the parameters of a parameter that is a template.
func (p *cppParser) templateTemplate(name nodeID) nodeID {
	saved := p.params.mark()
	p.params.open(false)
	defer p.params.restore(saved)
	n := cppNode{kind: cppTemplParam, traits: behindYes}
	base := p.gather()
	for p.until('E') {
		if !p.isParamDecl() {
			return p.fail()
		}
		p.push(p.paramDecl(true))
		if p.next('Q') {
			n.c = p.constraint()
			p.want('E')
			break
		}
	}
	return p.make(n, p.gathered(base), name)
}
