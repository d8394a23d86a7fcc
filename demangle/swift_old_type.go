package demangle

// typ reads a type.
func (p *swiftOldParser) typ() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	switch c := p.next(); c {
	case 'B':
		return p.builtin()
	case 'a':
		return p.declaration(nodeTypeAlias)
	case 'b':
		return p.functionType(fnBlock)
	case 'c':
		return p.functionType(fnC)
	case 'D':
		return p.make(nodeSimplePhrase, "Self", p.typ())
	case 'E':
		if !p.nextIf("RR") {
			return 0
		}
		return p.add(nodeSimplePhrase, "<ERROR TYPE>", 0)
	case 'F':
		return p.functionType(fnPlain)
	case 'f':
		return p.functionType(fnUncurried)
	case 'G':
		return p.boundGenericType()
	case 'K':
		return p.functionType(fnAutoclosure)
	case 'k':
		return p.make(nodeTypePhrase, "@noDerivative %0", p.typ())
	case 'M':
		return p.make(nodeMetatype, "", p.typ())
	case 'P':
		if p.nextIf("M") {
			return p.make(nodeExistentialMetatype, "", p.typ())
		}
		return p.until(nodeProtocols, aProtocol)
	case 'Q':
		return p.archetype()
	case 'q':
		return p.dependentType()
	case 'R':
		return p.make(nodeInOut, "", p.typ())
	case 'S':
		return p.substitution()
	case 'T':
		return p.until(nodeTuple, aTupleElement)
	case 't':
		tuple := p.until(nodeTuple, aTupleElement)
		if tuple != 0 && p.at(tuple).n > 0 {
			p.at(p.part(tuple, int(p.at(tuple).n)-1)).val = 1
		}
		return tuple
	case 'u':
		signature := p.genericSignature()
		return p.make(nodeDependentType, "", signature, p.typ())
	case 'W':
		return p.memberPath()
	case 'w':
		return p.memberOf(p.genericParam())
	case 'X':
		return p.specialType()
	case 'x':
		return p.add(nodeGenericParam, "", 0)
	case 'C':
		return p.declaration(nodeClass)
	case 'V':
		return p.declaration(nodeStruct)
	case 'O':
		return p.declaration(nodeEnum)
	}
	return 0
}

// specialType reads what follows 'X'.
func (p *swiftOldParser) specialType() nodeID {
	switch c := p.next(); c {
	case 'b', 'o', 'u', 'w':
		return p.make(specialPhrases[c].kind, specialPhrases[c].text, p.typ())
	case 'B':
		return p.box()
	case 'f':
		return p.functionType(fnThin)
	case 'F':
		return p.implFunctionType()
	case 'M':
		representation := metatypeRepresentation(p.next())
		if representation == "" {
			return 0
		}
		return p.make(nodeMetatype, representation, p.typ())
	case 'P':
		if !p.nextIf("M") {
			return p.until(nodeProtocols, aProtocol)
		}
		representation := metatypeRepresentation(p.next())
		if representation == "" {
			return 0
		}
		return p.make(nodeExistentialMetatype, representation, p.typ())
	}
	return 0
}

// builtin reads what follows 'B'.
func (p *swiftOldParser) builtin() nodeID {
	switch c := p.next(); c {
	case 'b', 'B', 'O', 'o', 'p', 't', 'w':
		return p.add(nodeBuiltin, builtinTypes[c], 0)
	case 'f', 'i':
		n, ok := p.natural()
		if !ok || n > maxBuiltinSize || !p.nextIf("_") {
			return 0
		}
		return p.sizedBuiltin(c, n)
	case 'v':
		n, ok := p.natural()
		if !ok || n > maxBuiltinSize || !p.nextIf("B") {
			return 0
		}
		if c := p.peek(); c != 'i' && c != 'f' && c != 'p' {
			return 0
		}
		return p.vectorOf(p.builtin(), n)
	}
	return 0
}

// functionType reads effects, parameters and result.
func (p *swiftOldParser) functionType(flags int64) nodeID {
	if p.nextIf("z") {
		flags |= fnThrows
	}
	if p.nextIf("y") {
		flags |= fnSendable
	}
	if p.nextIf("Z") {
		flags |= fnAsync
	}
	if p.nextIf("D") {
		c := p.next()
		if _, ok := differentiability(c); !ok {
			return 0
		}
		flags |= int64(c) << fnDiffShift
	}
	actor := nodeID(0)
	if p.nextIf("Y") {
		if actor = p.typ(); actor == 0 {
			return 0
		}
	}
	params := p.typ()
	result := p.typ()
	if params == 0 || result == 0 {
		return 0
	}
	return p.add(nodeFunc, "", flags, params, result, actor, 0)
}

