package demangle

// writeTypeNode writes a type or a part of one.
func (w *swiftPrinter) writeTypeNode(id nodeID, n *swiftNode) {
	switch n.kind {
	case nodeBuiltinTuple:
		w.write("Builtin.TheTupleType")
	case nodeBound:
		w.print(w.part(id, 0))
		if !w.short {
			w.write("<")
			w.writeList(w.parts(w.part(id, 1)), ", ")
			w.write(">")
		}
	case nodeFunc:
		w.writeFunctionType(0, id)
	case nodeImplFunc:
		w.writeImplFunctionType(id)
	case nodeTuple:
		w.write("(")
		w.writeList(w.parts(id), ", ")
		w.write(")")
	case nodeTupleElement:
		if n.text != "" {
			w.write(n.text)
			w.write(": ")
		}
		w.writeTupleElement(id)
	case nodeMetatype:
		w.writeMetatype(n.text, w.part(id, 0))
	case nodeExistentialMetatype:
		w.write(n.text)
		w.print(w.part(id, 0))
		w.write(".Type")
	case nodeProtocols:
		if n.n == 0 {
			w.write("Any")
		}
		w.writeList(w.parts(id), " & ")
	case nodeProtocolsAndClass:
		w.print(w.part(id, 0))
		w.write(" & ")
		w.writeList(w.parts(w.part(id, 1)), " & ")
	case nodeProtocolsAndAnyObject:
		for _, protocol := range w.parts(id) {
			w.print(protocol)
			w.write(" & ")
		}
		w.write("Swift.AnyObject")
	case nodeGenericParam:
		w.writeGenericParam(n.val>>32, n.val&(1<<32-1))
	case nodeDependentType:
		w.writeDependentType(w.part(id, 0), w.part(id, 1))
	case nodeMember:
		w.print(w.part(id, 0))
		w.write(".")
		w.print(w.part(id, 1))
	case nodeInOut:
		w.write("inout ")
		w.print(w.part(id, 0))
	case nodeSignature:
		if !w.short {
			w.writeSignature(id)
		}
	case nodeTypeList:
		w.writeList(w.parts(id), "")
	case nodeImplAttr:
		w.write(n.text)
		w.print(w.part(id, 0))
	case nodeImplParam, nodeImplResult:
		w.writeImplValue(id, n)
	case nodeImplOther:
		if n.val == implError {
			w.write("@error ")
		} else {
			w.write("@yields ")
		}
		w.write(n.text)
		w.write(" ")
		w.print(w.part(id, 0))
	default: // what should not be left when a name has been read
		w.over = true
	}
}

func (w *swiftPrinter) writeTupleElement(id nodeID) {
	w.print(w.part(id, 0))
	if w.at(id).val != 0 {
		w.write("...")
	}
}

func (w *swiftPrinter) writeMetatype(representation string, typ nodeID) {
	w.write(representation)
	w.writeInParens(typ)
	if w.is(typ, isExistential) {
		w.write(".Protocol")
	} else {
		w.write(".Type")
	}
}

// writeInParens writes a type that a suffix follows.
func (w *swiftPrinter) writeInParens(typ nodeID) {
	simple := w.is(typ, isSimple)
	switch w.kind(typ) {
	case nodeProtocols:
		simple = w.at(typ).n <= 1
	case nodeProtocolsAndAnyObject:
		simple = w.at(typ).n == 0
	}
	if simple {
		w.print(typ)
		return
	}
	w.write("(")
	w.print(typ)
	w.write(")")
}

// writeGenericParam writes a parameter's letters, those of the first index first, and
// its depth unless that is zero.
func (w *swiftPrinter) writeGenericParam(depth, index int64) {
	for {
		w.writeByte(byte('A' + index%26))
		if index /= 26; index == 0 {
			break
		}
	}
	if depth != 0 {
		w.writeNumber(depth)
	}
}

func (w *swiftPrinter) writeDependentType(signature, typ nodeID) {
	w.print(signature)
	if !w.short && w.needsSpace(typ) {
		w.write(" ")
	}
	w.print(typ)
}

func (w *swiftPrinter) writeTypeMangling(labels, typ nodeID) {
	if labels == 0 {
		w.print(typ)
		return
	}
	if w.kind(typ) == nodeDependentType {
		w.print(w.part(typ, 0))
		typ = w.part(typ, 1)
	}
	w.writeLabelled(labels, typ)
}

// maxShownParams bounds the generic parameters that are listed: a damaged name can
// count more than there are.
const maxShownParams = 128

// writeSignature writes generic parameters depth by depth, and what is asked of them.
func (w *swiftPrinter) writeSignature(id nodeID) {
	parts := w.parts(id)
	depths := 0
	for depths < len(parts) && w.kind(parts[depths]) == nodeCount {
		depths++
	}
	markers := depths
	for markers < len(parts) && (w.kind(parts[markers]) == nodePackMarker || w.kind(parts[markers]) == nodeValueMarker) {
		markers++
	}
	w.write("<")
	for depth, count := range parts[:depths] {
		if depth > 0 {
			w.write("><")
		}
		w.writeSignatureParams(int64(depth), w.at(count).val, parts[depths:markers])
	}
	if markers < len(parts) {
		w.write(" where ")
		w.writeList(parts[markers:], ", ")
	}
	w.write(">")
}

