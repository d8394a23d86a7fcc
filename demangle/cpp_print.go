package demangle

// A cppPrinter writes the nodes of a name. C++ writes types from the inside out: what a
// pointer to an array points to stands partly before and partly behind it. So each node has a
// part that is written before a name and one behind it, which most don't have.
type cppPrinter struct {
	*cppParser
	greater   int // > ends template arguments where this is zero
	packIndex int // the argument of a pack that is being written
	packSize  int // of the pack that an expansion has met, -1 before that
}

// print writes a node that stands by itself.
func (w *cppPrinter) print(id nodeID) {
	w.left(id)
	if w.at(id).traits&behindMask != traitNo {
		w.right(id)
	}
}

// left writes the part of a node before a name.
func (w *cppPrinter) left(id nodeID) {
	if id == 0 || !w.enter() {
		return
	}
	n := w.at(id)
	switch k := n.kind; {
	case k <= cppBindings:
		w.leftName(n)
	case k <= cppEnableIf:
		w.leftEncoding(n)
	case k <= cppBitInt:
		w.leftType(n)
	case k <= cppParamPack:
		w.leftTemplate(n)
	default:
		w.expression(n)
	}
	w.leave()
}

// right writes the part of a node behind a name.
func (w *cppPrinter) right(id nodeID) {
	if id == 0 || !w.enter() {
		return
	}
	n := w.at(id)
	switch n.kind {
	case cppFunction:
		w.rightFunction(n)
	case cppQualified:
		w.right(n.a)
	case cppPointer, cppReference, cppMember, cppArray, cppType:
		w.rightType(n)
	case cppPack:
		w.right(w.packed(n))
	case cppForward:
		if !n.busy {
			n.busy = true
			w.right(n.a)
			n.busy = false
		}
	case cppTypeParam:
		w.print(n.a)
	case cppConstrained, cppTemplParam:
		w.print(n.b)
		w.requirement(n.c)
	case cppNonTypeParam:
		w.print(n.b)
		w.right(n.a)
	case cppParamPack:
		w.right(n.a)
	}
	w.leave()
}

// has says whether a type has a trait. Where there is a pack in it, it is that of the argument
// that is being written.
func (w *cppPrinter) has(id nodeID, of trait) bool {
	if id == 0 || !w.enter() {
		return false
	}
	defer w.leave()
	n := w.at(id)
	if known := n.traits >> (2 * of) & 3; known != traitUnknown {
		return known == traitYes
	}
	switch n.kind {
	case cppMember:
		return w.has(n.b, of)
	case cppQualified, cppPointer, cppReference:
		return w.has(n.a, of)
	case cppPack:
		w.openPack(n)
		return w.has(w.packed(n), of)
	case cppForward:
		if n.busy {
			return false
		}
		n.busy = true
		yes := w.has(n.a, of)
		n.busy = false
		return yes
	}
	return false
}

// openPack notes the size of the first pack that an expansion meets.
func (w *cppPrinter) openPack(n *cppNode) {
	if w.packSize < 0 {
		w.packSize, w.packIndex = int(w.at(n.a).b), 0
	}
}

// packed is the argument of a pack that is being written, none if it has fewer.
func (w *cppPrinter) packed(n *cppNode) nodeID {
	if parts := w.parts(n.a); w.packIndex >= 0 && w.packIndex < len(parts) {
		return parts[w.packIndex]
	}
	return 0
}

// expansion writes what an expansion repeats, once for each argument of its pack.
func (w *cppPrinter) expansion(of nodeID) {
	index, size, start := w.packIndex, w.packSize, w.n
	w.packIndex, w.packSize = -1, -1
	w.print(of)
	switch {
	case w.packSize < 0: // there was none, as where parameters of functions are expanded
		w.write("...")
	case w.packSize == 0:
		w.cut(start)
	}
	for k := 1; k < w.packSize && w.ok(); k++ {
		w.write(", ")
		w.packIndex = k
		w.print(of)
	}
	w.packIndex, w.packSize = index, size
}

// list writes nodes with commas between them. What writes nothing has no comma.
func (w *cppPrinter) list(id nodeID) {
	first := true
	for k := range int(w.at(id).b) {
		if !w.ok() {
			return
		}
		before := w.n
		if !first {
			w.write(", ")
		}
		start := w.n
		if w.operand(w.parts(id)[k], precComma, false); w.n == start {
			w.cut(before)
			continue
		}
		first = false
	}
}

// operand writes an expression, in parentheses if it binds no closer than that, or less
// closely where the same does.
func (w *cppPrinter) operand(id nodeID, prec precedence, same bool) {
	if same {
		prec++
	}
	if w.at(id).prec < prec {
		w.print(id)
		return
	}
	w.open('(')
	w.print(id)
	w.close(')')
}

// open and close write brackets, within which > is an operator.
func (w *cppPrinter) open(c byte) {
	w.greater++
	w.writeByte(c)
}

func (w *cppPrinter) close(c byte) {
	w.greater--
	w.writeByte(c)
}

// angles writes arguments between < and >.
func (w *cppPrinter) angles(arguments nodeID) {
	greater := w.greater
	w.greater = 0
	w.writeByte('<')
	w.list(arguments)
	w.writeByte('>')
	w.greater = greater
}

func (w *cppPrinter) requirement(id nodeID) {
	if id != 0 {
		w.write(" requires ")
		w.print(id)
	}
}

