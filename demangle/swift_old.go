package demangle

import (
	"slices"
	"strings"
)

// A swiftOldParser reads one name in the mangling that Swift had before 4.0, and
// that Objective-C class names still have: '_T' and productions in prefix order.
type swiftOldParser struct {
	swiftPrinter
	text string // what follows '_T'
	pos  int

	stack         nodeStack
	substitutions nodeStack
	scratch       nodeStack // lists that are being gathered, one upon the other
}

func (p *swiftOldParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// next takes the next byte; at the end it returns zero.
func (p *swiftOldParser) next() byte {
	if p.pos >= len(p.text) {
		return 0
	}
	p.pos++
	return p.text[p.pos-1]
}

func (p *swiftOldParser) nextIf(s string) bool {
	if strings.HasPrefix(p.text[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

// natural reads a decimal number. One that is too large for anything is the
// largest there is.
func (p *swiftOldParser) natural() (int, bool) {
	n, start := 0, p.pos
	for isDigit(p.peek()) {
		n = min(n*10+int(p.text[p.pos]-'0'), maxNatural)
		p.pos++
	}
	return n, p.pos > start
}

// index reads '_' as 0 and NATURAL '_' as NATURAL+1.
func (p *swiftOldParser) index() (int, bool) {
	if p.nextIf("_") {
		return 0, true
	}
	n, ok := p.natural()
	return n + 1, ok && p.nextIf("_")
}

// until gathers elements up to '_' and makes a node of them.
func (p *swiftOldParser) until(kind nodeKind, element swiftElement) nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	for !p.nextIf("_") {
		id := p.element(element)
		if id == 0 {
			return 0
		}
		p.scratch.push(id)
	}
	return p.add(kind, "", 0, p.scratch.from(base)...)
}

func (p *swiftOldParser) element(of swiftElement) nodeID {
	switch of {
	case aProtocol:
		return p.protocol()
	case aTupleElement:
		return p.tupleElement()
	case aBoxField:
		return p.boxField()
	}
	return p.typ()
}

func (p *swiftOldParser) substitutable(id nodeID) nodeID {
	if id != 0 {
		p.substitutions.push(id)
	}
	return id
}

// parse reads the whole name. The stack then has what the name is of, its
// attributes with the first one last, and a suffix.
func (p *swiftOldParser) parse() bool {
	if p.nextIf("TS") {
		for more := true; more; more = p.nextIf("_TTS") {
			id := p.specialization()
			if id == 0 {
				return false
			}
			p.stack.push(id)
			// Each specialization has substitutions of its own.
			p.substitutions.cut(0)
		}
		if !p.nextIf("_T") {
			return false
		}
	} else if text := p.attribute(); text != "" {
		p.stack.push(p.add(nodeAttr, text, 0))
	}
	if p.nextIf("PA") {
		text := "partial apply forwarder|partial apply"
		if p.nextIf("o") {
			text = "partial apply ObjC forwarder|partial apply"
		}
		p.stack.push(p.add(nodePartialApply, text, 0))
		if !p.nextIf("__T") {
			return p.finish()
		}
	}
	return p.stack.push(p.global()) && p.finish()
}

// finish turns the order of reading into that of a stack.
func (p *swiftOldParser) finish() bool {
	slices.Reverse(p.stack.from(0))
	if p.pos < len(p.text) {
		p.stack.push(p.add(nodeSuffix, p.text[p.pos:], 0))
	}
	return !p.overflowed()
}

// overflowed says whether a limit was met.
func (p *swiftOldParser) overflowed() bool {
	return p.over || p.full || p.stack.full || p.substitutions.full || p.scratch.full
}

func (p *swiftOldParser) attribute() string {
	switch {
	case p.nextIf("To"):
		return "@objc |"
	case p.nextIf("TO"):
		return "@nonobjc |"
	case p.nextIf("TD"):
		return "dynamic |"
	case p.nextIf("Td"):
		return "super |"
	case p.nextIf("TV"):
		return "override |"
	}
	return ""
}

// global reads metadata, witnesses, thunks, types for debuggers, and entities.
func (p *swiftOldParser) global() nodeID {
	switch {
	case p.nextIf("M"):
		return p.metadata()
	case p.nextIf("t"):
		typ := p.typ()
		if typ == 0 {
			return 0
		}
		return p.add(nodeTypeMangling, "", 0, 0, typ)
	case p.nextIf("w"):
		if len(p.text)-p.pos < 2 {
			return 0
		}
		name := valueWitnessName(p.text[p.pos : p.pos+2])
		p.pos += 2
		if name == "" {
			return 0
		}
		return p.make(nodeValueWitness, name, p.typ())
	case p.nextIf("W"):
		return p.witness()
	case p.nextIf("TR"):
		return p.reabstraction('R')
	case p.nextIf("Tr"):
		return p.reabstraction('r')
	case p.nextIf("TW"):
		conformance := p.conformance()
		return p.make(nodePhrase, "protocol witness for %1 in conformance %0", conformance, p.entityOf())
	}
	return p.entityOf()
}

func (p *swiftOldParser) metadata() nodeID {
	switch p.peek() {
	case 'P', 'a', 'L', 'm', 'n', 'f':
		return p.make(nodePhrase, typeDescriptors[p.next()], p.typ())
	case 'p':
		p.pos++
		return p.make(nodePhrase, "protocol descriptor for %0", p.protocol())
	}
	return p.make(nodePhrase, "type metadata for %0", p.typ())
}

func (p *swiftOldParser) witness() nodeID {
	c := p.next()
	switch c {
	case 'V':
		return p.make(nodePhrase, "value witness table for %0", p.typ())
	case 'v':
		switch p.next() {
		case 'd':
			return p.make(nodePhrase, "direct field offset for %0", p.entityOf())
		case 'i':
			return p.make(nodePhrase, "indirect field offset for %0", p.entityOf())
		}
	case 'P', 'G', 'I', 'a':
		return p.make(nodePhrase, conformanceTables[c], p.conformance())
	case 'l', 'L':
		text := "lazy protocol witness table accessor for type %0 and conformance %1"
		if c == 'L' {
			text = "lazy protocol witness table cache variable for type %0 and conformance %1"
		}
		typ := p.typ()
		return p.make(nodePhrase, text, typ, p.conformance())
	case 't':
		conformance := p.conformance()
		return p.make(nodePhrase, "associated type metadata accessor for %1 in %0", conformance, p.declName())
	case 'T':
		conformance := p.conformance()
		name := p.declName()
		return p.make(nodePhrase, "associated type witness table accessor for %1 : %2 in %0", conformance, name, p.protocol())
	}
	return 0
}

func (p *swiftOldParser) reabstraction(c byte) nodeID {
	signature := nodeID(0)
	if p.nextIf("G") {
		if signature = p.genericSignature(); signature == 0 {
			return 0
		}
	}
	to := p.typ()
	return p.thunkFromTo(c, signature, p.typ(), to, 0)
}

// conformance reads the conformance of a type to a protocol in a module.
func (p *swiftOldParser) conformance() nodeID {
	typ := p.typ()
	protocol := p.protocol()
	return p.make(nodeConformance, "%0 : %1 in %2|%0", typ, protocol, p.context())
}

// specialization reads what a function was specialized for.
func (p *swiftOldParser) specialization() nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	kind := p.next()
	if p.nextIf("q") {
		p.scratch.push(p.add(nodeSerialized, "", 0))
	}
	p.next() // the pass that made it; not shown
	text := ""
	switch kind {
	case 'g':
		text = specGeneric
	case 'r':
		text = specKept
	case 'f':
		text = specSignature
	default:
		return 0
	}
	for !p.nextIf("_") {
		param := nodeID(0)
		if kind == 'f' {
			param = p.signatureParam()
		} else {
			param = p.genericParamSpec()
		}
		if !p.scratch.push(param) {
			return 0
		}
	}
	return p.add(nodeSpecialization, text, 0, p.scratch.from(base)...)
}

// genericParamSpec reads a type argument and its conformances.
func (p *swiftOldParser) genericParamSpec() nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	text := "%*"
	for next := p.typ(); ; {
		if next == 0 {
			return 0
		}
		p.scratch.push(next)
		if p.nextIf("_") {
			return p.add(nodeSpecParam, text, 0, p.scratch.from(base)...)
		}
		words := " and %0"
		if p.scratch.n == base+1 {
			words = " with %0"
		}
		next = p.make(nodePhrase, words, p.conformance())
	}
}

// signatureParam reads how a parameter changed.
func (p *swiftOldParser) signatureParam() nodeID {
	switch {
	case p.nextIf("n_"):
		return p.add(nodeSpecParam, "", 0)
	case p.nextIf("cp"):
		return p.constantProp()
	case p.nextIf("cl"):
		return p.closureProp()
	case p.nextIf("i_"):
		return p.make(nodeSpecParam, "", p.add(nodePropKind, "", propBoxToValue))
	case p.nextIf("k_"):
		return p.make(nodeSpecParam, "", p.add(nodePropKind, "", propBoxToStack))
	case p.nextIf("r_"):
		return p.make(nodeSpecParam, "", p.add(nodePropKind, "", propInOutToOut))
	}
	flags := int64(0)
	if p.nextIf("d") {
		flags |= propDead
	}
	if p.nextIf("g") {
		flags |= propOwnedToGuaranteed
	}
	if p.nextIf("o") {
		flags |= propGuaranteedToOwned
	}
	if p.nextIf("s") {
		flags |= propExploded
	}
	if flags == 0 || !p.nextIf("_") {
		return 0
	}
	return p.make(nodeSpecParam, "", p.add(nodePropKind, "", flags))
}

// constantProp reads which constant a parameter is known to be.
func (p *swiftOldParser) constantProp() nodeID {
	switch {
	case p.nextIf("fr"):
		return p.constant(propFunction, 0, p.identifier())
	case p.nextIf("g"):
		return p.constant(propGlobal, 0, p.identifier())
	case p.nextIf("i"):
		return p.constantNumber(propInteger)
	case p.nextIf("fl"):
		return p.constantNumber(propFloat)
	case p.nextIf("se0v"):
		return p.constant(propString, p.add(nodePropPayload, "u8", 0), p.identifier())
	case p.nextIf("se1v"):
		return p.constant(propString, p.add(nodePropPayload, "u16", 0), p.identifier())
	}
	return 0
}

// constant makes a parameter of a constant, with an encoding if it is a string.
func (p *swiftOldParser) constant(what int64, encoding, name nodeID) nodeID {
	if name == 0 || !p.nextIf("_") {
		return 0
	}
	kind := p.add(nodePropKind, "", what)
	if encoding == 0 {
		return p.make(nodeSpecParam, "", kind, name)
	}
	return p.make(nodeSpecParam, "", kind, encoding, name)
}

func (p *swiftOldParser) constantNumber(what int64) nodeID {
	end := strings.IndexByte(p.text[p.pos:], '_')
	if end < 0 {
		return 0
	}
	digits := p.text[p.pos : p.pos+end]
	p.pos += end + 1
	return p.make(nodeSpecParam, "", p.add(nodePropKind, "", what), p.add(nodePropPayload, digits, 0))
}

// closureProp reads a closure that a parameter is known to be, and what it captured.
func (p *swiftOldParser) closureProp() nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	name := p.identifier()
	if name == 0 {
		return 0
	}
	p.scratch.push(p.add(nodePropKind, "", propClosure))
	p.scratch.push(p.add(nodePropPayload, p.at(name).text, 0))
	for !p.nextIf("_") {
		typ := p.typ()
		if typ == 0 {
			return 0
		}
		p.scratch.push(typ)
	}
	return p.add(nodeSpecParam, "", 0, p.scratch.from(base)...)
}
