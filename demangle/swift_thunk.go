package demangle

import "slices"

// thunkAttributes are the attributes of functions after 'T' that stand alone.
// What follows '|' is the short form.
var thunkAttributes = [128]string{
	'o': "@objc |",
	'O': "@nonobjc |",
	'D': "dynamic |",
	'd': "super |",
	'E': "distributed thunk |",
	'F': "distributed accessor for |",
	'm': "merged |",
	'X': "dynamically replaceable variable for |",
	'x': "dynamically replaceable key for |",
	'I': "dynamically replaceable thunk for |",
	'u': "async function pointer to ",
}

// entityThunks are the operators after 'T' that take an entity.
var entityThunks = [128]string{
	'c': "curry thunk of %0",
	'j': "dispatch thunk of %0",
	'q': "method descriptor for %0",
	'S': "protocol self-conformance witness for %0",
}

// thunk reads what follows 'T': thunks, specializations and descriptors.
func (p *swiftParser) thunk() nodeID {
	c := p.next()
	if c >= 128 {
		return 0
	}
	if text := thunkAttributes[c]; text != "" {
		return p.add(nodeAttr, text, 0)
	}
	if text := entityThunks[c]; text != "" {
		return p.make(nodePhrase, text, p.popEntity())
	}
	switch c {
	case 'A':
		return p.add(nodePartialApply, "partial apply forwarder|partial apply", 0)
	case 'a':
		return p.add(nodePartialApply, "partial apply ObjC forwarder|partial apply", 0)
	case 'T':
		if !p.nextIf('I') {
			return 0
		}
		return p.make(nodePhrase, "identity thunk of %0", p.popEntity())
	case 'Q':
		return p.numberedAttribute("(%v) await resume partial function for |")
	case 'Y':
		return p.numberedAttribute("(%v) suspend resume partial function for |")
	case 'v':
		return p.outlinedVariable()
	case 'e':
		return p.outlinedBridgedMethod()
	case 'w':
		return p.rareAttribute()
	case 'C':
		return p.make(nodePhrase, "coroutine continuation prototype for %0", p.popType())
	case 'z', 'Z':
		return p.completionHandler(c == 'Z')
	case 'V':
		base := p.popEntity()
		return p.make(nodePhrase, "vtable thunk for %1 dispatching to %0", p.popEntity(), base)
	case 'W':
		entity := p.popEntity()
		return p.make(nodePhrase, "protocol witness for %1 in conformance %0", p.popProtocolConformance(), entity)
	case 'R', 'r', 'y':
		return p.reabstractionThunk(c)
	case 'U':
		actor := p.popType()
		return p.make(nodePhrase, "%0 with global actor constraint %1", p.pop(), actor)
	case 'K', 'k':
		return p.keyPathThunk(c)
	case 'H':
		return p.keyPathIndexThunk("key path index equality operator for %0%1")
	case 'h':
		return p.keyPathIndexThunk("key path index hash operator for %0%1")
	case 'l':
		return p.make(nodePhrase, "associated type descriptor for %0", p.popAssocName())
	case 'L':
		return p.make(nodePhrase, "protocol requirements base descriptor for %0", p.popProtocol())
	case 'M':
		return p.make(nodePhrase, "default associated type metadata accessor for %0", p.popAssocName())
	case 'n':
		return p.associatedConformance("associated conformance descriptor for %0.%1: %2")
	case 'N':
		return p.associatedConformance("default associated conformance accessor for %0.%1: %2")
	case 'b':
		required := p.popProtocol()
		return p.make(nodePhrase, "base conformance descriptor for %0: %1", p.popType(), required)
	case 'J':
		return p.derivative()
	}
	return p.specialization(c)
}

func (p *swiftParser) numberedAttribute(text string) nodeID {
	n, ok := p.index()
	if !ok {
		return 0
	}
	return p.add(nodeAttr, text, int64(n))
}

func (p *swiftParser) outlinedVariable() nodeID {
	n, ok := p.index()
	switch {
	case !ok:
		return 0
	case p.nextIf('r'):
		return p.add(nodeAttr, "outlined read-only object #%v of ", int64(n))
	}
	return p.add(nodeAttr, "outlined variable #%v of ", int64(n))
}

// outlinedBridgedMethod reads what kind of method it is and which of its
// parameters are bridged.
func (p *swiftParser) outlinedBridgedMethod() nodeID {
	start := p.pos
	switch p.next() {
	case 'o', 'p', 'a', 'm':
	default:
		return 0
	}
	for !p.nextIf('_') {
		if c := p.next(); c != 'n' && c != 'b' && c != 'g' {
			return 0
		}
	}
	return p.add(nodeAttr, "outlined bridged method (%0) of ", 0, p.add(nodeText, p.text[start:p.pos-1], 0))
}

