package demangle

// declaration takes the type, labels, name and context of a declaration.
func (p *swiftParser) declaration(kind nodeKind) nodeID {
	typ := p.popType()
	labels := p.popLabels(typ)
	name := p.popTrait(isDeclName)
	context := p.popContext()
	if typ == 0 || name == 0 {
		return 0
	}
	return p.entity(kind, "", 0, [slots]nodeID{slotContext: context, slotName: name, slotLabels: labels, slotType: typ})
}

// function takes the parts of a function; its type is not on the stack yet.
func (p *swiftParser) function() nodeID {
	signature := p.popKind(nodeSignature)
	typ := p.functionType(fnPlain, "")
	labels := p.popLabels(typ)
	if signature != 0 {
		typ = p.make(nodeDependentType, "", signature, typ)
	}
	name := p.popTrait(isDeclName)
	context := p.popContext()
	if typ == 0 || name == 0 {
		return 0
	}
	return p.entity(nodeFunction, "", 0, [slots]nodeID{slotContext: context, slotName: name, slotLabels: labels, slotType: typ})
}

// subscript takes the parts of a subscript and reads its accessor.
func (p *swiftParser) subscript() nodeID {
	private := p.popKind(nodePrivate)
	typ := p.popType()
	labels := p.popLabels(typ)
	context := p.popContext()
	if typ == 0 {
		return 0
	}
	return p.accessor(p.entity(nodeSubscript, "", 0, [slots]nodeID{slotContext: context, slotLabels: labels, slotType: typ, slotPrivate: private}))
}

// accessorName names an accessor by the letter after 'v' or 'i'; those after 'a'
// and 'l' are addressors. An unknown letter has no name.
func accessorName(c byte) string {
	switch c {
	case 'm':
		return "materializeForSet"
	case 's':
		return "setter"
	case 'g', 'G':
		return "getter"
	case 'w':
		return "willset"
	case 'W':
		return "didset"
	case 'r':
		return "read"
	case 'y':
		return "read2"
	case 'M':
		return "modify"
	case 'x':
		return "modify2"
	case 'i':
		return "init"
	case 'b':
		return "borrow"
	case 'z':
		return "mutate"
	}
	return ""
}

// addressorName names an addressor by its kind and its letter.
func addressorName(kind, c byte) string {
	mutable := kind == 'a'
	switch {
	case c == 'O' && mutable:
		return "owningMutableAddressor"
	case c == 'O':
		return "owningAddressor"
	case c == 'o' && mutable:
		return "nativeOwningMutableAddressor"
	case c == 'o':
		return "nativeOwningAddressor"
	case (c == 'p' || c == 'P') && mutable:
		return "nativePinningMutableAddressor"
	case c == 'p':
		return "nativePinningAddressor"
	case c == 'u' && mutable:
		return "unsafeMutableAddressor"
	case c == 'u':
		return "unsafeAddressor"
	}
	return ""
}

// accessor reads which of a variable's or subscript's accessors is meant, or that
// it is itself.
func (p *swiftParser) accessor(storage nodeID) nodeID {
	c := p.next()
	name := ""
	switch c {
	case 'p':
		return storage
	case 'a', 'l':
		name = addressorName(c, p.next())
	default:
		name = accessorName(c)
	}
	if name == "" {
		return 0
	}
	return p.make(nodeAccessor, name, storage)
}

// contextEntities are the entities after 'f' that have nothing but a context.
var contextEntities = [128]struct {
	kind nodeKind
	text string
}{
	'D': {nodeDeallocator, "__deallocating_deinit"},
	'Z': {nodeDeallocator, "__isolated_deallocating_deinit"},
	'd': {nodeLifecycle, "deinit"},
	'E': {nodeLifecycle, "__ivar_destroyer"},
	'e': {nodeLifecycle, "__ivar_initializer"},
	'i': {nodeInitializer, "variable initialization expression"},
	'P': {nodeInitializer, "property wrapper backing initializer"},
	'F': {nodeInitializer, "property wrapped field init accessor"},
	'W': {nodeInitializer, "property wrapper init from projected value"},
}