func (w *swiftPrinter) writeSignatureParams(depth, count int64, markers []nodeID) {
	for index := range count {
		if index > 0 {
			w.write(", ")
		}
		if index >= maxShownParams {
			w.write("...")
			return
		}
		if !w.spend(1 + len(markers)) {
			return
		}
		value := nodeID(0)
		for _, marker := range markers {
			// The Swift tools compare depth with index here and index with
			// depth, and what they print is followed.
			if param := w.at(w.part(marker, 0)); param.kind != nodeGenericParam || param.val != index<<32|depth {
				continue
			}
			if w.kind(marker) == nodePackMarker {
				w.write("each ")
			} else if value == 0 {
				w.write("let ")
				value = marker
			}
		}
		w.writeGenericParam(depth, index)
		if value != 0 {
			w.write(": ")
			w.print(w.part(value, 1))
		}
	}
}

// writeFunctionType writes a function type with the labels of its parameters, if any.
func (w *swiftPrinter) writeFunctionType(labels, id nodeID) {
	n := w.at(id)
	w.writeFunctionPrefix(n)
	if actor := w.part(id, funcActor); actor != 0 {
		w.write("@")
		w.print(actor)
		w.write(" ")
	}
	if text, ok := differentiability(byte(n.val >> fnDiffShift)); ok {
		w.write(text)
		w.write(" ")
	}
	if n.val&fnNonisolated != 0 {
		w.write("nonisolated(nonsending) ")
	}
	if n.val&fnSendable != 0 {
		w.write("@Sendable ")
	}
	w.writeParams(labels, w.part(id, funcParams))
	if n.val&fnAsync != 0 {
		w.write(" async")
	}
	if n.val&fnThrows != 0 {
		w.write(" throws")
		if thrown := w.part(id, funcThrown); thrown != 0 {
			w.write("(")
			w.print(thrown)
			w.write(")")
		}
	}
	w.write(" -> ")
	if n.val&fnSending != 0 {
		w.write("sending ")
	}
	w.print(w.part(id, funcResult))
}

// writeFunctionPrefix writes how a function of that type is called.
func (w *swiftPrinter) writeFunctionPrefix(n *swiftNode) {
	switch n.val & fnConvention {
	case fnAutoclosure:
		w.write("@autoclosure ")
	case fnThin:
		w.write("@convention(thin) ")
	case fnC:
		w.writeCConvention("@convention(c", n.text)
	case fnEscapingBlock:
		w.writeCConvention("@escaping @convention(block", n.text)
	case fnBlock:
		w.writeCConvention("@convention(block", n.text)
	}
	if n.val&fnIsolatedAny != 0 {
		w.write("@isolated(any) ")
	}
}

func (w *swiftPrinter) writeCConvention(convention, mangled string) {
	w.write(convention)
	if mangled != "" {
		w.write(`, mangledCType: "`)
		w.write(mangled)
		w.write(`"`)
	}
	w.write(") ")
}

// writeParams writes parameters with their types.
func (w *swiftPrinter) writeParams(labels, params nodeID) {
	w.write("(")
	if w.kind(params) != nodeTuple {
		w.print(params)
	} else {
		labelled := labels != 0 && w.at(labels).n > 0
		for i, element := range w.parts(params) {
			if i > 0 {
				w.write(", ")
			}
			if labelled {
				w.writeLabel(labels, i, element)
				w.write(": ")
			}
			w.print(element)
		}
	}
	w.write(")")
}

// writeImplFunctionType writes attributes, parameters and results.
func (w *swiftPrinter) writeImplFunctionType(id nodeID) {
	pattern, invocation, sending := nodeID(0), nodeID(0), false
	parts := w.parts(id)
	i := 0
	for ; i < len(parts) && w.kind(parts[i]) != nodeImplParam && !w.isImplResult(parts[i]); i++ {
		switch w.kind(parts[i]) {
		case nodeImplPattern:
			pattern = parts[i]
		case nodeImplInvocation:
			invocation = parts[i]
		case nodeImplSending:
			sending = true
		default:
			w.print(parts[i])
			w.write(" ")
		}
	}
	if pattern != 0 {
		w.write("@substituted ")
		w.print(w.part(pattern, 0))
		w.write(" ")
	}
	results := i
	for results < len(parts) && !w.isImplResult(parts[results]) {
		results++
	}
	w.write("(")
	w.writeList(parts[i:results], ", ")
	w.write(") -> ")
	if sending {
		w.write("sending ")
	}
	w.write("(")
	w.writeList(parts[results:], ", ")
	w.write(")")
	if pattern != 0 {
		w.writeSubstitutedTypes(w.part(pattern, 1))
	}
	if invocation != 0 {
		w.writeSubstitutedTypes(w.part(invocation, 0))
	}
}

func (w *swiftPrinter) isImplResult(id nodeID) bool {
	return w.kind(id) == nodeImplResult || w.kind(id) == nodeImplOther
}

func (w *swiftPrinter) writeSubstitutedTypes(list nodeID) {
	w.write(" for <")
	w.print(list)
	w.write(">")
}

// writeImplValue writes a parameter or a result. Of several attributes the Swift tools
// write none.
func (w *swiftPrinter) writeImplValue(id nodeID, n *swiftNode) {
	w.write(n.text)
	w.write(" ")
	extra := n.val &^ implNoDerivative
	if extra&(extra-1) == 0 {
		if n.val&implNoDerivative != 0 {
			w.write("@noDerivative ")
		}
		switch extra {
		case implSending:
			w.write("sending ")
		case implIsolated:
			w.write("isolated ")
		case implLeading:
			w.write("sil_implicit_leading_param ")
		}
	}
	w.print(w.part(id, 0))
}
