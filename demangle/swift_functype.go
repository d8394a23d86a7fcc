package demangle

import "slices"

// The conventions and effects of a function type, in the value of its node.
const (
	fnPlain int64 = iota
	fnNoEscape
	fnUncurried
	fnAutoclosure
	fnThin
	fnC
	fnBlock
	fnEscapingBlock

	fnConvention  int64 = 0xf
	fnSendable    int64 = 1 << 4
	fnAsync       int64 = 1 << 5
	fnSending     int64 = 1 << 6
	fnIsolatedAny int64 = 1 << 7
	fnNonisolated int64 = 1 << 8
	fnThrows      int64 = 1 << 9
	fnDiffShift         = 16 // from here on: the letter of the kind of differentiability
)

// The parts of a function type.
const (
	funcParams = iota
	funcResult
	funcActor  // the global actor it is isolated to, or none
	funcThrown // the type it throws if that is named, or none
)

// functionConvention returns the convention of the letter after 'X'.
func functionConvention(c byte) (int64, bool) {
	switch c {
	case 'E':
		return fnNoEscape, true
	case 'A', 'K':
		return fnAutoclosure, true
	case 'f':
		return fnThin, true
	case 'U':
		return fnUncurried, true
	case 'L':
		return fnEscapingBlock, true
	case 'B':
		return fnBlock, true
	case 'C':
		return fnC, true
	}
	return 0, false
}

// annotation reads what follows 'Y': effects of the function type to come, or an
// attribute of the parameter type before it.
func (p *swiftParser) annotation() nodeID {
	switch p.next() {
	case 'a':
		return p.add(nodeAsync, "", 0)
	case 'A':
		return p.add(nodeFuncIsolation, "", fnIsolatedAny)
	case 'b':
		return p.add(nodeSendable, "", 0)
	case 'c':
		return p.make(nodeFuncIsolation, "", p.popType())
	case 'C':
		return p.add(nodeFuncIsolation, "", fnNonisolated)
	case 'i':
		return p.make(nodeTypePhrase, "isolated %0", p.popType())
	case 'j':
		c := p.next()
		if _, ok := differentiability(c); !ok {
			return 0
		}
		return p.add(nodeFuncDiff, "", int64(c))
	case 'k':
		return p.make(nodeTypePhrase, "@noDerivative %0", p.popType())
	case 'K':
		return p.make(nodeThrows, "", p.popType())
	case 't':
		return p.make(nodeTypePhrase, "_const %0", p.popType())
	case 'g':
		return p.make(nodeTypePhrase, "@const %0", p.popType())
	case 'T':
		return p.add(nodeSendingResult, "", 0)
	case 'u':
		return p.make(nodeTypePhrase, "sending %0", p.popType())
	}
	return 0
}

// differentiability returns how the letter of a kind of differentiability is written.
func differentiability(c byte) (string, bool) {
	switch c {
	case 'f':
		return "@differentiable(_forward)", true
	case 'r':
		return "@differentiable(reverse)", true
	case 'l':
		return "@differentiable(_linear)", true
	case 'd':
		return "@differentiable", true
	}
	return "", false
}

// functionType takes the parts of a function type, the last one first.
func (p *swiftParser) functionType(flags int64, clang string) nodeID {
	actor, thrown := nodeID(0), nodeID(0)
	if p.popKind(nodeSendingResult) != 0 {
		flags |= fnSending
	}
	if id := p.popKind(nodeFuncIsolation); id != 0 {
		flags |= p.at(id).val
		actor = p.part(id, 0)
	}
	if id := p.popKind(nodeFuncDiff); id != 0 {
		flags |= p.at(id).val << fnDiffShift
	}
	if id := p.popKind(nodeThrows); id != 0 {
		flags |= fnThrows
		thrown = p.part(id, 0)
	}
	if p.popKind(nodeSendable) != 0 {
		flags |= fnSendable
	}
	if p.popKind(nodeAsync) != 0 {
		flags |= fnAsync
	}
	params := p.popFunctionParams()
	result := p.popFunctionParams()
	if params == 0 || result == 0 {
		return 0
	}
	return p.add(nodeFunc, clang, flags, params, result, actor, thrown)
}

func (p *swiftParser) popFunctionParams() nodeID {
	if p.popKind(nodeEmptyList) != 0 {
		return p.add(nodeTuple, "", 0)
	}
	return p.popType()
}

// functionOf returns the function type that typ is, perhaps a generic one, or none.
func (t *swiftTree) functionOf(typ nodeID) nodeID {
	if t.kind(typ) == nodeDependentType {
		typ = t.part(typ, 1)
	}
	if t.kind(typ) == nodeFunc {
		if c := t.at(typ).val & fnConvention; c == fnPlain || c == fnNoEscape {
			return typ
		}
	}
	return 0
}

// popLabels takes the labels of a function's parameters. No labels at all are an
// empty list, and no list is what has none to begin with.
func (p *swiftParser) popLabels(typ nodeID) nodeID {
	if !p.labelsInTypes && p.popKind(nodeEmptyList) != 0 {
		return p.add(nodeLabelList, "", 0)
	}
	function := p.functionOf(typ)
	if function == 0 {
		return 0
	}
	params := p.part(function, funcParams)
	count := 1
	if p.kind(params) == nodeTuple {
		count = int(p.at(params).n)
	}
	if count == 0 {
		return 0
	}
	if p.labelsInTypes {
		return p.labelsFromTypes(params)
	}
	base := p.scratch.n
	labelled, ok := false, true
	for range count {
		label := p.pop()
		if k := p.kind(label); k != nodeIdent && k != nodeFirst {
			ok = false
			break
		}
		labelled = labelled || p.kind(label) == nodeIdent
		p.scratch.push(label)
	}
	list := nodeID(0)
	if ok {
		if !labelled {
			p.scratch.cut(base)
		}
		slices.Reverse(p.scratch.from(base))
		list = p.add(nodeLabelList, "", 0, p.scratch.from(base)...)
	}
	p.scratch.cut(base)
	return list
}

// labelsFromTypes moves the labels of Swift 4.0 from the tuple of the parameters to
// where they have been since.
func (p *swiftParser) labelsFromTypes(params nodeID) nodeID {
	if p.kind(params) != nodeTuple {
		return p.add(nodeLabelList, "", 0)
	}
	base := p.scratch.n
	labelled := false
	for i := range int(p.at(params).n) {
		element := p.part(params, i)
		label := nodeID(0)
		if text := p.at(element).text; text != "" {
			labelled = true
			label = p.add(nodeIdent, text, 0)
			p.at(element).text = ""
		} else {
			label = p.add(nodeFirst, "", 0)
		}
		p.scratch.push(label)
	}
	if !labelled {
		p.scratch.cut(base)
	}
	list := p.add(nodeLabelList, "", 0, p.scratch.from(base)...)
	p.scratch.cut(base)
	return list
}