// tupleElement reads a type after its label, if it has one.
func (p *swiftOldParser) tupleElement() nodeID {
	label := ""
	if c := p.peek(); isDigit(c) || c == 'o' {
		text, fixity := p.identifierText()
		if text == "" || fixity != 0 {
			return 0
		}
		label = text
	}
	typ := p.typ()
	if typ == 0 {
		return 0
	}
	return p.add(nodeTupleElement, label, 0, typ)
}

// box reads a box with its variables and, if it is generic, its arguments.
func (p *swiftOldParser) box() nodeID {
	signature, args := nodeID(0), nodeID(0)
	if p.nextIf("G") {
		if signature = p.genericSignature(); signature == 0 {
			return 0
		}
	}
	fields := p.until(nodeTypeList, aBoxField)
	if signature != 0 {
		if args = p.until(nodeTypeList, aType); args == 0 {
			return 0
		}
	}
	return p.boxOf(fields, signature, args)
}

func (p *swiftOldParser) boxField() nodeID {
	switch p.next() {
	case 'm':
		return p.make(nodePhrase, " var %0", p.typ())
	case 'i':
		return p.make(nodePhrase, " let %0", p.typ())
	}
	return 0
}

// archetype reads what follows 'Q': an associated type or an opaque one.
func (p *swiftOldParser) archetype() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	root := nodeID(0)
	switch p.next() {
	case 'u':
		return p.add(nodeTypePhrase, "some", 0)
	case 'U':
		if _, ok := p.index(); !ok {
			return 0
		}
		return p.add(nodeTypePhrase, "some", 0)
	case 'Q':
		root = p.archetype()
	case 'S':
		root = p.substitution()
	case 's':
		root = p.add(nodeModule, "Swift", 0)
	}
	if root == 0 {
		return 0
	}
	return p.substitutable(p.make(nodeSimplePhrase, "%0.%1", root, p.identifier()))
}

// genericParam reads a generic parameter: its depth and its index at that depth.
func (p *swiftOldParser) genericParam() nodeID {
	depth, index, ok := 0, 0, true
	switch {
	case p.nextIf("x"):
	case p.nextIf("d"):
		if depth, ok = p.index(); !ok {
			return 0
		}
		depth++
		index, ok = p.index()
	default:
		index, ok = p.index()
		index++
	}
	if !ok {
		return 0
	}
	return p.add(nodeGenericParam, "", int64(depth)<<32|int64(index))
}

// dependentType reads a generic parameter or an associated type.
func (p *swiftOldParser) dependentType() nodeID {
	if c := p.peek(); c != 'd' && c != '_' && !isDigit(c) {
		return p.memberOf(p.typ())
	}
	return p.genericParam()
}

// memberOf reads the name of an associated type of base.
func (p *swiftOldParser) memberOf(base nodeID) nodeID {
	if base == 0 {
		return 0
	}
	if p.nextIf("S") {
		name := p.substitution()
		if p.kind(name) != nodeAssocName {
			return 0
		}
		return p.make(nodeMember, "", base, name)
	}
	protocol := nodeID(0)
	if p.nextIf("P") {
		if protocol = p.protocol(); protocol == 0 {
			return 0
		}
	}
	name := p.identifier()
	if name == 0 {
		return 0
	}
	return p.make(nodeMember, "", base, p.substitutable(p.add(nodeAssocName, "", 0, name, protocol)))
}

// memberPath reads names of associated types, one of the other, up to '_'.
func (p *swiftOldParser) memberPath() nodeID {
	base := p.genericParam()
	for base != 0 && !p.nextIf("_") {
		base = p.memberOf(base)
	}
	return base
}

// genericSignature reads how many parameters there are at each depth, one if it
// does not say, and what is asked of them.
func (p *swiftOldParser) genericSignature() nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	for p.peek() != 'R' && p.peek() != 'r' {
		count := 0
		if !p.nextIf("z") {
			n, ok := p.index()
			if !ok {
				return 0
			}
			count = n + 1
		}
		p.scratch.push(p.add(nodeCount, "", int64(count)))
	}
	if p.scratch.n == base {
		p.scratch.push(p.add(nodeCount, "", 1))
	}
	if p.next() == 'R' {
		for !p.nextIf("r") {
			id := p.requirement()
			if id == 0 {
				return 0
			}
			p.scratch.push(id)
		}
	}
	return p.add(nodeSignature, "", 0, p.scratch.from(base)...)
}

