package demangle

// derivative reads what follows 'TJ': functions that differentiation made.
func (p *swiftParser) derivative() nodeID {
	switch p.peek() {
	case 'S':
		p.pos++
		return p.subsetThunk()
	case 'O':
		p.pos++
		return p.selfReorderingThunk()
	case 'V':
		p.pos++
		return p.derivativeFunction(nodePhrase, "vtable thunk for %0 of %1 with respect to parameters %2 and results %3%4|vtable thunk for %0 of %1")
	}
	return p.derivativeFunction(nodeAutoDiff, "%0 of %1 with respect to parameters %2 and results %3%4|%0 of %1")
}

// derivativeKind reads the kind of a derivative.
func (p *swiftParser) derivativeKind() nodeID {
	text := ""
	switch p.next() {
	case 'f':
		text = "forward-mode derivative"
	case 'r':
		text = "reverse-mode derivative"
	case 'd':
		text = "differential"
	case 'p':
		text = "pullback"
	default:
		return 0
	}
	return p.add(nodeText, text, 0)
}

// indexSubset reads which parameters or results are meant: S is one that is, U one
// that is not; the letter end stands after the last.
func (p *swiftParser) indexSubset(end byte) nodeID {
	start := p.pos
	for p.peek() == 'S' || p.peek() == 'U' {
		p.pos++
	}
	subset := p.text[start:p.pos]
	if subset == "" || !p.nextIf(end) {
		return 0
	}
	return p.add(nodeIndexSubset, subset, 0)
}

// popAll takes the whole stack, which is one thing and what stands before it.
func (p *swiftParser) popAll() nodeID {
	all := p.add(nodePhrase, "%*", 0, p.stack.from(0)...)
	p.stack.cut(0)
	return all
}

func (p *swiftParser) derivativeFunction(kind nodeKind, text string) nodeID {
	signature := p.popKind(nodeSignature)
	of := p.popAll()
	how := p.derivativeKind()
	params := p.indexSubset('p')
	results := p.indexSubset('r')
	if how == 0 || of == 0 || params == 0 || results == 0 {
		return 0
	}
	return p.add(kind, text, 0, how, of, params, results, p.make(nodePhrase, " with %0|", signature))
}

func (p *swiftParser) subsetThunk() nodeID {
	to := nodeID(0)
	if p.stack.n > 1 {
		to = p.make(nodePhrase, " of type %0", p.pop())
	}
	from := p.popAll()
	how := p.derivativeKind()
	params := p.indexSubset('p')
	results := p.indexSubset('r')
	subset := p.indexSubset('P')
	if from == 0 || how == 0 || params == 0 || results == 0 || subset == 0 {
		return 0
	}
	return p.add(nodePhrase, "autodiff subset parameters thunk for %0 from %1 with respect to parameters %2 and results %3 to parameters %4%5|autodiff subset parameters thunk for %0 from %1", 0,
		how, from, params, results, subset, to)
}

func (p *swiftParser) selfReorderingThunk() nodeID {
	signature := p.popKind(nodeSignature)
	to := p.popType()
	from := p.popType()
	how := p.derivativeKind()
	if from == 0 || to == 0 || how == 0 {
		return 0
	}
	return p.add(nodePhrase, "autodiff self-reordering reabstraction thunk for %0%1 from %2 to %3|autodiff self-reordering reabstraction thunk for %2", 0,
		how, p.make(nodePhrase, "%0 ", signature), from, to)
}

// differentiabilityWitness reads what follows 'WJ'.
func (p *swiftParser) differentiabilityWitness() nodeID {
	signature := p.popKind(nodeSignature)
	of := p.popAll()
	text := ""
	switch p.next() {
	case 'f':
		text = "forward-mode differentiability witness for %0 with respect to parameters %1 and results %2%3"
	case 'r':
		text = "reverse-mode differentiability witness for %0 with respect to parameters %1 and results %2%3"
	case 'd':
		text = "normal differentiability witness for %0 with respect to parameters %1 and results %2%3"
	case 'l':
		text = "linear differentiability witness for %0 with respect to parameters %1 and results %2%3"
	default:
		return 0
	}
	params := p.indexSubset('p')
	results := p.indexSubset('r')
	if of == 0 || params == 0 || results == 0 {
		return 0
	}
	return p.add(nodePhrase, text, 0, of, params, results, p.make(nodePhrase, " with %0|", signature))
}
