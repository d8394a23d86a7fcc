package demangle

// expr reads an expression (5.1.6).
func (p *cppParser) expr() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	global := p.nextText("gs")
	if op := p.operator(); op.kind != opNone {
		return p.operation(&op, global)
	}
	c, d := p.peek(0), p.peek(1)
	switch {
	case c == 'L':
		return p.exprPrimary()
	case c == 'T':
		return p.templateParam()
	case c == 'f' && (d == 'p' || d == 'L' && isDigit(p.peek(2))):
		return p.functionParam()
	case c == 'f':
		return p.fold()
	case c == 'r' && (d == 'q' || d == 'Q'):
		return p.requires()
	case p.nextText("il"):
		list := p.exprList(aBracedExpr)
		return p.add(cppNode{kind: cppBraces, b: list})
	case p.nextText("tl"):
		of := p.parseType()
		return p.make(cppNode{kind: cppBraces}, of, p.exprList(aBracedExpr))
	case p.nextText("mc"):
		to := p.parseType()
		from := p.expr()
		p.number(true)
		p.want('E')
		base := p.gather()
		p.push(from)
		return p.make(cppNode{kind: cppConvert, prec: precUnary}, to, p.gathered(base))
	case p.nextText("nx"):
		return p.make(cppNode{kind: cppEnclosed, text: "noexcept ", prec: precUnary}, p.expr())
	case p.nextText("so"):
		return p.subobject()
	case p.nextText("sp"):
		return p.make(cppNode{kind: cppExpansion}, p.expr())
	case p.nextText("sZ"):
		if p.peek(0) == 'T' {
			return p.make(cppNode{kind: cppSizeof}, p.templateParam())
		}
		return p.make(cppNode{kind: cppEnclosed, text: "sizeof... "}, p.functionParam())
	case p.nextText("sP"):
		list := p.exprList(anArgument)
		return p.make(cppNode{kind: cppEnclosed, text: "sizeof... "}, p.make(cppNode{kind: cppArgumentPack}, list))
	case p.nextText("tr"):
		return p.word("throw")
	case p.nextText("tw"):
		return p.make(cppNode{kind: cppUnary, text: "throw ", prec: precPrimary, flag: true}, p.expr())
	case p.next('u'):
		return p.vendorExpr()
	}
	return p.unresolvedName(global)
}

// A cppElement says what a list is of. Calling a function that was handed in would put the
// parser on the heap.
type cppElement uint8

const (
	anExpr cppElement = iota
	aBracedExpr
	anArgument
)

// exprList reads expressions up to an E.
func (p *cppParser) exprList(of cppElement) nodeID {
	base := p.gather()
	for p.until('E') {
		switch of {
		case anExpr:
			p.push(p.expr())
		case aBracedExpr:
			p.push(p.bracedExpr())
		case anArgument:
			p.push(p.templateArg())
		}
	}
	return p.gathered(base)
}

// operation reads the operands of an operator.
func (p *cppParser) operation(op *cppOperator, global bool) nodeID {
	n := cppNode{text: op.sign, prec: op.prec, flag: op.flag}
	if global {
		n.num = 1
	}
	switch op.kind {
	case opBinary, opAccess, opSubscript:
		switch n.kind = cppBinary; op.kind {
		case opAccess:
			n.kind = cppAccess
		case opSubscript:
			n.kind = cppSubscript
		}
		left := p.expr()
		return p.make(n, left, p.expr())
	case opPostfix:
		if n.kind = cppPostfixed; p.next('_') {
			n.kind = cppUnary
		}
		n.flag = false
		return p.make(n, p.expr())
	case opPrefix:
		n.kind = cppUnary
		return p.make(n, p.expr())
	case opNew:
		return p.newExpr(n)
	case opDelete:
		n.kind = cppDelete
		return p.make(n, p.expr())
	case opCall:
		n.kind = cppCall
		function := p.expr()
		return p.make(n, function, p.exprList(anExpr))
	case opConversion:
		return p.convert(n)
	case opConditional:
		n.kind = cppTernary
		condition := p.expr()
		then := p.expr()
		return p.make(n, condition, then, p.expr())
	case opNamedCast:
		n.kind = cppCast
		to := p.parseType()
		return p.make(n, to, p.expr())
	case opOfType:
		n.kind = cppEnclosed
		return p.make(n, p.parseType())
	case opOfExpr:
		n.kind = cppEnclosed
		return p.make(n, p.expr())
	}
	return p.fail()
}

