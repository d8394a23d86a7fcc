package demangle

import "slices"

// A swiftParser reads one name in the mangling that Swift has had since 4.0
// (Swift ABI, Mangling.rst): a list of operators in postfix order. Each takes its
// operands from a stack of nodes and pushes what it made of them.
type swiftParser struct {
	swiftPrinter
	text  string // what follows the prefix
	pos   int
	stack nodeStack

	substitutions nodeStack
	words         [maxWords]string // pieces of identifiers that later ones may repeat
	wordCount     int

	scratch nodeStack // lists that are being gathered, one upon the other

	labelsInTypes bool // Swift 4.0: labels stand in the type, not beside it
}

const (
	// maxWords is how many words an identifier can refer to (Mangling.rst, Identifiers).
	maxWords = 26
	// maxRepeat is the highest count of a repeated substitution.
	maxRepeat = 2048
)

func (p *swiftParser) more() bool { return p.pos < len(p.text) }

// peek returns the next byte, or zero at the end.
func (p *swiftParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// next takes the next byte; at the end it returns zero.
func (p *swiftParser) next() byte {
	if p.pos >= len(p.text) {
		return 0
	}
	p.pos++
	return p.text[p.pos-1]
}

func (p *swiftParser) nextIf(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// maxNatural bounds the numbers in names; no part of one has as many of anything.
const maxNatural = 1 << 27

// natural reads a decimal number.
func (p *swiftParser) natural() (int, bool) {
	n, start := 0, p.pos
	for isDigit(p.peek()) {
		if n = n*10 + int(p.text[p.pos]-'0'); n > maxNatural {
			return 0, false
		}
		p.pos++
	}
	return n, p.pos > start
}

// index reads '_' as 0 and NATURAL '_' as NATURAL+1.
func (p *swiftParser) index() (int, bool) {
	if p.nextIf('_') {
		return 0, true
	}
	n, ok := p.natural()
	return n + 1, ok && p.nextIf('_')
}

// pop takes the top of the stack, or returns none.
func (p *swiftParser) pop() nodeID { return p.stack.pop() }

// popKind takes the top of the stack if it is of that kind.
func (p *swiftParser) popKind(k nodeKind) nodeID {
	if p.kind(p.stack.top()) == k {
		return p.stack.pop()
	}
	return 0
}

// popTrait takes the top of the stack if its kind is in the set.
func (p *swiftParser) popTrait(t traits) nodeID {
	if p.is(p.stack.top(), t) {
		return p.stack.pop()
	}
	return 0
}

func (p *swiftParser) popType() nodeID { return p.popTrait(isType) }

// popEntity takes what a thunk or a descriptor can be about.
func (p *swiftParser) popEntity() nodeID { return p.popTrait(isType | isContext) }

// popModule takes a module; until now it may be a mere identifier.
func (p *swiftParser) popModule() nodeID {
	if id := p.popKind(nodeIdent); id != 0 {
		return p.add(nodeModule, p.at(id).text, 0)
	}
	return p.popKind(nodeModule)
}

// popContext takes what a declaration stands in.
func (p *swiftParser) popContext() nodeID {
	if id := p.popModule(); id != 0 {
		return id
	}
	return p.popTrait(isContext)
}

// popList takes a list that ends with the stack's top and begins with the
// element before a marker, and makes a node of it. An empty-list marker is a list
// of none.
func (p *swiftParser) popList(kind nodeKind, text string, element swiftElement) nodeID {
	base := p.scratch.n
	ok := p.gather(element)
	list := nodeID(0)
	if ok {
		list = p.add(kind, text, 0, p.scratch.from(base)...)
	}
	p.scratch.cut(base)
	return list
}

// gather puts a list's elements on the scratch, the first one first.
func (p *swiftParser) gather(element swiftElement) bool {
	if p.popKind(nodeEmptyList) != 0 {
		return true
	}
	base := p.scratch.n
	for {
		first := p.popKind(nodeFirst) != 0
		id := p.element(element)
		if id == 0 {
			return false
		}
		p.scratch.push(id)
		if first {
			slices.Reverse(p.scratch.from(base))
			return true
		}
	}
}

// A swiftElement says what a list is of. Calling a function that was handed in
// would put the parser and its buffers on the heap.
type swiftElement uint8

const (
	aType swiftElement = iota
	aProtocol
	aTupleElement
	aBoxField
	aRequirement
	anAssocName
	aConformance
)

func (p *swiftParser) element(of swiftElement) nodeID {
	switch of {
	case aProtocol:
		return p.popProtocol()
	case aTupleElement:
		return p.popTupleElement()
	case aBoxField:
		return p.popBoxField()
	case aRequirement:
		return p.popRequirement()
	case anAssocName:
		return p.popAssocName()
	case aConformance:
		return p.popConformance()
	}
	return p.popType()
}

// parse runs all operators. It reports whether each found its operands.
func (p *swiftParser) parse() bool {
	for p.more() {
		if !p.spend(1) || !p.stack.push(p.operator()) {
			return false
		}
	}
	return !p.overflowed()
}

// overflowed says whether a limit was met.
func (p *swiftParser) overflowed() bool {
	return p.over || p.full || p.stack.full || p.substitutions.full || p.scratch.full
}

// substitutable keeps a node for the operators that repeat it.
func (p *swiftParser) substitutable(id nodeID) nodeID {
	if id != 0 {
		p.substitutions.push(id)
	}
	return id
}

// operator reads one operator and returns what it makes, or none if it is
// unknown or lacks an operand.
func (p *swiftParser) operator() nodeID {
	switch c := p.next(); c {
	case 'A':
		return p.repeatedSubstitutions()
	case 'B':
		return p.builtinType()
	case 'C':
		return p.nominalType(nodeClass)
	case 'D':
		return p.typeMangling()
	case 'E':
		return p.extension()
	case 'F':
		return p.function()
	case 'G':
		return p.boundGenericType()
	case 'H':
		return p.conformanceOperator()
	case 'I':
		return p.implFunctionType()
	case 'K':
		return p.add(nodeThrows, "", 0)
	case 'L':
		return p.localName()
	case 'M':
		return p.metadata()
	case 'N':
		return p.make(nodePhrase, "type metadata for %0", p.popType())
	case 'O':
		return p.nominalType(nodeEnum)
	case 'P':
		return p.nominalType(nodeProtocol)
	case 'Q':
		return p.archetype()
	case 'R':
		return p.requirement()
	case 'S':
		return p.standardSubstitution()
	case 'T':
		return p.thunk()
	case 'V':
		return p.nominalType(nodeStruct)
	case 'W':
		return p.witness()
	case 'X':
		return p.specialType()
	case 'Y':
		return p.annotation()
	case 'Z':
		return p.make(nodeStatic, "", p.popEntity())
	case 'a':
		return p.nominalType(nodeTypeAlias)
	case 'c':
		return p.functionType(fnPlain, "")
	case 'd':
		return p.add(nodeVariadic, "", 0)
	case 'f':
		return p.functionEntity()
	case 'g':
		return p.retroactiveConformance()
	case 'h':
		return p.make(nodeTypePhrase, "__shared %0", p.popType())
	case 'i':
		return p.subscript()
	case 'l':
		return p.genericSignature(false)
	case 'm':
		return p.make(nodeMetatype, "", p.popType())
	case 'n':
		return p.make(nodeTypePhrase, "__owned %0", p.popType())
	case 'o':
		return p.operatorName()
	case 'p':
		return p.popList(nodeProtocols, "", aProtocol)
	case 'q':
		return p.genericParam()
	case 'r':
		return p.genericSignature(true)
	case 's':
		return p.add(nodeModule, "Swift", 0)
	case 't':
		return p.popList(nodeTuple, "", aTupleElement)
	case 'u':
		signature := p.popKind(nodeSignature)
		return p.make(nodeDependentType, "", signature, p.popType())
	case 'v':
		return p.accessor(p.declaration(nodeVariable))
	case 'w':
		return p.valueWitness()
	case 'x':
		return p.add(nodeGenericParam, "", 0)
	case 'y':
		return p.add(nodeEmptyList, "", 0)
	case 'z':
		return p.make(nodeInOut, "", p.popType())
	case '_':
		return p.add(nodeFirst, "", 0)
	case '.':
		// Compilers and linkers tell clones apart by suffixes of their own.
		suffix := p.text[p.pos-1:]
		p.pos = len(p.text)
		return p.add(nodeSuffix, suffix, 0)
	case '$':
		return p.integerType()
	default:
		if isDigit(c) {
			p.pos--
			return p.identifier()
		}
		return 0
	}
}

// typeMangling reads what debuggers are given: a type, with the labels of its
// parameters if it is a function.
func (p *swiftParser) typeMangling() nodeID {
	typ := p.popType()
	labels := p.popLabels(typ)
	if typ == 0 {
		return 0
	}
	return p.add(nodeTypeMangling, "", 0, labels, typ)
}

// repeatedSubstitutions reads 'A' and one or more substitutions: letters are
// indices below 26, lower case for all but the last, a number before a letter
// repeats it, and a number before '_' is an index from 27 on.
func (p *swiftParser) repeatedSubstitutions() nodeID {
	repeat := -1
	for {
		c := p.next()
		switch {
		case c >= 'a' && c <= 'z':
			if !p.stack.push(p.repeated(repeat, int(c-'a'))) {
				return 0
			}
			repeat = -1
		case c >= 'A' && c <= 'Z':
			return p.repeated(repeat, int(c-'A'))
		case c == '_':
			return p.repeated(1, repeat+27)
		case isDigit(c):
			p.pos--
			n, ok := p.natural()
			if !ok {
				return 0
			}
			repeat = n
		default:
			return 0
		}
	}
}

// repeated pushes a substitution count-1 times and returns it for the last.
func (p *swiftParser) repeated(count, index int) nodeID {
	if index >= p.substitutions.n || count > maxRepeat {
		return 0
	}
	return p.pushCopies(count, p.substitutions.from(index)[0])
}

func (p *swiftParser) pushCopies(count int, id nodeID) nodeID {
	if !p.spend(max(count, 0)) {
		return 0
	}
	for ; count > 1; count-- {
		if !p.stack.push(id) {
			return 0
		}
	}
	return id
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
