package demangle

// name reads the name of an entity (5.1.2). state is nil where no function has it.
func (p *cppParser) name(state *nameState) nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	switch p.peek(0) {
	case 'N':
		return p.nestedName(state)
	case 'Z':
		return p.localName(state)
	}
	name, substitution := p.unscopedName(state)
	if p.peek(0) != 'I' {
		if substitution {
			return p.fail() // only a template can be named by a substitution alone
		}
		return name
	}
	if !substitution {
		p.substitutable(name)
	}
	if state != nil {
		state.templated = true
	}
	return p.templateArgs(name, state != nil)
}

// unscopedName reads a name that is in no scope or in std; it may be a substitution.
func (p *cppParser) unscopedName(state *nameState) (name nodeID, substitution bool) {
	std := nodeID(0)
	if p.nextText("St") {
		std = p.word("std")
	}
	module := nodeID(0)
	if p.peek(0) == 'S' {
		switch s := p.substitution(); {
		case p.at(s).kind == cppModule:
			module = s
		case std == 0:
			return s, true
		default:
			return p.fail(), false
		}
	}
	return p.unqualifiedName(state, std, module), false
}

// nestedName reads a name with its scopes (5.1.3).
func (p *cppParser) nestedName(state *nameState) nodeID {
	p.want('N')
	if p.next('H') {
		if state != nil {
			state.explicit = true
		}
	} else {
		quals := p.qualifiers()
		if p.next('O') {
			quals |= refRvalue
		} else if p.next('R') {
			quals |= refLvalue
		}
		if state != nil {
			state.quals = quals
		}
	}
	scope := nodeID(0)
	for p.until('E') {
		if scope = p.nestedPart(scope, state); scope == 0 {
			return p.fail()
		}
		p.next('M') // what precedes is a member's initializer, in which a lambda stands
	}
	if scope == 0 || p.subs.pop() == 0 { // all of the name is no substitution
		return p.fail()
	}
	return scope
}

// nestedPart reads one more part of a nested name.
func (p *cppParser) nestedPart(scope nodeID, state *nameState) nodeID {
	if state != nil {
		state.templated = false
	}
	c, d := p.peek(0), p.peek(1)
	switch {
	case c == 'T':
		if scope != 0 {
			return p.fail()
		}
		scope = p.templateParam()
	case c == 'I':
		if scope == 0 || p.at(scope).kind == cppTemplate {
			return p.fail()
		}
		if state != nil {
			state.templated = true
		}
		scope = p.templateArgs(scope, state != nil)
	case c == 'D' && (d == 't' || d == 'T'):
		if scope != 0 {
			return p.fail()
		}
		scope = p.decltype()
	case c == 'S' && d == 't':
		if scope != 0 {
			return p.fail()
		}
		p.pos += 2
		return p.keepTop(p.word("std"))
	case c == 'S':
		s := p.substitution()
		if p.at(s).kind == cppModule {
			scope = p.unqualifiedName(state, scope, s)
			break
		}
		if scope != 0 {
			return p.fail()
		}
		return p.keepTop(s)
	default:
		scope = p.unqualifiedName(state, scope, 0)
	}
	return p.substitutable(scope)
}

// keepTop returns a part of a nested name that is no new substitution. If it is the last,
// which nobody writes, the one before would be taken for the name's.
func (p *cppParser) keepTop(id nodeID) nodeID {
	if p.peek(0) == 'E' {
		return p.fail()
	}
	return id
}

// localName reads the name of what is declared in a function (5.1.3.3).
func (p *cppParser) localName(state *nameState) nodeID {
	p.want('Z')
	function := p.encoding(false)
	if function == 0 || !p.want('E') {
		return 0
	}
	if p.next('s') {
		p.discriminator()
		return p.make(cppNode{kind: cppLocal}, function, p.word("string literal"))
	}
	if state == nil {
		// The template parameters of the entity are its own.
		saved := p.params.save()
		defer p.params.restore(saved)
	}
	if p.next('d') { // in the default argument of a parameter
		p.number(true)
		if !p.want('_') {
			return 0
		}
		return p.make(cppNode{kind: cppLocal}, function, p.name(state))
	}
	entity := p.name(state)
	p.discriminator()
	return p.make(cppNode{kind: cppLocal}, function, entity)
}

// discriminator passes over what tells entities of one name in a function apart: '_' and a
// digit, or '__' NUMBER '_', or digits up to the end, as old compilers wrote it.
func (p *cppParser) discriminator() {
	switch {
	case p.peek(0) == '_' && isDigit(p.peek(1)):
		p.pos += 2
	case p.peek(0) == '_' && p.peek(1) == '_' && isDigit(p.peek(2)):
		start := p.pos
		p.pos += 2
		p.number(false)
		if !p.next('_') {
			p.pos = start
		}
	case isDigit(p.peek(0)):
		start := p.pos
		if p.number(false); p.pos < len(p.text) {
			p.pos = start
		}
	}
}

// unqualifiedName reads one name in a scope, or in none (5.1.3).
func (p *cppParser) unqualifiedName(state *nameState, scope, module nodeID) nodeID {
	module = p.moduleName(module)
	friend := scope != 0 && p.next('F')
	p.next('L') // of internal linkage
	name := nodeID(0)
	switch c := p.peek(0); {
	case c >= '1' && c <= '9':
		name = p.sourceName()
	case c == 'U':
		name = p.unnamedType(state)
	case c == 'D' && p.peek(1) == 'C':
		p.pos += 2
		name = p.bindings()
	case c == 'C' || c == 'D':
		if scope == 0 || module != 0 {
			return p.fail()
		}
		scope = p.inFull(scope)
		name = p.structor(scope, state)
	default:
		name = p.operatorName(state)
	}
	if module != 0 {
		name = p.make(cppNode{kind: cppModuleEntity}, name, module)
	}
	name = p.tags(name)
	switch {
	case friend:
		return p.make(cppNode{kind: cppFriend}, scope, name)
	case scope != 0:
		return p.make(cppNode{kind: cppNested}, scope, name)
	}
	return name
}