// requirement reads what is asked of a parameter or an associated type.
func (p *swiftOldParser) requirement() nodeID {
	of := nodeID(0)
	switch {
	case p.nextIf("w"):
		of = p.memberOf(p.genericParam())
	case p.nextIf("W"):
		of = p.memberPath()
	default:
		of = p.genericParam()
	}
	if of == 0 {
		return 0
	}
	switch {
	case p.nextIf("z"):
		return p.make(nodeRequirement, "%0 == %1", of, p.typ())
	case p.nextIf("l"):
		return p.layoutRequirement(of)
	case p.peek() == 'C':
		return p.make(nodeRequirement, "%0: %1", of, p.typ())
	case p.nextIf("S"):
		to := p.substitution()
		if p.kind(to) != nodeClass {
			to = p.protocolIn(to)
		}
		return p.make(nodeRequirement, "%0: %1", of, to)
	}
	return p.make(nodeRequirement, "%0: %1", of, p.protocol())
}

func (p *swiftOldParser) layoutRequirement(of nodeID) nodeID {
	text, sizes := layoutName(p.next())
	if text == "" {
		return 0
	}
	numbers := [2]nodeID{}
	for i := range sizes {
		if i > 0 && !p.nextIf("_") {
			return 0
		}
		n, ok := p.natural()
		if !ok {
			return 0
		}
		numbers[i] = p.add(nodeInteger, "", int64(n))
	}
	return p.add(nodeRequirement, text, 0, of, numbers[0], numbers[1])
}

// implFunctionType reads the exact type of a function: attributes, parameters up
// to '_' and results up to '_'.
func (p *swiftOldParser) implFunctionType() nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	callee := ""
	switch p.next() {
	case 't':
		callee = "@convention(thin)"
	case 'd':
		callee = "@callee_unowned"
	case 'g':
		callee = "@callee_guaranteed"
	case 'o':
		callee = "@callee_owned"
	default:
		return 0
	}
	p.scratch.push(p.add(nodeImplAttr, callee, 0))
	if p.nextIf("C") {
		representation := oldRepresentation(p.next())
		if representation == "" {
			return 0
		}
		p.scratch.push(p.add(nodeImplAttr, representation, 0))
	}
	if p.nextIf("h") {
		p.scratch.push(p.add(nodeImplAttr, "@Sendable", 0))
	}
	if p.nextIf("H") {
		p.scratch.push(p.add(nodeImplAttr, "@async", 0))
	}
	if p.nextIf("G") || p.nextIf("g") {
		signature := p.genericSignature()
		if signature == 0 {
			return 0
		}
		p.scratch.push(p.add(nodeImplAttr, "", 0, signature))
	}
	if !p.nextIf("_") || !p.implValues(nodeImplParam) || !p.implValues(nodeImplResult) {
		return 0
	}
	return p.add(nodeImplFunc, "", 0, p.scratch.from(base)...)
}

func oldRepresentation(c byte) string {
	switch c {
	case 'b':
		return "@convention(block)"
	case 'c':
		return "@convention(c)"
	case 'm':
		return "@convention(method)"
	case 'O':
		return "@convention(objc_method)"
	case 'w':
		return "@convention(witness_method)"
	}
	return ""
}

// implValues reads parameters or results up to '_' and puts them on the scratch.
func (p *swiftOldParser) implValues(kind nodeKind) bool {
	for !p.nextIf("_") {
		isError := kind == nodeImplResult && p.nextIf("z")
		convention := oldConvention(p.next(), kind == nodeImplResult)
		typ := p.typ()
		if convention == "" || typ == 0 {
			return false
		}
		value := nodeID(0)
		if isError {
			value = p.add(nodeImplOther, convention, implError, typ)
		} else {
			value = p.add(kind, convention, 0, typ)
		}
		p.scratch.push(value)
	}
	return true
}

// oldConvention names how a parameter is passed or a result returned; an unknown
// letter has no name.
func oldConvention(c byte, result bool) string {
	switch {
	case c == 'd':
		return "@unowned"
	case c == 'o':
		return "@owned"
	case c == 'i' && result:
		return "@out"
	case c == 'a' && result:
		return "@autoreleased"
	case c == 'D' && result:
		return "@unowned_inner_pointer"
	case result:
		return ""
	case c == 'i':
		return "@in"
	case c == 'l':
		return "@inout"
	case c == 'g':
		return "@guaranteed"
	case c == 'e':
		return "@deallocating"
	}
	return ""
}
