package demangle

// An opKind says how an operator is written in expressions.
type opKind uint8

const (
	opNone opKind = iota
	opPrefix
	opPostfix
	opBinary
	opSubscript
	opAccess      // flag: it can be overloaded, and so name a function
	opNew         // flag: of arrays
	opDelete      // likewise
	opCall        // flag: with the function's name in parentheses
	opConversion  // the cast (type)value
	opConditional // a ? b : c
	opNameOnly
	opNamedCast
	opOfType // sizeof and the like, of a type
	opOfExpr // and of an expression
)

// A cppOperator is one of C++'s. sign is what stands in expressions; a function's name has
// "operator" before it.
type cppOperator struct {
	sign string
	kind opKind
	prec precedence
	flag bool
}

// nameable says whether a function can have the operator for its name.
func (o *cppOperator) nameable() bool {
	return o.kind != opNone && o.kind < opNamedCast && (o.kind != opAccess || o.flag)
}

// cppOperators are the operators by their letters (5.1.4.1).
var cppOperators = map[string]cppOperator{
	"aN": {"&=", opBinary, precAssign, false},
	"aS": {"=", opBinary, precAssign, false},
	"aa": {"&&", opBinary, precAndIf, false},
	"ad": {"&", opPrefix, precUnary, false},
	"an": {"&", opBinary, precAnd, false},
	"at": {"alignof ", opOfType, precUnary, false},
	"aw": {"co_await", opNameOnly, precPrimary, false},
	"az": {"alignof ", opOfExpr, precUnary, false},
	"cc": {"const_cast", opNamedCast, precPostfix, false},
	"cl": {"()", opCall, precPostfix, false},
	"cm": {",", opBinary, precComma, false},
	"co": {"~", opPrefix, precUnary, false},
	"cp": {"()", opCall, precPostfix, true},
	"cv": {"", opConversion, precCast, false},
	"dV": {"/=", opBinary, precAssign, false},
	"da": {"delete[]", opDelete, precUnary, true},
	"dc": {"dynamic_cast", opNamedCast, precPostfix, false},
	"de": {"*", opPrefix, precUnary, false},
	"dl": {"delete", opDelete, precUnary, false},
	"ds": {".*", opAccess, precPointerToMember, false},
	"dt": {".", opAccess, precPostfix, false},
	"dv": {"/", opBinary, precMultiplicative, false},
	"eO": {"^=", opBinary, precAssign, false},
	"eo": {"^", opBinary, precXor, false},
	"eq": {"==", opBinary, precEquality, false},
	"ge": {">=", opBinary, precRelational, false},
	"gt": {">", opBinary, precRelational, false},
	"ix": {"[]", opSubscript, precPostfix, false},
	"lS": {"<<=", opBinary, precAssign, false},
	"le": {"<=", opBinary, precRelational, false},
	"ls": {"<<", opBinary, precShift, false},
	"lt": {"<", opBinary, precRelational, false},
	"mI": {"-=", opBinary, precAssign, false},
	"mL": {"*=", opBinary, precAssign, false},
	"mi": {"-", opBinary, precAdditive, false},
	"ml": {"*", opBinary, precMultiplicative, false},
	"mm": {"--", opPostfix, precPostfix, false},
	"na": {"new[]", opNew, precUnary, true},
	"ne": {"!=", opBinary, precEquality, false},
	"ng": {"-", opPrefix, precUnary, false},
	"nt": {"!", opPrefix, precUnary, false},
	"nw": {"new", opNew, precUnary, false},
	"oR": {"|=", opBinary, precAssign, false},
	"oo": {"||", opBinary, precOrIf, false},
	"or": {"|", opBinary, precOr, false},
	"pL": {"+=", opBinary, precAssign, false},
	"pl": {"+", opBinary, precAdditive, false},
	"pm": {"->*", opAccess, precPointerToMember, true},
	"pp": {"++", opPostfix, precPostfix, false},
	"ps": {"+", opPrefix, precUnary, false},
	"pt": {"->", opAccess, precPostfix, true},
	"qu": {"?", opConditional, precConditional, false},
	"rM": {"%=", opBinary, precAssign, false},
	"rS": {">>=", opBinary, precAssign, false},
	"rc": {"reinterpret_cast", opNamedCast, precPostfix, false},
	"rm": {"%", opBinary, precMultiplicative, false},
	"rs": {">>", opBinary, precShift, false},
	"sc": {"static_cast", opNamedCast, precPostfix, false},
	"ss": {"<=>", opBinary, precSpaceship, false},
	"st": {"sizeof ", opOfType, precUnary, false},
	"sz": {"sizeof ", opOfExpr, precUnary, false},
	"te": {"typeid ", opOfExpr, precPostfix, false},
	"ti": {"typeid ", opOfType, precPostfix, false},
}

// operator reads the letters of an operator; its kind is opNone if none come.
func (p *cppParser) operator() cppOperator {
	if p.pos+2 > len(p.text) {
		return cppOperator{}
	}
	op, ok := cppOperators[p.text[p.pos:p.pos+2]]
	if ok {
		p.pos += 2
	}
	return op
}

// operatorName reads the name of an operator that is a function (5.1.4.1).
func (p *cppParser) operatorName(state *nameState) nodeID {
	op := p.operator()
	switch {
	case op.kind == opConversion:
		return p.conversion(state)
	case op.nameable():
		name := op.sign
		if c := name[0]; c >= 'a' && c <= 'z' {
			name = " " + name
		}
		return p.word("operator" + name)
	case op.kind != opNone:
		return p.fail()
	case p.nextText("li"):
		return p.make(cppNode{kind: cppLiteral}, p.sourceName())
	case p.peek(0) == 'v' && isDigit(p.peek(1)): // a vendor's
		p.pos += 2
		return p.make(cppNode{kind: cppConversion}, p.sourceName())
	}
	return p.fail()
}

// conversion reads the type that an operator converts to. The parameters in it may be those
// of the operator, whose arguments come after it.
func (p *cppParser) conversion(state *nameState) nodeID {
	whole, permit := p.wholeTypes, p.permitForward
	p.wholeTypes, p.permitForward = false, permit || state != nil
	to := p.parseType()
	p.wholeTypes, p.permitForward = whole, permit
	if state != nil {
		state.structor = true
	}
	return p.make(cppNode{kind: cppConversion}, to)
}