// functionEntity reads what follows 'f': entities that have no name of their own.
func (p *swiftParser) functionEntity() nodeID {
	c := p.next()
	if c < 128 && contextEntities[c].kind != nodeNone {
		e := &contextEntities[c]
		return p.entity(e.kind, e.text, 0, [slots]nodeID{slotContext: p.popContext()})
	}
	switch c {
	case 'C':
		return p.initializer(nodeAllocator)
	case 'c':
		return p.initializer(nodeConstructor)
	case 'U':
		return p.closure(nodeExplicitClosure)
	case 'u':
		return p.closure(nodeImplicitClosure)
	case 'A':
		n, ok := p.index()
		if !ok {
			return 0
		}
		return p.entity(nodeDefaultArgument, "", int64(n), [slots]nodeID{slotContext: p.popContext()})
	case 'a':
		return p.make(nodePhrase, "runtime attribute generator of %0", p.popEntity())
	case 'm':
		return p.declaration(nodeMacro)
	case 'M':
		return p.macroExpansion()
	case 'o':
		return p.declaration(nodeVariable)
	case 'p':
		return p.declaration(nodeGenericParamDecl)
	}
	return 0
}

func (p *swiftParser) initializer(kind nodeKind) nodeID {
	private := p.popKind(nodePrivate)
	typ := p.popType()
	labels := p.popLabels(typ)
	context := p.popContext()
	if typ == 0 {
		return 0
	}
	return p.entity(kind, "", 0, [slots]nodeID{slotContext: context, slotLabels: labels, slotType: typ, slotPrivate: private})
}

func (p *swiftParser) closure(kind nodeKind) nodeID {
	n, ok := p.index()
	typ := p.popType()
	context := p.popContext()
	if !ok || typ == 0 {
		return 0
	}
	return p.entity(kind, "", int64(n), [slots]nodeID{slotContext: context, slotType: typ})
}

// The roles of macros that are not attached to a declaration.
const (
	macroFreestanding = "freestanding"
	macroUniqueName   = "unique name"
)

// macroRole names what a macro does by the letter after 'fM'.
func macroRole(c byte) string {
	switch c {
	case 'a':
		return "accessor"
	case 'r':
		return "memberAttribute"
	case 'm':
		return "member"
	case 'p':
		return "peer"
	case 'c':
		return "conformance"
	case 'e':
		return "extension"
	case 'q':
		return "preamble"
	case 'b':
		return "body"
	case 'f':
		return macroFreestanding
	case 'u':
		return macroUniqueName
	}
	return ""
}

// macroExpansion reads what a macro expanded to, or where.
func (p *swiftParser) macroExpansion() nodeID {
	c := p.next()
	if c == 'X' {
		return p.macroLocation()
	}
	role := macroRole(c)
	if role == "" {
		return 0
	}
	parts := [slots]nodeID{}
	macro := p.popKind(nodeIdent)
	switch role {
	case macroFreestanding:
		parts[slotName], parts[slotPrivate] = macro, p.popKind(nodePrivate)
	case macroUniqueName:
		parts[slotName] = macro
	default:
		parts[slotMacro] = macro
		if parts[slotName] = p.popTrait(isDeclName); parts[slotName] == 0 {
			parts[slotName] = macro
		}
	}
	if parts[slotContext] = p.popKind(nodeMacroExpansion); parts[slotContext] == 0 {
		parts[slotContext] = p.popKind(nodeMacroLocation)
	}
	if parts[slotContext] == 0 {
		parts[slotContext] = p.popContext()
	}
	n, ok := p.index()
	if !ok || macro == 0 {
		return 0
	}
	return p.entity(nodeMacroExpansion, role, int64(n), parts)
}

func (p *swiftParser) macroLocation() nodeID {
	line, lineOK := p.index()
	column, columnOK := p.index()
	file := p.popKind(nodeIdent)
	module := p.popKind(nodeIdent)
	if !lineOK || !columnOK {
		return 0
	}
	return p.make(nodeMacroLocation, "module %0 file %1 line %2 column %3", module, file,
		p.add(nodeInteger, "", int64(line)), p.add(nodeInteger, "", int64(column)))
}
