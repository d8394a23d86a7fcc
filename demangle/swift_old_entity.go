package demangle

// identifier reads a name: 'X' stands before Punycode, 'o' and a letter for the
// fixity before an operator.
func (p *swiftOldParser) identifier() nodeID {
	text, fixity := p.identifierText()
	if text == "" {
		return 0
	}
	if fixity == 0 {
		return p.add(nodeIdent, text, 0)
	}
	text, ok := operatorText(text)
	if !ok || operatorFixity(fixity) == "" {
		return 0
	}
	return p.add(nodeOperator, text, int64(fixity))
}

// identifierText reads a name and the fixity of an operator; it returns nothing if
// there is none.
func (p *swiftOldParser) identifierText() (text string, fixity byte) {
	punycode := p.nextIf("X")
	if p.nextIf("o") {
		fixity = p.next()
	}
	n, ok := p.natural()
	if !ok || n > len(p.text)-p.pos {
		return "", 0
	}
	p.pos += n
	text = p.text[p.pos-n : p.pos]
	if punycode {
		if n > maxPunycode {
			return "", 0
		}
		if text, ok = decodePunycode(text, '_', swiftDigit, &p.budget); !ok {
			return "", 0
		}
	}
	return text, fixity
}

// declName reads a name and what tells it from equal ones.
func (p *swiftOldParser) declName() nodeID {
	switch {
	case p.nextIf("L"):
		n, ok := p.index()
		name := p.identifier()
		if !ok || name == 0 {
			return 0
		}
		return p.add(nodeLocal, "", int64(n), name)
	case p.nextIf("P"):
		discriminator := p.identifier()
		return p.make(nodePrivate, "", discriminator, p.identifier())
	}
	return p.identifier()
}

// oldTypes are the types of the standard library with a mangling of one letter.
var oldTypes = [128]struct {
	kind nodeKind
	name string
}{
	'a': {nodeStruct, "Swift.Array"},
	'b': {nodeStruct, "Swift.Bool"},
	'c': {nodeStruct, "Swift.UnicodeScalar"},
	'd': {nodeStruct, "Swift.Double"},
	'f': {nodeStruct, "Swift.Float"},
	'i': {nodeStruct, "Swift.Int"},
	'P': {nodeStruct, "Swift.UnsafePointer"},
	'p': {nodeStruct, "Swift.UnsafeMutablePointer"},
	'Q': {nodeEnum, "Swift.ImplicitlyUnwrappedOptional"},
	'q': {nodeEnum, "Swift.Optional"},
	'R': {nodeStruct, "Swift.UnsafeBufferPointer"},
	'r': {nodeStruct, "Swift.UnsafeMutableBufferPointer"},
	'S': {nodeStruct, "Swift.String"},
	'u': {nodeStruct, "Swift.UInt"},
	'V': {nodeStruct, "Swift.UnsafeRawPointer"},
	'v': {nodeStruct, "Swift.UnsafeMutableRawPointer"},
}

// substitution reads what follows 'S'.
func (p *swiftOldParser) substitution() nodeID {
	switch c := p.peek(); {
	case c == 'o':
		p.pos++
		return p.add(nodeModule, "__C", 0)
	case c == 'C':
		p.pos++
		return p.add(nodeModule, "__C_Synthesized", 0)
	case c < 128 && oldTypes[c].kind != nodeNone:
		p.pos++
		return p.add(oldTypes[c].kind, oldTypes[c].name, 0)
	}
	n, ok := p.index()
	if !ok || n >= p.substitutions.n {
		return 0
	}
	return p.substitutions.from(n)[0]
}

func (p *swiftOldParser) module() nodeID {
	if p.nextIf("s") {
		return p.add(nodeModule, "Swift", 0)
	}
	if p.nextIf("S") {
		id := p.substitution()
		if p.kind(id) != nodeModule {
			return 0
		}
		return id
	}
	text, fixity := p.identifierText()
	if text == "" || fixity != 0 {
		return 0
	}
	return p.substitutable(p.add(nodeModule, text, 0))
}

// declaration reads the context and the name of a type.
func (p *swiftOldParser) declaration(kind nodeKind) nodeID {
	return p.declarationIn(kind, p.context())
}

func (p *swiftOldParser) declarationIn(kind nodeKind, context nodeID) nodeID {
	if context == 0 {
		return 0
	}
	name := p.declName()
	if name == 0 {
		return 0
	}
	return p.substitutable(p.entity(kind, "", 0, [slots]nodeID{slotContext: context, slotName: name}))
}

// protocol reads a protocol. A substitution may be the protocol or its module.
func (p *swiftOldParser) protocol() nodeID {
	if p.nextIf("S") {
		return p.protocolIn(p.substitution())
	}
	if p.nextIf("s") {
		return p.declarationIn(nodeProtocol, p.add(nodeModule, "Swift", 0))
	}
	return p.declaration(nodeProtocol)
}

func (p *swiftOldParser) protocolIn(id nodeID) nodeID {
	switch p.kind(id) {
	case nodeProtocol:
		return id
	case nodeModule:
		return p.declarationIn(nodeProtocol, id)
	}
	return 0
}

// nominalType reads a type by its letter.
func (p *swiftOldParser) nominalType() nodeID {
	switch p.next() {
	case 'S':
		return p.substitution()
	case 'V':
		return p.declaration(nodeStruct)
	case 'O':
		return p.declaration(nodeEnum)
	case 'C':
		return p.declaration(nodeClass)
	case 'P':
		return p.declaration(nodeProtocol)
	}
	return 0
}

