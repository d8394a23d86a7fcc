package demangle

// leftType writes the part of a type before a name.
func (w *cppPrinter) leftType(n *cppNode) {
	switch n.kind {
	case cppQualified:
		w.left(n.a)
		w.qualifiers(n.quals)
	case cppVendor:
		w.print(n.a)
		w.writeByte(' ')
		w.write(n.text)
		w.print(n.b)
	case cppPostfix:
		w.left(n.a)
		w.write(n.text)
	case cppElaborated:
		w.write(n.text)
		w.writeByte(' ')
		w.print(n.a)
	case cppTransformed:
		w.write(n.text)
		w.writeByte('(')
		w.print(n.a)
		w.writeByte(')')
	case cppPointer:
		w.leftPointer(n)
	case cppReference:
		to, rvalue := w.referred(n)
		w.left(to)
		if w.has(to, traitArray) {
			w.writeByte(' ')
		}
		if w.parenthesized(to) {
			w.writeByte('(')
		}
		if w.writeByte('&'); rvalue {
			w.writeByte('&')
		}
	case cppMember:
		w.left(n.b)
		if w.parenthesized(n.b) {
			w.writeByte('(')
		} else {
			w.writeByte(' ')
		}
		w.print(n.a)
		w.write("::*")
	case cppArray:
		w.left(n.a)
	case cppType:
		w.left(n.a)
		w.writeByte(' ')
	case cppNoexcept:
		w.write("noexcept")
		w.open('(')
		w.operand(n.a, precDefault, false)
		w.close(')')
	case cppThrow:
		w.write("throw")
		w.open('(')
		w.list(n.a)
		w.close(')')
	case cppThis:
		w.write("this ")
		w.print(n.a)
	case cppVector:
		w.leftVector(n)
	case cppObjC:
		w.print(n.a)
		w.writeByte('<')
		w.write(n.text)
		w.writeByte('>')
	case cppBinaryFP:
		w.write("_Float")
		w.write(n.text)
	case cppBitInt:
		if n.flag {
			w.write("unsigned ")
		}
		w.write("_BitInt")
		w.open('(')
		w.operand(n.a, precDefault, false)
		w.close(')')
	}
}

// leftPointer writes a pointer. Objective-C's id is one too.
func (w *cppPrinter) leftPointer(n *cppNode) {
	to := w.at(n.a)
	if to.kind == cppObjC && w.isText(to.a, "objc_object") {
		w.write("id<")
		w.write(to.text)
		w.writeByte('>')
		return
	}
	w.left(n.a)
	if w.has(n.a, traitArray) {
		w.writeByte(' ')
	}
	if w.parenthesized(n.a) {
		w.writeByte('(')
	}
	w.writeByte('*')
}

func (w *cppPrinter) leftVector(n *cppNode) {
	if n.flag {
		w.write("pixel vector[")
	} else {
		w.print(n.a)
		w.write(" vector[")
	}
	w.print(n.b)
	w.writeByte(']')
}

// parenthesized says whether a pointer to a type stands in parentheses.
func (w *cppPrinter) parenthesized(to nodeID) bool {
	return w.has(to, traitArray) || w.has(to, traitFunction)
}

// referred is what a reference refers to, and how, where references to references, which
// arguments bring about, are one.
func (w *cppPrinter) referred(n *cppNode) (to nodeID, rvalue bool) {
	to, rvalue = n.a, n.flag
	for w.spend(1) {
		inner := w.at(w.syntax(to))
		if inner.kind != cppReference {
			return to, rvalue
		}
		to, rvalue = inner.a, rvalue && inner.flag
	}
	return 0, false
}

// syntax is the node that is written in the place of one that stands for it.
func (w *cppPrinter) syntax(id nodeID) nodeID {
	for w.spend(1) {
		n := w.at(id)
		switch n.kind {
		case cppPack:
			w.openPack(n)
			part := w.packed(n)
			if part == 0 {
				return id
			}
			id = part
		case cppForward:
			if n.busy || n.a == 0 {
				return id
			}
			id = n.a
		default:
			return id
		}
	}
	return 0
}

// rightType writes the part of a type behind a name.
func (w *cppPrinter) rightType(n *cppNode) {
	to := n.a
	switch n.kind {
	case cppArray:
		if w.last() != ']' {
			w.writeByte(' ')
		}
		w.open('[')
		w.print(n.b)
		w.close(']')
		w.right(n.a)
		return
	case cppType:
		w.open('(')
		w.list(n.b)
		w.close(')')
		w.right(n.a)
		w.qualifiers(n.quals)
		if n.c != 0 {
			w.writeByte(' ')
			w.print(n.c)
		}
		return
	case cppPointer:
		if to := w.at(n.a); to.kind == cppObjC && w.isText(to.a, "objc_object") {
			return
		}
	case cppMember:
		to = n.b
	case cppReference:
		to, _ = w.referred(n)
	}
	if w.parenthesized(to) {
		w.writeByte(')')
	}
	w.right(to)
}