// rareAttribute reads the attributes after 'Tw'.
func (p *swiftParser) rareAttribute() nodeID {
	switch p.next() {
	case 'b':
		return p.add(nodeAttr, "back deployment thunk for |", 0)
	case 'B':
		return p.add(nodeAttr, "back deployment fallback for ", 0)
	case 'c':
		return p.add(nodeAttr, "coro function pointer to ", 0)
	case 'd':
		return p.add(nodeAttr, "default override of ", 0)
	case 'S':
		return p.add(nodeAttr, "#_hasSymbol query for ", 0)
	}
	return 0
}

func (p *swiftParser) completionHandler(checked bool) nodeID {
	n, ok := p.index()
	signature := p.popKind(nodeSignature)
	result := p.popType()
	block := p.popType()
	if !ok || result == 0 || block == 0 {
		return 0
	}
	text := "@objc completion handler block implementation for %2%0 with result type %1%3"
	if checked {
		text = "checked @objc completion handler block implementation for %2%0 with result type %1%3"
	}
	onError := " <invalid error flag>"
	switch n {
	case 0:
		onError = ""
	case 1:
		onError = " nonzero on error"
	case 2:
		onError = " zero on error"
	}
	return p.add(nodePhrase, text, 0, block, result, signature, p.add(nodeText, onError, 0))
}

func (p *swiftParser) reabstractionThunk(c byte) nodeID {
	signature := p.popKind(nodeSignature)
	self := nodeID(0)
	if c == 'y' {
		if self = p.popType(); self == 0 {
			return 0
		}
	}
	to := p.popType()
	return p.thunkFromTo(c, signature, p.popType(), to, self)
}

// thunkFromTo makes a reabstraction thunk of the kind of the letter.
func (t *swiftTree) thunkFromTo(c byte, signature, from, to, self nodeID) nodeID {
	if from == 0 || to == 0 {
		return 0
	}
	text := "reabstraction thunk helper %1from %0 to %2|thunk for %0"
	switch c {
	case 'r':
		text = "reabstraction thunk %1from %0 to %2|thunk for %0"
	case 'y':
		text = "reabstraction thunk %1from %0 to %2 self %3|thunk for %0"
	}
	return t.add(nodePhrase, text, 0, from, t.make(nodePhrase, "%0 |", signature), to, self)
}

// keyPathThunk takes the types of a key path's component down to its declaration.
func (p *swiftParser) keyPathThunk(c byte) nodeID {
	text := "key path getter for %0 : %+"
	if c == 'k' {
		text = "key path setter for %0 : %+"
	}
	switch rest := p.text[p.pos:]; {
	case len(rest) >= 2 && rest[:2] == "mu":
		p.pos += 2
		text = "key path unapplied method %0 : %+"
	case len(rest) >= 2 && rest[:2] == "MA":
		p.pos += 2
		text = "key path applied method %0 : %+"
	}
	serialized := p.nextIf('q')
	base := p.scratch.n
	defer p.scratch.cut(base)
	if serialized {
		p.scratch.push(p.add(nodeText, ", serialized", 0))
	}
	types := p.scratch.n
	for id := p.popType(); id != 0; id = p.popType() {
		p.scratch.push(id)
	}
	if p.scratch.n == types {
		return 0
	}
	declaration := p.pop()
	if p.kind(declaration) == nodeSignature {
		p.scratch.push(declaration)
		declaration = p.pop()
	}
	if declaration == 0 {
		return 0
	}
	p.scratch.push(declaration)
	slices.Reverse(p.scratch.from(base))
	return p.add(nodePhrase, text, 0, p.scratch.from(base)...)
}

// keyPathIndexThunk takes the types of a subscript's indices: all of the stack.
func (p *swiftParser) keyPathIndexThunk(text string) nodeID {
	p.nextIf('q') // serialized; not shown
	signature := p.popKind(nodeSignature)
	base := p.scratch.n
	defer p.scratch.cut(base)
	for p.stack.n > 0 {
		if !p.scratch.push(p.popType()) {
			return 0
		}
	}
	if signature == 0 && p.scratch.n == base {
		return 0
	}
	slices.Reverse(p.scratch.from(base))
	return p.add(nodePhrase, text, 0, signature, p.add(nodeTuple, "", 0, p.scratch.from(base)...))
}

func (p *swiftParser) associatedConformance(text string) nodeID {
	required := p.popProtocol()
	path := p.popAssocPath()
	return p.make(nodePhrase, text, p.popType(), path, required)
}
