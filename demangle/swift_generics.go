package demangle

import "slices"

// genericSignature takes requirements and reads how many parameters there are at
// each depth; without counts there is one.
func (p *swiftParser) genericSignature(counts bool) nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	if !counts {
		p.scratch.push(p.add(nodeCount, "", 1))
	}
	for counts && !p.nextIf('l') {
		count := 0
		if !p.nextIf('z') {
			n, ok := p.index()
			if !ok {
				return 0
			}
			count = n + 1
		}
		p.scratch.push(p.add(nodeCount, "", int64(count)))
	}
	first := p.scratch.n
	for id := p.popRequirement(); id != 0; id = p.popRequirement() {
		p.scratch.push(id)
	}
	slices.Reverse(p.scratch.from(first))
	return p.add(nodeSignature, "", 0, p.scratch.from(base)...)
}

// What a requirement asks of its subject.
type constraint uint8

const (
	conforms constraint = iota // to a protocol
	inherits                   // from a class
	sameType
	sameShape
	layout
	inverse // need not conform
	packMarker
	valueMarker
)

// What a requirement is about.
type subject uint8

const (
	aParam  subject = iota // a generic parameter
	aMember                // an associated type
	aPath                  // an associated type of an associated type
	aRepeat                // a type on the stack
)

// requirementOperators are the requirements by the letter after 'R'.
var requirementOperators = [128]struct {
	known bool
	what  constraint
	of    subject
}{
	'v': {true, packMarker, aParam},
	'V': {true, valueMarker, aParam},
	'c': {true, inherits, aMember},
	'C': {true, inherits, aPath},
	'b': {true, inherits, aParam},
	'B': {true, inherits, aRepeat},
	't': {true, sameType, aMember},
	'T': {true, sameType, aPath},
	's': {true, sameType, aParam},
	'S': {true, sameType, aRepeat},
	'm': {true, layout, aMember},
	'M': {true, layout, aPath},
	'l': {true, layout, aParam},
	'L': {true, layout, aRepeat},
	'p': {true, conforms, aMember},
	'P': {true, conforms, aPath},
	'Q': {true, conforms, aRepeat},
	'h': {true, sameShape, aParam},
	'i': {true, inverse, aParam},
	'I': {true, inverse, aRepeat},
	'j': {true, inverse, aMember},
	'J': {true, inverse, aPath},
}

// requirement reads a requirement of a generic signature; without a letter it is
// that a parameter conforms to a protocol.
func (p *swiftParser) requirement() nodeID {
	op := requirementOperators[0]
	if c := p.peek(); c < 128 && requirementOperators[c].known {
		p.pos++
		op = requirementOperators[c]
	}
	bit := 0
	if op.what == inverse {
		n, ok := p.index()
		if !ok {
			return 0
		}
		bit = n
	}
	of := p.requirementSubject(op.of)
	switch op.what {
	case packMarker:
		return p.make(nodePackMarker, "", of)
	case valueMarker:
		return p.make(nodeValueMarker, "", of, p.popType())
	case conforms:
		return p.make(nodeRequirement, "%0: %1", of, p.popProtocol())
	case inherits:
		return p.make(nodeRequirement, "%0: %1", of, p.popType())
	case sameType:
		return p.make(nodeRequirement, "%0 == %1", of, p.popType())
	case sameShape:
		return p.make(nodeRequirement, "%0.shape == %1.shape", of, p.popType())
	case inverse:
		return p.inverseRequirement(of, bit)
	default:
		return p.layoutRequirement(of)
	}
}

func (p *swiftParser) requirementSubject(of subject) nodeID {
	switch of {
	case aMember:
		return p.substitutable(p.member(p.genericParam()))
	case aPath:
		return p.substitutable(p.memberPathOf(p.genericParam()))
	case aRepeat:
		return p.popType()
	}
	return p.genericParam()
}

func (t *swiftTree) inverseRequirement(of nodeID, bit int) nodeID {
	if of == 0 {
		return 0
	}
	text := "%0: ~Swift.<bit %v>"
	switch bit {
	case 0:
		text = "%0: ~Swift.Copyable"
	case 1:
		text = "%0: ~Swift.Escapable"
	}
	return t.add(nodeRequirement, text, int64(bit), of)
}

// layoutName names a layout by its letter, with the template for its sizes.
func layoutName(c byte) (text string, sizes int) {
	switch c {
	case 'U':
		return "%0: _UnknownLayout", 0
	case 'R':
		return "%0: _RefCountedObject", 0
	case 'N':
		return "%0: _NativeRefCountedObject", 0
	case 'C':
		return "%0: AnyObject", 0
	case 'D':
		return "%0: _NativeClass", 0
	case 'T':
		return "%0: _Trivial", 0
	case 'B':
		return "%0: ", 0
	case 'e':
		return "%0: _Trivial(%1)", 1
	case 'm':
		return "%0: _TrivialAtMost(%1)", 1
	case 'S':
		return "%0: (%1)", 1
	case 'E':
		return "%0: _Trivial(%1, %2)", 2
	case 'M':
		return "%0: _TrivialAtMost(%1, %2)", 2
	}
	return "", 0
}

