package demangle

import "slices"

// The ways a parameter of a specialized function can have changed, in the value of
// a nodePropKind. The flags may be combined.
const (
	propFunction int64 = iota
	propGlobal
	propInteger
	propFloat
	propString
	propClosure
	propBoxToValue
	propBoxToStack
	propInOutToOut
	propKeyPath
	propStruct
	propSameAsArgument

	propDead              int64 = 1 << 6
	propOwnedToGuaranteed int64 = 1 << 7
	propExploded          int64 = 1 << 8
	propGuaranteedToOwned int64 = 1 << 9
	propExistential       int64 = 1 << 10
)

// Words before the parameters of a specialization.
const (
	specSignature = "function signature specialization"
	specGeneric   = "generic specialization"
	specKept      = "generic not re-abstracted specialization"
)

// specialization reads the specializations after 'T', of which c is the letter.
func (p *swiftParser) specialization(c byte) nodeID {
	switch c {
	case 'f':
		return p.functionSpecialization()
	case 'g', 'B':
		return p.genericSpecialization(specGeneric)
	case 'G':
		return p.genericSpecialization(specKept)
	case 's':
		return p.genericSpecialization("generic pre-specialization")
	case 'i':
		return p.genericSpecialization("inlined generic function")
	case 'p':
		return p.partialSpecialization("generic partial specialization")
	case 'P':
		return p.partialSpecialization("generic not-reabstracted partial specialization")
	case 't':
		return p.droppedSpecialization()
	}
	return 0
}

// droppedSpecialization reads which arguments a generic specialization lacks;
// they are not shown.
func (p *swiftParser) droppedSpecialization() nodeID {
	for {
		p.natural()
		if !p.nextIf('t') {
			break
		}
	}
	switch p.next() {
	case 'g', 'B':
		return p.genericSpecialization(specGeneric)
	case 'G':
		return p.genericSpecialization(specKept)
	}
	return 0
}

// specAttributes reads the attributes of a specialization and the number of the
// pass that made it. Those that are shown are put on the scratch.
func (p *swiftParser) specAttributes() (representationChanged, ok bool) {
	p.nextIf('m') // parameters of metatypes are gone; before Swift 6.2, not shown
	if p.nextIf('q') {
		p.scratch.push(p.add(nodeSerialized, "", 0))
	}
	if p.nextIf('a') {
		p.scratch.push(p.add(nodeSpecParam, "", 0)) // counts as an argument, is not shown
	}
	representationChanged = p.nextIf('r')
	return representationChanged, isDigit(p.next())
}

func (p *swiftParser) genericSpecialization(text string) nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	if _, ok := p.specAttributes(); !ok {
		return 0
	}
	first := p.scratch.n
	if !p.gather(aType) {
		return 0
	}
	params := p.scratch.from(first)
	for i, typ := range params {
		params[i] = p.make(nodeSpecParam, "%*", typ)
	}
	return p.add(nodeSpecialization, text, 0, p.scratch.from(base)...)
}

func (p *swiftParser) partialSpecialization(text string) nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	_, ok := p.specAttributes()
	if !p.scratch.push(p.make(nodeSpecParam, "Signature = %*", p.popType())) || !ok {
		return 0
	}
	return p.add(nodeSpecialization, text, 0, p.scratch.from(base)...)
}

// functionSpecialization reads how each parameter and the result of a function
// changed.
func (p *swiftParser) functionSpecialization() nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	changed, ok := p.specAttributes()
	if !ok {
		return 0
	}
	if changed {
		return p.add(nodeAttr, "representation changed of |", 0)
	}
	first := p.scratch.n
	for !p.nextIf('_') {
		if !p.scratch.push(p.specParam(nodeSpecParam)) {
			return 0
		}
	}
	last := p.scratch.n
	if !p.nextIf('n') && !p.scratch.push(p.specParam(nodeSpecReturn)) {
		return 0
	}
	for i := last - 1; i >= first; i-- {
		param := p.specOperands(p.scratch.from(i)[0])
		if param == 0 {
			return 0
		}
		p.scratch.from(i)[0] = param
	}
	return p.add(nodeSpecialization, specSignature, 0, p.scratch.from(base)...)
}

