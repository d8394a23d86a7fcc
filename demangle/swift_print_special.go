package demangle

// writeSpecialization writes what a function was specialized for.
func (w *swiftPrinter) writeSpecialization(id nodeID) {
	w.write(w.at(id).text)
	w.write(" <")
	sep, arg := "", int64(0)
	for _, param := range w.parts(id) {
		n := w.at(param)
		if n.kind == nodeSerialized || n.n > 0 {
			w.write(sep)
			sep = ", "
		}
		switch {
		case n.kind == nodeSerialized:
			w.print(param)
			continue
		case n.n == 0:
		case n.text != "":
			w.print(param)
		case n.kind == nodeSpecReturn:
			w.write("Return = ")
			w.writeSpecParam(param)
		default:
			w.write("Arg[")
			w.writeNumber(arg)
			w.write("] = ")
			w.writeSpecParam(param)
		}
		arg++
	}
	w.write("> of ")
}

// writeSpecParam writes how a parameter changed: the kinds of change stand before what
// they are about.
func (w *swiftPrinter) writeSpecParam(id nodeID) {
	parts := w.parts(id)
	operand := 0
	for i := 0; i < len(parts); {
		what := w.at(parts[i])
		if what.kind != nodePropKind {
			return
		}
		i++
		switch what.val {
		case propFunction, propGlobal, propKeyPath, propStruct:
			if i >= len(parts) {
				return
			}
			w.write("[")
			w.writePropKind(what.val)
			w.write(" : ")
			operand = w.writeOperand(parts, operand, what.val)
			if what.val == propKeyPath {
				w.write("<")
				operand = w.writeOperand(parts, operand, what.val)
				w.write(",")
				operand = w.writeOperand(parts, operand, what.val)
				w.write(">")
			}
			w.write("]")
		case propInteger, propFloat, propString, propClosure, propSameAsArgument:
			if i >= len(parts) {
				return
			}
			w.write("[")
			w.writePropKind(what.val)
			if what.val == propSameAsArgument {
				w.write(" ")
			} else {
				w.write(" : ")
			}
			w.print(parts[i])
			i++
			switch what.val {
			case propString:
				w.write("'")
				operand = w.writeOperand(parts, operand, what.val)
				w.write("'")
			case propClosure:
				i += w.writeClosureTypes(parts[i:])
			}
			w.write("]")
		default:
			w.writePropKind(what.val)
		}
	}
}

// writeClosureTypes writes the types that a closure captured and returns how many they are.
func (w *swiftPrinter) writeClosureTypes(parts []nodeID) int {
	w.write(", Argument Types : [")
	for i, part := range parts {
		if !w.is(part, isType) {
			return i
		}
		w.print(part)
	}
	return len(parts)
}

// writeOperand writes the next of the parts from i on that changes are about and
// returns the place after it.
func (w *swiftPrinter) writeOperand(parts []nodeID, i int, what int64) int {
	for ; i < len(parts); i++ {
		n := w.at(parts[i])
		if n.kind == nodePropKind || n.kind == nodePropPayload {
			continue
		}
		switch {
		case what == propString && n.kind == nodeIdent && n.text != "" && n.text[0] == '_':
			w.write(n.text[1:])
		case what == propFunction || what == propGlobal:
			w.writeNestedName(n.text)
		default:
			w.print(parts[i])
		}
		return i + 1
	}
	return i
}

// writePropKind writes a kind of change, or several flags.
func (w *swiftPrinter) writePropKind(what int64) {
	sep := ""
	for _, flag := range [...]struct {
		bit  int64
		text string
	}{
		{propExistential, "Existential To Protocol Constrained Generic"},
		{propDead, "Dead"},
		{propOwnedToGuaranteed, "Owned To Guaranteed"},
		{propGuaranteedToOwned, "Guaranteed To Owned"},
		{propExploded, "Exploded"},
	} {
		if what&flag.bit != 0 {
			w.write(sep)
			w.write(flag.text)
			sep = " and "
		}
	}
	if sep == "" {
		w.write(propName(what))
	}
}

func propName(what int64) string {
	switch what {
	case propFunction:
		return "Constant Propagated Function"
	case propGlobal:
		return "Constant Propagated Global"
	case propInteger:
		return "Constant Propagated Integer"
	case propFloat:
		return "Constant Propagated Float"
	case propString:
		return "Constant Propagated String"
	case propClosure:
		return "Closure Propagated"
	case propBoxToValue:
		return "Value Promoted from Box"
	case propBoxToStack:
		return "Stack Promoted from Box"
	case propInOutToOut:
		return "InOut Converted to Out"
	case propKeyPath:
		return "Constant Propagated KeyPath"
	case propStruct:
		return "Constant Propagated Struct"
	case propSameAsArgument:
		return "Same As Argument"
	}
	return ""
}
