package demangle

import (
	"strings"
)

// A swiftPrinter writes the nodes of a name. What a name stands for can be
// exponentially longer than it: output, depth and steps are bounded, and when a
// bound is met the printer fails.
type swiftPrinter struct {
	swiftTree
	short  bool
	nested int // how many names this one stands in
}

// maxNested bounds names in names, as in specializations for a closure.
const maxNested = 4

// writeList writes the nodes with sep between them.
func (w *swiftPrinter) writeList(ids []nodeID, sep string) {
	for i, id := range ids {
		if i > 0 {
			w.write(sep)
		}
		w.print(id)
	}
}

// writeTopLevel writes what is left on the stack of a name that was read: attributes,
// the last one first, what they are attributes of, and the suffix.
func (w *swiftPrinter) writeTopLevel(stack []nodeID) {
	suffix := nodeID(0)
	if n := len(stack); n > 0 && w.kind(stack[n-1]) == nodeSuffix {
		suffix, stack = stack[n-1], stack[:n-1]
	}
	for len(stack) > 0 && w.is(stack[len(stack)-1], isAttribute) {
		attribute := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		w.print(attribute)
		if w.kind(attribute) == nodePartialApply && len(stack) > 0 {
			w.write(" for ")
		}
	}
	for _, id := range stack {
		w.print(id)
	}
	w.print(suffix)
}

// print writes a node; none writes nothing.
func (w *swiftPrinter) print(id nodeID) {
	if left := w.printContext(id, false); left != 0 {
		w.over = true
	}
}

// printContext writes a node before the name of what stands in it. It returns the
// context that cannot be written there and has to be written after the name.
func (w *swiftPrinter) printContext(id nodeID, asPrefix bool) nodeID {
	if id == 0 || !w.enter() {
		return 0
	}
	n := w.at(id)
	left := nodeID(0)
	switch {
	case n.kind == nodeAccessor:
		left = w.writeEntity(w.part(id, 0), n.text, asPrefix)
	case n.kind == nodeBoundFunction, n.kind.is(isEntity):
		left = w.writeEntity(id, "", asPrefix)
	default:
		w.writeNode(id, n)
	}
	w.leave()
	return left
}

// writeNode writes what is no entity.
func (w *swiftPrinter) writeNode(id nodeID, n *swiftNode) {
	switch n.kind {
	case nodeIdent, nodeModule, nodeBuiltin, nodeText:
		w.write(n.text)
	case nodeOperator:
		w.write(n.text)
		w.write(operatorFixity(byte(n.val)))
	case nodeLocal:
		w.print(w.part(id, 0))
		w.write(" #")
		w.writeNumber(n.val + 1)
	case nodePrivate:
		w.writePrivate(id)
	case nodeRelated:
		w.write("related decl '")
		w.write(n.text)
		w.write("' for ")
		w.print(w.part(id, 0))
	case nodeSuffix:
		if !w.short {
			w.write(" with unmangled suffix ")
			w.writeQuoted(n.text)
		}
	case nodeExtension:
		w.writeExtension(id)
	case nodeAnonymous:
		w.writeAnonymous(id)
	case nodeStatic:
		w.write("static ")
		w.print(w.part(id, 0))
	case nodeInteger:
		w.writeNumber(n.val)
	case nodeAssocName:
		if protocol := w.part(id, 1); protocol != 0 {
			w.print(protocol)
			w.write(".")
		}
		w.print(w.part(id, 0))
	case nodeOnceList:
		if n.n == 1 {
			w.print(w.part(id, 0))
			return
		}
		w.write("(")
		w.writeList(w.parts(id), ", ")
		w.write(")")
	case nodeConformanceList:
		if n.n > 0 {
			w.write("(")
			w.writeList(w.parts(id), ", ")
			w.write(")")
		}
	case nodeValueWitness:
		w.write(n.text)
		if w.short {
			w.write(" for ")
		} else {
			w.write(" value witness for ")
		}
		w.print(w.part(id, 0))
	case nodeTypeMangling:
		w.writeTypeMangling(w.part(id, 0), w.part(id, 1))
	case nodeIndexSubset:
		w.writeIndexSubset(n.text)
	case nodeSpecialization:
		if !w.short {
			w.writeSpecialization(id)
		}
	case nodePropKind:
		w.writePropKind(n.val)
	case nodePropPayload:
		w.writeNestedName(n.text)
	case nodeSerialized:
		w.write("serialized")
	case nodePhrase, nodeOpaqueOf, nodeAutoDiff, nodeMacroLocation, nodeTypePhrase, nodeSimplePhrase, nodeExistentialAny, nodeRequirement,
		nodeConformance, nodeDependentConf, nodeConcreteConf, nodeConfRef, nodeAttr, nodePartialApply, nodeSpecParam, nodeRetroactive:
		w.writePhrase(id, n)
	default:
		w.writeTypeNode(id, n)
	}
}