// newExpr reads a new-expression: what is given to operator new, the type, initializers.
func (p *cppParser) newExpr(n cppNode) nodeID {
	n.kind = cppNew
	base := p.gather()
	for p.until('_') {
		p.push(p.expr())
	}
	placement := p.gathered(base)
	of := p.parseType()
	base = p.gather()
	if p.nextText("pi") {
		for p.until('E') {
			p.push(p.expr())
		}
	} else {
		p.want('E')
	}
	return p.make(n, placement, of, p.gathered(base))
}

// convert reads a cast without a word, of one expression or of a list.
func (p *cppParser) convert(n cppNode) nodeID {
	n.kind = cppConvert
	whole := p.wholeTypes
	p.wholeTypes = false
	to := p.parseType()
	p.wholeTypes = whole
	if p.next('_') {
		return p.make(n, to, p.exprList(anExpr))
	}
	base := p.gather()
	p.push(p.expr())
	return p.make(n, to, p.gathered(base))
}

// bracedExpr reads an expression in an initializer, with the member that it is for.
func (p *cppParser) bracedExpr() nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	switch {
	case p.nextText("di"):
		field := p.sourceName()
		return p.make(cppNode{kind: cppField}, field, p.bracedExpr())
	case p.nextText("dx"):
		index := p.expr()
		return p.make(cppNode{kind: cppField, flag: true}, index, p.bracedExpr())
	case p.nextText("dX"):
		first := p.expr()
		last := p.expr()
		return p.make(cppNode{kind: cppRange}, first, last, p.bracedExpr())
	}
	return p.expr()
}

// functionParam reads a use of a parameter of the function that is being declared.
func (p *cppParser) functionParam() nodeID {
	switch {
	case p.nextText("fpT"):
		return p.word("this")
	case p.nextText("fp"):
	case p.nextText("fL"):
		if p.number(false) == "" || !p.want('p') {
			return p.fail()
		}
	default:
		return p.fail()
	}
	p.qualifiers()
	n := p.number(false)
	p.want('_')
	return p.add(cppNode{kind: cppParam, text: n})
}

// fold reads an operator that is applied to all of a pack.
func (p *cppParser) fold() nodeID {
	p.pos++
	c := p.peek(0)
	p.pos++
	n := cppNode{kind: cppFold, flag: c == 'l' || c == 'L'}
	if c != 'l' && c != 'L' && c != 'r' && c != 'R' {
		return p.fail()
	}
	op := p.operator()
	if op.kind != opBinary && (op.kind != opAccess || op.prec != precPointerToMember) {
		return p.fail()
	}
	n.text = op.sign
	pack := p.expr()
	if c == 'l' || c == 'r' {
		return p.make(n, pack)
	}
	initial := p.expr()
	if n.flag {
		pack, initial = initial, pack
	}
	return p.make(n, pack, initial)
}

// subobject reads what a pointer in a template argument points to.
func (p *cppParser) subobject() nodeID {
	of := p.parseType()
	in := p.expr()
	n := cppNode{kind: cppSubobject, text: p.number(true)}
	for p.ok() && p.next('_') {
		p.number(false)
	}
	p.next('p') // one past the end
	p.want('E')
	return p.make(n, in, of)
}

// vendorExpr reads an expression of a vendor's: a name and arguments.
func (p *cppParser) vendorExpr() nodeID {
	name := p.identifier()
	base := p.gather()
	switch {
	case name == "__uuidof" && p.next('t'):
		p.push(p.parseType())
	case name == "__uuidof" && p.next('z'):
		p.push(p.expr())
	default:
		for p.until('E') {
			p.push(p.templateArg())
		}
	}
	arguments := p.gathered(base)
	return p.make(cppNode{kind: cppCall, prec: precPostfix}, p.word(name), arguments)
}

// requires reads a requires-expression: parameters, and requirements.
func (p *cppParser) requires() nodeID {
	n := cppNode{kind: cppRequires}
	base := p.gather()
	if p.nextText("rQ") {
		for p.until('_') {
			p.push(p.parseType())
		}
	} else {
		p.pos += 2
	}
	params := p.gathered(base)
	base = p.gather()
	for first := true; p.ok() && (first || !p.next('E')); first = false {
		switch {
		case p.next('X'):
			of := p.expr()
			req := cppNode{kind: cppRequireExpr, flag: p.next('N')}
			if p.next('R') {
				req.b = p.name(nil)
			}
			p.push(p.make(req, of))
		case p.next('T'):
			p.push(p.make(cppNode{kind: cppRequireType}, p.parseType()))
		case p.next('Q'):
			p.push(p.make(cppNode{kind: cppRequireNested}, p.expr()))
		default:
			p.over = true
		}
	}
	return p.make(n, params, p.gathered(base))
}
