package demangle

// expression writes an expression. None has a part behind a name.
func (w *cppPrinter) expression(n *cppNode) {
	switch n.kind {
	case cppBinary:
		w.binary(n)
	case cppUnary:
		w.write(n.text)
		if n.flag {
			w.print(n.a)
		} else {
			w.operand(n.a, n.prec, false)
		}
	case cppPostfixed:
		w.operand(n.a, n.prec, true)
		w.write(n.text)
	case cppSubscript:
		w.operand(n.a, n.prec, false)
		w.open('[')
		w.operand(n.b, precDefault, false)
		w.close(']')
	case cppAccess:
		w.operand(n.a, n.prec, true)
		w.write(n.text)
		w.operand(n.b, n.prec, false)
	case cppTernary:
		w.operand(n.a, n.prec, false)
		w.write(" ? ")
		w.operand(n.b, precDefault, false)
		w.write(" : ")
		w.operand(n.c, precAssign, true)
	case cppEnclosed:
		w.write(n.text)
		w.open('(')
		w.print(n.a)
		w.close(')')
	case cppCast:
		w.write(n.text)
		greater := w.greater
		w.greater = 0
		w.writeByte('<')
		w.left(n.a)
		w.writeByte('>')
		w.greater = greater
		w.open('(')
		w.operand(n.b, precDefault, false)
		w.close(')')
	case cppSizeof:
		w.write("sizeof...")
		w.open('(')
		w.expansion(n.a)
		w.close(')')
	case cppCall:
		w.call(n)
	case cppNew:
		w.newExpression(n)
	case cppDelete:
		w.global(n)
		w.write(n.text)
		w.writeByte(' ')
		w.print(n.a)
	case cppConvert:
		w.open('(')
		w.print(n.a)
		w.close(')')
		w.open('(')
		w.list(n.b)
		w.close(')')
	case cppFold:
		w.fold(n)
	case cppParam:
		w.write("fp")
		w.write(n.text)
	case cppSubobject:
		w.subobject(n)
	default:
		w.literal(n)
	}
}

// binary writes an operator between its operands. Where > would end template arguments it
// stands in parentheses.
func (w *cppPrinter) binary(n *cppNode) {
	enclosed := w.greater == 0 && (n.text == ">" || n.text == ">>")
	if enclosed {
		w.open('(')
	}
	assign := n.prec == precAssign // it binds from the right
	if assign {
		w.operand(n.a, precOrIf, false)
	} else {
		w.operand(n.a, n.prec, true)
	}
	if n.text != "," {
		w.writeByte(' ')
	}
	w.write(n.text)
	w.writeByte(' ')
	w.operand(n.b, n.prec, assign)
	if enclosed {
		w.close(')')
	}
}

func (w *cppPrinter) call(n *cppNode) {
	if n.flag {
		w.open('(')
	}
	w.print(n.a)
	if n.flag {
		w.close(')')
	}
	w.open('(')
	w.list(n.b)
	w.close(')')
}

// global writes the :: before a new or delete that is not the class's.
func (w *cppPrinter) global(n *cppNode) {
	if n.num != 0 {
		w.write("::")
	}
}

func (w *cppPrinter) newExpression(n *cppNode) {
	w.global(n)
	w.write(n.text)
	if !w.empty(n.a) {
		w.open('(')
		w.list(n.a)
		w.close(')')
	}
	w.writeByte(' ')
	w.print(n.b)
	if !w.empty(n.c) {
		w.open('(')
		w.list(n.c)
		w.close(')')
	}
}

// fold writes a fold-expression: what it begins with, if that is given, before the dots of a
// fold to the left and behind those of one to the right.
func (w *cppPrinter) fold(n *cppNode) {
	pack := func() {
		w.open('(')
		w.expansion(n.a)
		w.close(')')
	}
	initial := func() { w.operand(n.b, precCast, true) }
	before, behind := pack, initial
	if n.flag {
		before, behind = initial, pack
	}
	operator := func() {
		w.writeByte(' ')
		w.write(n.text)
		w.writeByte(' ')
	}
	w.open('(')
	if !n.flag || n.b != 0 {
		before()
		operator()
	}
	w.write("...")
	if n.flag || n.b != 0 {
		operator()
		behind()
	}
	w.close(')')
}

func (w *cppPrinter) subobject(n *cppNode) {
	w.print(n.a)
	w.write(".<")
	w.print(n.b)
	w.write(" at offset ")
	if n.text == "" {
		w.write("0")
	} else {
		w.signed(n.text)
	}
	w.writeByte('>')
}

// signed writes a number whose sign is an n.
func (w *cppPrinter) signed(text string) {
	if text[0] == 'n' {
		w.writeByte('-')
		text = text[1:]
	}
	w.write(text)
}

// literal writes values, initializers and requirements.
func (w *cppPrinter) literal(n *cppNode) {
	switch n.kind {
	case cppBool:
		w.write(n.text)
	case cppString:
		w.write(`"<`)
		w.print(n.a)
		w.write(`>"`)
	case cppLambda:
		w.write("[]")
		if of := w.at(n.a); of.kind == cppClosure {
			w.declarator(of)
		}
		w.write("{...}")
	case cppEnum:
		w.open('(')
		w.print(n.a)
		w.close(')')
		w.signed(n.text)
	case cppInteger:
		of := w.at(n.a).text
		if len(of) > 3 {
			w.open('(')
			w.write(of)
			w.close(')')
		}
		w.signed(n.text)
		if len(of) <= 3 {
			w.write(of)
		}
	case cppFloat:
		w.float(n.text, byte(n.num))
	case cppBraces:
		w.print(n.a)
		w.writeByte('{')
		w.list(n.b)
		w.writeByte('}')
	case cppField, cppRange:
		w.field(n)
	case cppRequires:
		w.write("requires")
		if !w.empty(n.a) {
			w.writeByte(' ')
			w.open('(')
			w.list(n.a)
			w.close(')')
		}
		w.writeByte(' ')
		w.open('{')
		for k := range int(w.at(n.b).b) {
			w.print(w.parts(n.b)[k])
		}
		w.writeByte(' ')
		w.close('}')
	case cppRequireExpr:
		w.requireExpr(n)
	case cppRequireType:
		w.write(" typename ")
		w.print(n.a)
		w.writeByte(';')
	case cppRequireNested:
		w.write(" requires ")
		w.print(n.a)
		w.writeByte(';')
	}
}

// field writes the initializer of a member, or of a range of elements.
func (w *cppPrinter) field(n *cppNode) {
	value := n.b
	switch {
	case n.kind == cppRange:
		value = n.c
		w.open('[')
		w.print(n.a)
		w.write(" ... ")
		w.print(n.b)
		w.close(']')
	case n.flag:
		w.open('[')
		w.print(n.a)
		w.close(']')
	default:
		w.writeByte('.')
		w.print(n.a)
	}
	if k := w.at(value).kind; k != cppField && k != cppRange {
		w.write(" = ")
	}
	w.print(value)
}

func (w *cppPrinter) requireExpr(n *cppNode) {
	w.writeByte(' ')
	compound := n.flag || n.b != 0
	if compound {
		w.open('{')
	}
	w.print(n.a)
	if compound {
		w.close('}')
	}
	if n.flag {
		w.write(" noexcept")
	}
	if n.b != 0 {
		w.write(" -> ")
		w.print(n.b)
	}
	w.writeByte(';')
}