// moduleName reads the names of modules, if any come (5.1.3.2).
func (p *cppParser) moduleName(module nodeID) nodeID {
	for p.ok() && p.next('W') {
		partition := p.next('P')
		module = p.substitutable(p.add(cppNode{kind: cppModule, a: module, text: p.identifier(), flag: partition}))
	}
	return module
}

// bindings reads the names of a structured binding.
func (p *cppParser) bindings() nodeID {
	base := p.gather()
	for first := true; p.ok() && (first || !p.next('E')); first = false {
		p.push(p.sourceName())
	}
	return p.make(cppNode{kind: cppBindings}, p.gathered(base))
}

// tags reads the ABI tags of a name (5.1.4).
func (p *cppParser) tags(name nodeID) nodeID {
	for p.ok() && p.next('B') {
		name = p.make(cppNode{kind: cppTag, text: p.identifier()}, name)
	}
	return name
}

// inFull is a class of the standard library without its short name, which a constructor
// does not have.
func (p *cppParser) inFull(scope nodeID) nodeID {
	n := *p.at(scope)
	if n.kind != cppStandard {
		return scope
	}
	return p.add(cppNode{kind: cppStandardFull, text: fullNames[n.text], flag: n.text == "string", num: n.num})
}

// structor reads what tells constructors and destructors apart (5.1.4.3).
func (p *cppParser) structor(scope nodeID, state *nameState) nodeID {
	if state != nil {
		state.structor = true
	}
	of := cppNode{kind: cppStructor}
	c := p.peek(0)
	p.pos++
	inherited := c == 'C' && p.next('I')
	switch d := p.peek(0); {
	case c == 'C' && d >= '1' && d <= '5':
		p.pos++
		if inherited && p.name(state) == 0 {
			return p.fail()
		}
	case c == 'D' && d >= '0' && d <= '5' && d != '3':
		p.pos++
		of.text = "~"
	default:
		return p.fail()
	}
	return p.make(of, scope)
}

// The classes of the standard library that a letter stands for (5.1.10), and what they are
// short for. Those after basic_string are instances for char.
var standardNames = map[byte]string{
	'a': "allocator", 'b': "basic_string", 's': "string", 'i': "istream", 'o': "ostream", 'd': "iostream",
}

var fullNames = map[string]string{
	"allocator": "allocator", "basic_string": "basic_string", "string": "basic_string",
	"istream": "basic_istream", "ostream": "basic_ostream", "iostream": "basic_iostream",
}

// substitution reads what stands for an earlier part of the name, or for something of the
// standard library (5.1.10).
func (p *cppParser) substitution() nodeID {
	if !p.want('S') {
		return 0
	}
	if name, ok := standardNames[p.peek(0)]; ok {
		instance := int32(0)
		if c := p.peek(0); c != 'a' && c != 'b' {
			instance = 1
		}
		p.pos++
		standard := p.add(cppNode{kind: cppStandard, text: name, num: instance})
		if tagged := p.tags(standard); tagged != standard {
			return p.substitutable(tagged)
		}
		return standard
	}
	index, ok := p.sequence()
	if !ok || index >= p.subs.n {
		return p.fail()
	}
	return p.subs.from(index)[0]
}

// unnamedType reads the name of a lambda or of a type without one (5.1.5.4).
func (p *cppParser) unnamedType(state *nameState) nodeID {
	if state != nil {
		p.params.clear() // those of the innermost arguments are meant
	}
	switch {
	case p.nextText("Ut"):
		n := p.number(false)
		if !p.want('_') {
			return 0
		}
		return p.add(cppNode{kind: cppUnnamed, text: n})
	case p.nextText("Ul"):
		return p.closure()
	case p.nextText("Ub"):
		p.number(false)
		if !p.want('_') {
			return 0
		}
		return p.word("'block-literal'")
	}
	return p.fail()
}

// closure reads the type of a lambda: its template parameters, if it has some, and those of
// its call. Each auto is a template parameter too.
func (p *cppParser) closure() nodeID {
	saved, lambda := p.params.mark(), p.lambda
	p.lambda = p.params.count()
	p.params.open(false)
	defer func() {
		p.params.restore(saved)
		p.lambda = lambda
	}()
	n := cppNode{kind: cppClosure}
	base := p.gather()
	for p.ok() && p.isParamDecl() {
		p.push(p.paramDecl(true))
	}
	if n.a = p.gathered(base); p.empty(n.a) {
		p.params.restore(saved)
	}
	if p.next('Q') {
		n.b = p.constraint()
	}
	base = p.gather()
	if !p.next('v') {
		for first := true; p.ok() && (first || p.peek(0) != 'E' && p.peek(0) != 'Q'); first = false {
			p.push(p.parseType())
		}
	}
	n.c = p.gathered(base)
	if p.next('Q') {
		n.d = p.constraint()
	}
	if !p.want('E') {
		return 0
	}
	n.text = p.number(false)
	if !p.want('_') {
		return 0
	}
	return p.add(n)
}