func (p *swiftParser) layoutRequirement(of nodeID) nodeID {
	text, sizes := layoutName(p.next())
	if text == "" {
		return 0
	}
	numbers := [2]nodeID{}
	for i := range sizes {
		n, ok := p.index()
		if !ok {
			return 0
		}
		numbers[i] = p.add(nodeInteger, "", int64(n))
	}
	if of == 0 {
		return 0
	}
	return p.add(nodeRequirement, text, 0, of, numbers[0], numbers[1])
}

// conformanceOperator reads what follows 'H': conformances as generic arguments
// carry them, and records for the run-time library.
func (p *swiftParser) conformanceOperator() nodeID {
	switch p.next() {
	case 'A':
		index, ok := p.conformanceIndex()
		protocol := p.popProtocol()
		associated := p.make(nodePhrase, "dependent associated conformance %0%1", p.popType(), protocol)
		return p.dependentConformance("dependent associated protocol conformance %i%0 to %1", index, ok, p.popKind(nodeDependentConf), associated)
	case 'C':
		return p.concreteConformance()
	case 'D':
		index, ok := p.conformanceIndex()
		protocol := p.popProtocol()
		return p.dependentConformance("dependent root protocol conformance %i%0 to %1", index, ok, p.popType(), protocol)
	case 'I':
		index, ok := p.conformanceIndex()
		protocol := p.popProtocol()
		return p.dependentConformance("dependent inherited protocol conformance %i%0 to %1", index, ok, p.popKind(nodeDependentConf), protocol)
	case 'O':
		typ := p.popType()
		return p.make(nodeConcreteConf, "opaque result conformance %0 of %1", p.popKind(nodeDependentConf), typ)
	case 'P':
		return p.make(nodeConfRef, "protocol conformance ref (type's module) %0", p.popProtocol())
	case 'p':
		return p.make(nodeConfRef, "protocol conformance ref (protocol's module) %0", p.popProtocol())
	case 'X':
		return p.make(nodeConcreteConf, "pack protocol conformance %0", p.popConformances())
	case 'c':
		return p.make(nodePhrase, "protocol conformance descriptor runtime record for %0", p.popProtocolConformance())
	case 'n':
		return p.make(nodePhrase, "nominal type descriptor runtime record for %0", p.popType())
	case 'o':
		return p.make(nodePhrase, "opaque type descriptor runtime record for %0", p.pop())
	case 'r':
		return p.make(nodePhrase, "protocol descriptor runtime record for %0", p.popProtocol())
	case 'F':
		return p.add(nodeAttr, "accessible function runtime record for |", 0)
	}
	return 0
}

func (p *swiftParser) dependentConformance(text string, index int64, ok bool, of, to nodeID) nodeID {
	if !ok || of == 0 || to == 0 {
		return 0
	}
	return p.add(nodeDependentConf, text, index, of, to)
}

// conformanceIndex reads the place of a conformance among others: 1 is unknown,
// shown as -1, and the rest count from 2.
func (p *swiftParser) conformanceIndex() (int64, bool) {
	n, ok := p.index()
	return int64(n) - 2, ok && n > 0
}

func (p *swiftParser) popConformance() nodeID { return p.popTrait(isAnyConf) }

func (p *swiftParser) popConformances() nodeID {
	return p.popList(nodeConformanceList, "", aConformance)
}

func (p *swiftParser) concreteConformance() nodeID {
	conditional := p.popConformances()
	ref := p.popKind(nodeConfRef)
	if ref == 0 {
		module := p.popModule()
		ref = p.make(nodeConfRef, "protocol conformance ref (retroactive) %0%1", p.popProtocol(), module)
	}
	typ := p.popType()
	if conditional == 0 || p.at(conditional).n == 0 {
		return p.make(nodeConcreteConf, "concrete protocol conformance %0 to %1", typ, ref, conditional)
	}
	return p.make(nodeConcreteConf, "concrete protocol conformance %0 to %1 with conditional requirements: %2", typ, ref, conditional)
}

// retroactiveConformance reads a conformance that a generic argument owes to
// another module than its type's and the protocol's.
func (p *swiftParser) retroactiveConformance() nodeID {
	n, ok := p.index()
	conformance := p.popConformance()
	if !ok || conformance == 0 {
		return 0
	}
	return p.add(nodeRetroactive, "retroactive @ %v%0", int64(n), conformance)
}

// popProtocolConformance takes the conformance of a type to a protocol in a module.
func (p *swiftParser) popProtocolConformance() nodeID {
	signature := p.popKind(nodeSignature)
	module := p.popModule()
	protocol := p.popProtocol()
	typ := p.popType()
	name := nodeID(0)
	if typ == 0 {
		name = p.popKind(nodeIdent)
		typ = p.popType()
	}
	if signature != 0 {
		typ = p.make(nodeDependentType, "", signature, typ)
	}
	if name != 0 {
		return p.make(nodeConformance, "property behavior storage of %2 in %0 : %1", typ, protocol, module, name)
	}
	return p.make(nodeConformance, "%0 : %1 in %2|%0", typ, protocol, module)
}
