package demangle

// archetype reads what follows 'Q': associated types, opaque types and packs.
func (p *swiftParser) archetype() nodeID {
	switch p.next() {
	case 'a':
		name := p.popKind(nodeIdent)
		return p.substitutable(p.make(nodeSimplePhrase, "%0.%1", p.popType(), name))
	case 'O':
		return p.make(nodeOpaqueOf, "<<opaque return type of %0>>", p.popContext())
	case 'o':
		return p.opaqueType()
	case 'r', 'u':
		return p.add(nodeTypePhrase, "some", 0)
	case 'R', 'U':
		if _, ok := p.index(); !ok {
			return 0
		}
		return p.add(nodeTypePhrase, "some", 0)
	case 'x':
		name := p.popAssocName()
		return p.substitutable(p.make(nodeMember, "", p.popType(), name))
	case 'X':
		return p.substitutable(p.memberPath(0))
	case 'y':
		return p.substitutable(p.member(p.genericParam()))
	case 'Y':
		return p.substitutable(p.memberPathOf(p.genericParam()))
	case 'z':
		return p.substitutable(p.member(p.add(nodeGenericParam, "", 0)))
	case 'Z':
		return p.substitutable(p.memberPathOf(p.add(nodeGenericParam, "", 0)))
	case 'p':
		count := p.popType()
		return p.make(nodeTypePhrase, "repeat %0", p.popType(), count)
	case 'e':
		pack := p.popType()
		level, ok := p.index()
		if !ok || pack == 0 {
			return 0
		}
		return p.add(nodeTypePhrase, "/* level: %v */ each %0", int64(level), pack)
	case 'P':
		return p.popPack("Pack{%l0}")
	case 'S':
		switch p.next() {
		case 'd':
			return p.popPack("@direct Pack{%l0}")
		case 'i':
			return p.popPack("@indirect Pack{%l0}")
		}
	}
	return 0
}

func (p *swiftParser) popPack(text string) nodeID {
	return p.make(nodeSimplePhrase, text, p.popList(nodeTypeList, "", aType))
}

// opaqueType reads the n-th opaque type of a declaration with its generic
// arguments, which are not shown.
func (p *swiftParser) opaqueType() nodeID {
	n, ok := p.index()
	base := p.scratch.n
	ok = p.popGenericArgs() && ok
	p.scratch.cut(base)
	declaration := p.pop()
	if !ok || declaration == 0 {
		return 0
	}
	return p.substitutable(p.add(nodeTypePhrase, "%0.%v", int64(n), declaration))
}

// genericParam reads a generic parameter: its depth and its index at that depth.
func (p *swiftParser) genericParam() nodeID {
	depth, index, ok := 0, 0, true
	switch {
	case p.nextIf('z'):
	case p.nextIf('s'):
		return p.add(nodeSimplePhrase, "Self", 0)
	case p.nextIf('d'):
		depth, ok = p.index()
		depth++
		if !ok {
			return 0
		}
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

// member makes an associated type of base.
func (p *swiftParser) member(base nodeID) nodeID {
	return p.make(nodeMember, "", base, p.popAssocName())
}

// memberPathOf is memberPath of a base that must be there.
func (p *swiftParser) memberPathOf(base nodeID) nodeID {
	if base == 0 {
		return 0
	}
	return p.memberPath(base)
}

// memberPath makes an associated type of an associated type and so on, of base or,
// if that is none, of the type below them on the stack.
func (p *swiftParser) memberPath(base nodeID) nodeID {
	start := p.scratch.n
	ok := p.gather(anAssocName)
	if base == 0 {
		base = p.popType()
	}
	if !ok {
		base = 0
	}
	for _, name := range p.scratch.from(start) {
		base = p.make(nodeMember, "", base, name)
	}
	p.scratch.cut(start)
	return base
}

// popAssocName takes the name of an associated type and perhaps its protocol.
func (p *swiftParser) popAssocName() nodeID {
	protocol := p.popType()
	if protocol != 0 && p.kind(protocol) != nodeProtocol {
		return 0
	}
	name := p.popKind(nodeIdent)
	if name == 0 {
		return 0
	}
	return p.add(nodeAssocName, "", 0, name, protocol)
}

// popAssocPath takes names of associated types, one of the other.
func (p *swiftParser) popAssocPath() nodeID {
	return p.popList(nodePhrase, "%d", anAssocName)
}