// writePhrase writes a template: '|' stands before its short form, and '%' before what
// is put in: a digit for that part, 'l' and a digit for the nodes in that part with
// commas between them, 'c' likewise without blanks, '(' and a digit for that part
// in parentheses if a suffix needs them, '*' for all parts, '+' for all but the
// first, 'd' for all with dots, 'v' for the value and 'i' for "#value " if it is known.
func (w *swiftPrinter) writePhrase(id nodeID, n *swiftNode) {
	text := n.text
	if i := strings.IndexByte(text, '|'); i >= 0 {
		if w.short {
			text = text[i+1:]
		} else {
			text = text[:i]
		}
	}
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 || i+1 >= len(text) {
			w.write(text)
			return
		}
		w.write(text[:i])
		c := text[i+1]
		text = text[i+2:]
		switch c {
		case '*':
			w.writeList(w.parts(id), "")
		case '+':
			w.writeList(w.parts(id)[1:], "")
		case 'd':
			w.writeList(w.parts(id), ".")
		case 'v':
			w.writeNumber(n.val)
		case 'i':
			if n.val >= 0 {
				w.write("#")
				w.writeNumber(n.val)
				w.write(" ")
			}
		case 'l', 'c', '(':
			w.writePhrasePart(c, w.part(id, int(text[0]-'0')))
			text = text[1:]
		default:
			w.print(w.part(id, int(c-'0')))
		}
	}
}

func (w *swiftPrinter) writePhrasePart(c byte, part nodeID) {
	switch c {
	case 'l':
		w.writeList(w.parts(part), ", ")
	case 'c':
		w.writeList(w.parts(part), ",")
	default:
		w.writeInParens(part)
	}
}

// writePrivate writes the name of a declaration that is private to a file.
func (w *swiftPrinter) writePrivate(id nodeID) {
	name := w.part(id, 1)
	if w.short {
		w.print(name)
		return
	}
	w.write("(")
	if name != 0 {
		w.print(name)
		w.write(" ")
	}
	w.write("in ")
	w.write(w.at(w.part(id, 0)).text)
	w.write(")")
}

func (w *swiftPrinter) writeExtension(id nodeID) {
	if !w.short {
		w.write("(extension in ")
		w.print(w.part(id, 0))
		w.write("):")
	}
	w.print(w.part(id, 1))
	w.print(w.part(id, 2))
}

// writeAnonymous writes a context that only the run-time library knows.
func (w *swiftPrinter) writeAnonymous(id nodeID) {
	w.print(w.part(id, 1))
	if w.short {
		return
	}
	w.write(".(unknown context at ")
	w.print(w.part(id, 0))
	w.write(")")
	if types := w.parts(w.part(id, 2)); len(types) > 0 {
		w.write("<")
		w.writeList(types, "")
		w.write(">")
	}
}

// writeIndexSubset writes the places of S among S and U.
func (w *swiftPrinter) writeIndexSubset(marks string) {
	w.write("{")
	sep := ""
	for i := range len(marks) {
		if marks[i] == 'S' {
			w.write(sep)
			w.writeNumber(int64(i))
			sep = ", "
		}
	}
	w.write("}")
}

// writeQuoted writes a string in quotes, with every character that is not printable
// ASCII escaped.
func (w *swiftPrinter) writeQuoted(s string) {
	const digits = "0123456789ABCDEF"
	w.write(`"`)
	for _, c := range []byte(s) {
		switch {
		case c == '\\' || c == '"':
			w.writeByte('\\')
			w.writeByte(c)
		case c == '\t':
			w.write(`\t`)
		case c == '\n':
			w.write(`\n`)
		case c == '\r':
			w.write(`\r`)
		case c == 0:
			w.write(`\0`)
		case c < 0x20 || c >= 0x7f:
			w.write(`\x`)
			w.writeByte(digits[c>>4])
			w.writeByte(digits[c&15])
		default:
			w.writeByte(c)
		}
	}
	w.write(`"`)
}

// writeNestedName writes a name that is mangled itself, or is none and stands for itself.
func (w *swiftPrinter) writeNestedName(s string) {
	if w.nested < maxNested {
		// What is spent on it is spent on the whole name.
		name, spent := demangleSwift(s, false, w.nested+1, budget{limit: w.limit - w.spent})
		w.spend(spent)
		s = name
	}
	w.write(s)
}