// specParam reads how one parameter changed, but for what waits on the stack.
func (p *swiftParser) specParam(kind nodeKind) nodeID {
	c := p.next()
	switch c {
	case 'n':
		return p.add(kind, "", 0)
	case 'c':
		return p.make(kind, "", p.add(nodePropKind, "", propClosure))
	case 'C':
		n := p.digits()
		return p.make(kind, "", p.add(nodePropKind, "", propSameAsArgument), n)
	case 'p':
		return p.constantProp(kind)
	case 'i':
		return p.make(kind, "", p.add(nodePropKind, "", propBoxToValue))
	case 's':
		return p.make(kind, "", p.add(nodePropKind, "", propBoxToStack))
	case 'r':
		return p.make(kind, "", p.add(nodePropKind, "", propInOutToOut))
	}
	flags := int64(0)
	switch c {
	case 'e':
		flags = propExistential | p.specFlag('D', propDead) | p.specFlag('G', propOwnedToGuaranteed) | p.specFlag('O', propGuaranteedToOwned)
	case 'd':
		flags = propDead | p.specFlag('G', propOwnedToGuaranteed) | p.specFlag('O', propGuaranteedToOwned)
	case 'g':
		flags = propOwnedToGuaranteed
	case 'o':
		flags = propGuaranteedToOwned
	case 'x':
		return p.make(kind, "", p.add(nodePropKind, "", propExploded))
	default:
		return 0
	}
	return p.make(kind, "", p.add(nodePropKind, "", flags|p.specFlag('X', propExploded)))
}

func (p *swiftParser) specFlag(c byte, flag int64) int64 {
	if p.nextIf(c) {
		return flag
	}
	return 0
}

// digits reads a number that is shown as it is.
func (p *swiftParser) digits() nodeID {
	start := p.pos
	for isDigit(p.peek()) {
		p.pos++
	}
	if p.pos == start {
		return 0
	}
	return p.add(nodePropPayload, p.text[start:p.pos], 0)
}

// constantProp reads which constants a parameter is known to be.
func (p *swiftParser) constantProp(kind nodeKind) nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	for {
		what, payload := int64(0), nodeID(0)
		switch p.peek() {
		case 'f':
			what = propFunction
		case 'g':
			what = propGlobal
		case 'S':
			what = propStruct
		case 'k':
			what = propKeyPath
		case 'i':
			what = propInteger
		case 'd':
			what = propFloat
		case 's':
			what = propString
		default:
			return p.add(kind, "", 0, p.scratch.from(base)...)
		}
		p.pos++
		p.scratch.push(p.add(nodePropKind, "", what))
		switch what {
		case propInteger, propFloat:
			payload = p.digits()
		case propString:
			payload = p.stringEncoding()
		default:
			continue
		}
		if !p.scratch.push(payload) {
			return 0
		}
	}
}

func (p *swiftParser) stringEncoding() nodeID {
	switch p.next() {
	case 'b':
		return p.add(nodePropPayload, "u8", 0)
	case 'w':
		return p.add(nodePropPayload, "u16", 0)
	case 'c':
		return p.add(nodePropPayload, "objc", 0)
	}
	return 0
}

// specOperands takes the identifiers and types of a parameter from the stack and
// returns the parameter with them.
func (p *swiftParser) specOperands(param nodeID) nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	fixed := int(p.at(param).n)
	for i := fixed - 1; i >= 0; i-- {
		if what := p.part(param, i); p.kind(what) == nodePropKind && !p.popOperands(p.at(what).val) {
			return 0
		}
	}
	if p.scratch.n == base {
		return param
	}
	slices.Reverse(p.scratch.from(base))
	operands := p.scratch.n
	for _, part := range p.parts(param) {
		p.scratch.push(part)
	}
	for i := base; i < operands; i++ {
		p.scratch.push(p.scratch.from(i)[0])
	}
	return p.add(p.kind(param), "", 0, p.scratch.from(operands)...)
}

// popOperands puts what a change of that kind needs on the scratch, the last first.
func (p *swiftParser) popOperands(what int64) bool {
	switch what {
	case propClosure:
		for id := p.popType(); id != 0; id = p.popType() {
			p.scratch.push(id)
		}
	case propKeyPath:
		for range 2 { // the root and the value
			if !p.scratch.push(p.popType()) {
				return false
			}
		}
	case propStruct:
		return p.scratch.push(p.popType())
	case propFunction, propGlobal, propString:
	default:
		return true
	}
	return p.scratch.push(p.popKind(nodeIdent))
}
