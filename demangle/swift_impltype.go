package demangle

import "strings"

// The attributes of a parameter or a result of an implementation function type,
// in the value of its node.
const (
	implNoDerivative int64 = 1 << iota
	implSending
	implIsolated
	implLeading
)

// What else than a parameter or a result a value of a function is, in the value of
// its node.
const (
	implYield int64 = iota
	implError
)

// implParamConvention names how a parameter is passed; an unknown letter has no name.
func implParamConvention(c byte) string {
	switch c {
	case 'i':
		return "@in"
	case 'c':
		return "@in_constant"
	case 'l':
		return "@inout"
	case 'b':
		return "@inout_aliasable"
	case 'n':
		return "@in_guaranteed"
	case 'X':
		return "@in_cxx"
	case 'x':
		return "@owned"
	case 'g':
		return "@guaranteed"
	case 'e':
		return "@deallocating"
	case 'y':
		return "@unowned"
	case 'v':
		return "@pack_owned"
	case 'p':
		return "@pack_guaranteed"
	case 'm':
		return "@pack_inout"
	}
	return ""
}

// implResultConvention names how a result is returned; an unknown letter has no name.
func implResultConvention(c byte) string {
	switch c {
	case 'r':
		return "@out"
	case 'o':
		return "@owned"
	case 'd':
		return "@unowned"
	case 'u':
		return "@unowned_inner_pointer"
	case 'a':
		return "@autoreleased"
	case 'k':
		return "@pack_out"
	case 'l':
		return "@guaranteed_address"
	case 'g':
		return "@guaranteed"
	case 'm':
		return "@inout"
	}
	return ""
}

// implCallee names the ownership of a closure's context; an unknown letter has no name.
func implCallee(c byte) string {
	switch c {
	case 'y':
		return "@callee_unowned"
	case 'g':
		return "@callee_guaranteed"
	case 'x':
		return "@callee_owned"
	case 't':
		return "@convention(thin)"
	}
	return ""
}

// implRepresentation names how a function is called; an unknown letter has no name.
func implRepresentation(c byte) string {
	switch c {
	case 'B':
		return "@convention(block)"
	case 'C':
		return "@convention(c)"
	case 'M':
		return "@convention(method)"
	case 'O', 'J':
		return "@convention(objc_method)"
	case 'K':
		return "@convention(closure)"
	case 'W':
		return "@convention(witness_method)"
	}
	return ""
}

// implFunctionType reads the exact type of a function (Mangling.rst,
// impl-function-type): its types are on the stack, their conventions follow.
func (p *swiftParser) implFunctionType() nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	if !p.implSubstitutions() {
		return 0
	}
	signature := p.popKind(nodeSignature)
	if signature != 0 {
		p.nextIf('P') // pseudogeneric; it is written like any other
	}
	if !p.implAttributes() {
		return 0
	}
	if signature != 0 {
		p.scratch.push(p.make(nodeImplAttr, "", signature))
	}
	first := p.scratch.n
	if !p.implConventions() {
		return 0
	}
	for i, values := 0, p.scratch.from(first); i < len(values); i++ {
		typ := p.popType()
		if typ == 0 {
			return 0
		}
		p.parts(values[len(values)-1-i])[0] = typ
	}
	return p.add(nodeImplFunc, "", 0, p.scratch.from(base)...)
}

// implSubstitutions reads the generic arguments that a type was made with.
func (p *swiftParser) implSubstitutions() bool {
	if p.nextIf('s') {
		args := p.popArgList()
		signature := p.popKind(nodeSignature)
		if !p.scratch.push(p.make(nodeImplPattern, "", signature, args)) {
			return false
		}
	}
	if p.nextIf('I') {
		return p.scratch.push(p.make(nodeImplInvocation, "", p.popArgList()))
	}
	return true
}

// popArgList takes a single list of generic arguments.
func (p *swiftParser) popArgList() nodeID {
	base := p.scratch.n
	list := nodeID(0)
	if p.popGenericArgs() && p.scratch.n == base+1 {
		list = p.scratch.top()
	}
	p.scratch.cut(base)
	return list
}

// implAttributes reads what stands before the parameters.
func (p *swiftParser) implAttributes() bool {
	ok := true
	attr := func(text string) { ok = p.scratch.push(p.add(nodeImplAttr, text, 0)) && ok }
	if p.nextIf('e') {
		attr("@escaping")
	}
	if p.nextIf('A') {
		attr("@isolated(any)")
	} else if p.nextIf('N') {
		attr("nonisolated(nonsending)")
	}
	if text, is := differentiability(p.peek()); is {
		p.pos++
		attr(text)
	}
	callee := implCallee(p.next())
	if callee == "" {
		return false
	}
	attr(callee)
	if text, is := p.implFunctionRepresentation(); is {
		attr(text)
	}
	switch {
	case p.nextIf('A'):
		attr("@yield_once")
	case p.nextIf('I'):
		attr("@yield_once_2")
	case p.nextIf('G'):
		attr("@yield_many")
	}
	if p.nextIf('h') {
		attr("@Sendable")
	}
	if p.nextIf('H') {
		attr("@async")
	}
	if p.nextIf('T') {
		ok = p.scratch.push(p.add(nodeImplSending, "", 0)) && ok
	}
	return ok
}

// implFunctionRepresentation reads how the function is called, and for C the
// mangled type of the C function.
func (p *swiftParser) implFunctionRepresentation() (string, bool) {
	if text := implRepresentation(p.peek()); text != "" {
		p.pos++
		return text, true
	}
	if p.peek() != 'z' || p.pos+1 >= len(p.text) {
		return "", false
	}
	if c := p.text[p.pos+1]; c == 'B' || c == 'C' {
		p.pos += 2
		convention := implRepresentation(c)
		if clang := p.piece(); clang != "" {
			convention = strings.TrimSuffix(convention, ")") + `, mangledCType: "` + clang + `")`
		}
		return convention, true
	}
	return "", false
}

// implConventions reads how parameters, results, yields and the error are passed,
// and puts a node without its type on the scratch for each.
func (p *swiftParser) implConventions() bool {
	for {
		convention := implParamConvention(p.peek())
		if convention == "" {
			break
		}
		p.pos++
		flags := p.implFlags("wTIL")
		if !p.scratch.push(p.add(nodeImplParam, convention, flags, 0)) {
			return false
		}
	}
	for {
		convention := implResultConvention(p.peek())
		if convention == "" {
			break
		}
		p.pos++
		flags := p.implFlags("w")
		if !p.scratch.push(p.add(nodeImplResult, convention, flags, 0)) {
			return false
		}
	}
	for p.nextIf('Y') {
		if convention := implParamConvention(p.next()); convention == "" || !p.scratch.push(p.add(nodeImplOther, convention, implYield, 0)) {
			return false
		}
	}
	if p.nextIf('z') {
		if convention := implResultConvention(p.next()); convention == "" || !p.scratch.push(p.add(nodeImplOther, convention, implError, 0)) {
			return false
		}
	}
	return p.nextIf('_')
}

// implFlags reads those of the letters that follow, in this order, and returns
// them as bits from implNoDerivative up.
func (p *swiftParser) implFlags(letters string) int64 {
	flags := int64(0)
	for i := range len(letters) {
		if p.nextIf(letters[i]) {
			flags |= 1 << i
		}
	}
	return flags
}