// context reads what a declaration stands in.
func (p *swiftOldParser) context() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	switch {
	case p.nextIf("E"):
		module := p.module()
		typ := p.context()
		if module == 0 || typ == 0 {
			return 0
		}
		return p.add(nodeExtension, "", 0, module, typ, 0)
	case p.nextIf("e"):
		module := p.module()
		signature := p.genericSignature()
		return p.make(nodeExtension, "", module, p.context(), signature)
	case p.nextIf("S"):
		return p.substitution()
	case p.nextIf("s"):
		return p.add(nodeModule, "Swift", 0)
	case p.nextIf("G"):
		return p.boundGenericType()
	}
	switch p.peek() {
	case 'F', 'I', 'v', 'P', 'Z', 'C', 'V', 'O':
		return p.entityOf()
	}
	return p.module()
}

// boundGenericType reads a type and the generic arguments of each type it stands in.
func (p *swiftOldParser) boundGenericType() nodeID {
	return p.bind(p.nominalType())
}

func (p *swiftOldParser) bind(nominal nodeID) nodeID {
	if nominal == 0 || !p.enter() {
		return 0
	}
	defer p.leave()
	switch p.kind(p.part(nominal, slotContext)) {
	case nodeModule, nodeFunction, nodeExtension:
	case nodeNone: // a type of the standard library
		if p.at(nominal).text == "" {
			return 0
		}
	default:
		nominal = p.withContext(nominal, p.bind(p.part(nominal, slotContext)))
	}
	args := p.until(nodeTypeList, aType)
	if nominal == 0 || args == 0 {
		return 0
	}
	if p.at(args).n == 0 {
		return nominal
	}
	switch p.kind(nominal) {
	case nodeClass, nodeStruct, nodeEnum:
		return p.make(nodeBound, "", nominal, args)
	}
	return 0
}

// entityOf reads a declaration, or a type.
func (p *swiftOldParser) entityOf() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	static := p.nextIf("Z")
	kind := nodeNone
	switch p.peek() {
	case 'F':
		kind = nodeFunction
	case 'v':
		kind = nodeVariable
	case 'I':
		kind = nodeInitializer
	case 'i':
		kind = nodeSubscript
	default:
		return p.nominalType()
	}
	p.pos++
	context := p.context()
	if context == 0 {
		return 0
	}
	id := p.member(kind, context)
	if static {
		return p.make(nodeStatic, "", id)
	}
	return id
}

// member reads the name and the type of a declaration in context.
func (p *swiftOldParser) member(kind nodeKind, context nodeID) nodeID {
	parts := [slots]nodeID{slotContext: context}
	switch c := p.peek(); c {
	case 'D', 'Z', 'd', 'E', 'e':
		p.pos++
		e := &contextEntities[c]
		return p.entity(e.kind, e.text, 0, parts)
	case 'C', 'c':
		p.pos++
		if parts[slotType] = p.typ(); parts[slotType] == 0 {
			return 0
		}
		if c == 'C' {
			return p.entity(nodeAllocator, "", 0, parts)
		}
		return p.entity(nodeConstructor, "", 0, parts)
	case 'U', 'u':
		p.pos++
		n, ok := p.index()
		if parts[slotType] = p.typ(); parts[slotType] == 0 || !ok {
			return 0
		}
		if c == 'U' {
			return p.entity(nodeExplicitClosure, "", int64(n), parts)
		}
		return p.entity(nodeImplicitClosure, "", int64(n), parts)
	case 'a', 'l':
		p.pos++
		return p.accessor(addressorName(c, p.next()), context)
	case 'g', 'G', 's', 'm', 'w', 'W', 'r', 'M':
		p.pos++
		return p.accessor(accessorName(c), context)
	}
	if kind == nodeInitializer {
		return p.initializer(parts)
	}
	parts[slotName] = p.declName()
	if parts[slotName] == 0 {
		return 0
	}
	if parts[slotType] = p.typ(); parts[slotType] == 0 {
		return 0
	}
	return p.entity(kind, "", 0, parts)
}

func (p *swiftOldParser) initializer(parts [slots]nodeID) nodeID {
	switch {
	case p.nextIf("A"):
		n, ok := p.index()
		if !ok {
			return 0
		}
		return p.entity(nodeDefaultArgument, "", int64(n), parts)
	case p.nextIf("i"):
		return p.entity(nodeInitializer, contextEntities['i'].text, 0, parts)
	}
	return 0
}

// accessor reads the variable or subscript that an accessor is of. A subscript has
// that word for a name.
func (p *swiftOldParser) accessor(accessor string, context nodeID) nodeID {
	name := p.declName()
	typ := p.typ()
	if accessor == "" || name == 0 || typ == 0 {
		return 0
	}
	const subscript = "subscript"
	parts := [slots]nodeID{slotContext: context, slotType: typ}
	isSubscript := p.kind(name) == nodeIdent && p.at(name).text == subscript ||
		p.kind(name) == nodePrivate && p.at(p.part(name, 1)).text == subscript
	if isSubscript {
		return p.make(nodeAccessor, accessor, p.entity(nodeSubscript, "", 0, parts))
	}
	parts[slotName] = name
	return p.make(nodeAccessor, accessor, p.entity(nodeVariable, "", 0, parts))
}