// qualifiers writes those of a type, and those of a member function.
func (w *cppPrinter) qualifiers(quals uint8) {
	for k, text := range [...]string{" const", " volatile", " restrict", " &", " &&"} {
		if quals&(1<<k) != 0 {
			w.write(text)
		}
	}
}

// leftName writes names. None has a part behind another.
func (w *cppPrinter) leftName(n *cppNode) {
	switch n.kind {
	case cppText:
		w.write(n.text)
	case cppList:
		w.write("") // lists are written by what has them
	case cppNested:
		w.print(n.a)
		w.write("::")
		w.print(n.b)
	case cppLocal:
		w.print(n.a)
		if f := w.at(n.a); w.short && f.kind == cppFunction {
			w.write("()")
			w.qualifiers(f.quals)
		}
		w.write("::")
		w.print(n.b)
	case cppFriend:
		w.print(n.a)
		w.write("::friend ")
		w.print(n.b)
	case cppGlobal:
		w.write("::")
		w.print(n.a)
	case cppTemplate:
		w.print(n.a)
		if !w.short {
			w.angles(n.b) // what is required of them would only make the name longer
		}
	case cppTag:
		w.print(n.a)
		w.write("[abi:")
		w.write(n.text)
		w.writeByte(']')
	case cppModule:
		w.print(n.a)
		if n.flag {
			w.writeByte(':')
		} else if n.a != 0 {
			w.writeByte('.')
		}
		w.write(n.text)
	case cppModuleEntity:
		w.print(n.a)
		w.writeByte('@')
		w.print(n.b)
	case cppStandard, cppStandardFull:
		w.write("std::")
		w.write(n.text)
		if n.kind == cppStandardFull && n.num != 0 && !w.short {
			w.write("<char, std::char_traits<char>")
			if n.flag {
				w.write(", std::allocator<char>")
			}
			w.writeByte('>')
		}
	case cppStructor:
		w.write(n.text)
		w.write(w.baseName(n.a))
	case cppConversion:
		w.write("operator ")
		w.print(n.a)
	case cppLiteral:
		w.write(`operator"" `)
		w.print(n.a)
	case cppClosure:
		w.write("'lambda")
		w.write(n.text)
		w.writeByte('\'')
		w.declarator(n)
	case cppUnnamed:
		w.write("'unnamed")
		w.write(n.text)
		w.writeByte('\'')
	case cppBindings:
		w.open('[')
		w.list(n.a)
		w.close(']')
	}
}

// declarator writes the parameters of a lambda.
func (w *cppPrinter) declarator(n *cppNode) {
	if !w.empty(n.a) {
		w.angles(n.a)
	}
	if n.b != 0 {
		w.requirement(n.b)
		w.writeByte(' ')
	}
	w.open('(')
	w.list(n.c)
	w.close(')')
	w.requirement(n.d)
}

// baseName is the name of a class, without scopes and arguments, as its constructors have it.
func (w *cppPrinter) baseName(id nodeID) string {
	for w.spend(1) {
		n := w.at(id)
		switch n.kind {
		case cppText, cppStandard, cppStandardFull:
			return n.text
		case cppTemplate, cppTag, cppModuleEntity, cppGlobal:
			id = n.a
		case cppNested, cppFriend:
			id = n.b
		default:
			return ""
		}
	}
	return ""
}

// leftEncoding writes functions, up to their parameters, and what compilers make.
func (w *cppPrinter) leftEncoding(n *cppNode) {
	switch n.kind {
	case cppFunction:
		if n.b != 0 && !w.short {
			w.left(n.b)
			if !w.has(n.b, traitBehind) {
				w.writeByte(' ')
			}
		}
		w.print(n.a)
	case cppSpecial:
		w.write(n.text)
		w.print(n.a)
	case cppInstead:
		w.write("construction vtable for ")
		w.print(n.a)
		w.write("-in-")
		w.print(n.b)
	case cppClone:
		w.print(n.a)
		w.write(" (")
		w.write(n.text)
		w.writeByte(')')
	case cppEnableIf:
		w.write(" [enable_if:")
		w.list(n.a)
		w.writeByte(']')
	}
}

// rightFunction writes the parameters of a function, and what follows them.
func (w *cppPrinter) rightFunction(n *cppNode) {
	if w.short {
		return
	}
	w.open('(')
	w.list(n.c)
	w.close(')')
	w.right(n.b)
	w.qualifiers(n.quals)
	w.print(n.d)
	w.requirement(n.e)
}

// leftTemplate writes packs, parameters and arguments.
func (w *cppPrinter) leftTemplate(n *cppNode) {
	switch n.kind {
	case cppArgumentPack:
		w.list(n.a)
	case cppPack:
		w.openPack(n)
		w.left(w.packed(n))
	case cppExpansion:
		w.expansion(n.a)
	case cppForward:
		if !n.busy {
			n.busy = true
			w.left(n.a)
			n.busy = false
		}
	case cppQualifiedArg:
		w.print(n.b)
	case cppParamName:
		w.write(n.text)
		if n.num > 0 {
			w.writeNumber(int64(n.num) - 1)
		}
	case cppTypeParam:
		w.write("typename ")
	case cppConstrained:
		w.print(n.a)
		w.writeByte(' ')
	case cppNonTypeParam:
		w.left(n.a)
		if !w.has(n.a, traitBehind) {
			w.writeByte(' ')
		}
	case cppTemplParam:
		w.write("template")
		w.angles(n.a)
		w.write(" typename ")
	case cppParamPack:
		w.left(n.a)
		w.write("...")
	}
}
