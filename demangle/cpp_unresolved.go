package demangle

// unresolvedName reads a name that depends on template parameters (5.1.6.2).
func (p *cppParser) unresolvedName(global bool) nodeID {
	scope := nodeID(0)
	switch {
	case p.nextText("srN"):
		scope = p.unresolvedScope()
		for p.until('E') {
			scope = p.make(cppNode{kind: cppNested}, scope, p.simpleID())
		}
	case !p.nextText("sr"):
		name := p.baseUnresolvedName()
		if global {
			return p.make(cppNode{kind: cppGlobal}, name)
		}
		return name
	case isDigit(p.peek(0)):
		for first := true; p.ok() && (first || !p.next('E')); first = false {
			name := p.simpleID()
			switch {
			case !first:
				scope = p.make(cppNode{kind: cppNested}, scope, name)
			case global:
				scope = p.make(cppNode{kind: cppGlobal}, name)
			default:
				scope = name
			}
		}
	default:
		scope = p.unresolvedScope()
	}
	return p.make(cppNode{kind: cppNested}, scope, p.baseUnresolvedName())
}

// unresolvedScope reads a type that a name is looked up in, with its arguments. Though that
// is not how the ABI can be read, no compiler takes the type with its arguments for a
// substitution, save GCC of those in std.
func (p *cppParser) unresolvedScope() nodeID {
	scope := nodeID(0)
	switch {
	case p.peek(0) == 'T':
		scope = p.substitutable(p.templateParam())
	case p.peek(0) == 'D':
		scope = p.substitutable(p.decltype())
	case p.peek(0) == 'S' && p.peek(1) == 't', p.peek(0) == 'N':
		return p.parseType()
	default:
		scope = p.substitution()
	}
	if p.peek(0) == 'I' {
		return p.templateArgs(scope, false)
	}
	return scope
}

// simpleID reads a name with its arguments.
func (p *cppParser) simpleID() nodeID {
	name := p.sourceName()
	if p.peek(0) == 'I' {
		return p.templateArgs(name, false)
	}
	return name
}

// baseUnresolvedName reads the last part of such a name.
func (p *cppParser) baseUnresolvedName() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	if isDigit(p.peek(0)) {
		return p.simpleID()
	}
	if p.nextText("dn") {
		of := nodeID(0)
		if isDigit(p.peek(0)) {
			of = p.simpleID()
		} else {
			of = p.unresolvedScope()
		}
		return p.make(cppNode{kind: cppUnary, text: "~", flag: true}, of)
	}
	p.nextText("on")
	name := p.operatorName(nil)
	if p.peek(0) == 'I' {
		return p.templateArgs(name, false)
	}
	return name
}
