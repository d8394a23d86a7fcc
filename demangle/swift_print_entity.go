package demangle

import "strings"

// An entityStyle is how the type of an entity is written.
type entityStyle uint8

const (
	withoutType entityStyle = iota
	withColon               // " : " and the type
	asFunction              // parameters and result right after the name
)

// An entityForm is how an entity is written: "context.name.extra", or
// "extra of name in context" when the extra words are several.
type entityForm struct {
	style   entityStyle
	named   bool   // it has a name of its own
	keyword string // or is named by the language
	extra   string
	index   int64 // written after extra unless negative
}

// form returns how an entity is written; accessor is that of a variable or a
// subscript, or empty.
func (w *swiftPrinter) form(id nodeID, accessor string) entityForm {
	n := w.at(id)
	f := entityForm{extra: accessor, index: -1}
	switch n.kind {
	case nodeFunction:
		f.style, f.named = asFunction, true
	case nodeVariable:
		f.style, f.named = withColon, true
	case nodeSubscript:
		f.style, f.keyword = asFunction, "subscript"
		if accessor != "" {
			f.style = withColon
		}
	case nodeMacro:
		f.style, f.named = asFunction, true
		if w.part(id, slotLabels) == 0 {
			f.style = withColon
		}
	case nodeExplicitClosure:
		f.style, f.extra, f.index = asFunction, "closure #", n.val+1
	case nodeImplicitClosure:
		f.style, f.extra, f.index = asFunction, "implicit closure #", n.val+1
	case nodeDefaultArgument:
		f.extra, f.index = "default argument ", n.val
	case nodeAllocator:
		f.style, f.extra = asFunction, "init"
		if w.kind(w.part(id, slotContext)) == nodeClass {
			f.extra = "__allocating_init"
		}
	case nodeConstructor:
		f.style, f.extra, f.named = asFunction, "init", w.part(id, slotPrivate) != 0
	case nodeDeallocator:
		f.extra = "deinit"
		if w.kind(w.part(id, slotContext)) == nodeClass {
			f.extra = n.text
		}
	case nodeLifecycle, nodeInitializer:
		f.extra = n.text
	case nodeMacroExpansion:
		f.named, f.index = true, n.val+1
		switch n.text {
		case macroFreestanding:
			f.extra = "freestanding macro expansion #"
		case macroUniqueName:
			f.extra = "unique name #"
		default:
			f.extra = " macro @" // with the role before and the macro after
		}
	default:
		f.named = true
	}
	return f
}

// writeEntity writes an entity. As the prefix of a name it may not be possible to write
// it, or its own context; what has to be written later is returned.
func (w *swiftPrinter) writeEntity(id nodeID, accessor string, asPrefix bool) nodeID {
	bound := nodeID(0)
	if w.kind(id) == nodeBoundFunction {
		bound, id = w.part(id, 1), w.part(id, 0)
	}
	n := w.at(id)
	if n.text != "" && n.kind.is(isNominal) { // a type of the standard library
		w.write(n.text)
		return 0
	}
	if !n.kind.is(isEntity) {
		w.over = true
		return 0
	}
	f := w.form(id, accessor)
	if bound != 0 && !w.short {
		f.extra = "" // the Swift tools leave out the init of a bound initializer
	}
	local := f.named && w.kind(w.part(id, slotName)) == nodeLocal
	suffixed := local || strings.IndexByte(f.extra, ' ') >= 0
	if asPrefix && (f.style != withoutType || suffixed) {
		return id
	}
	context := w.part(id, slotContext)
	if !suffixed {
		before := w.n
		context = w.printContext(context, true)
		if w.n != before {
			w.write(".")
		}
	}
	w.writeEntityName(id, &f, suffixed)
	w.writeEntityType(id, f.style, bound, suffixed)
	if asPrefix || context == 0 {
		return context
	}
	if n.kind == nodeDefaultArgument || n.kind == nodeInitializer {
		w.write(" of ")
	} else {
		w.write(" in ")
	}
	w.print(context)
	return 0
}

// writeEntityName writes the name and the extra words of an entity.
func (w *swiftPrinter) writeEntityName(id nodeID, f *entityForm, suffixed bool) {
	extra := f.extra
	if f.named || f.keyword != "" {
		if extra != "" && suffixed {
			w.writeExtraWords(id, f)
			w.write(" of ")
			extra = ""
		}
		before := w.n
		if f.keyword != "" {
			w.write(f.keyword)
		} else {
			if w.kind(id) == nodeConstructor && w.part(id, slotLabels) == 0 && !w.short {
				w.print(w.part(id, slotType)) // as the Swift tools do
			}
			w.print(w.part(id, slotName))
			w.print(w.part(id, slotPrivate))
		}
		if w.n != before && extra != "" {
			w.write(".")
		}
	}
	if extra != "" {
		w.writeExtraWords(id, f)
	}
}

func (w *swiftPrinter) writeExtraWords(id nodeID, f *entityForm) {
	if macro := w.part(id, slotMacro); w.kind(id) == nodeMacroExpansion && macro != 0 {
		w.write(w.at(id).text)
		w.write(f.extra)
		w.print(macro)
		w.write(" expansion #")
	} else {
		w.write(f.extra)
	}
	if f.index >= 0 {
		w.writeNumber(f.index)
	}
}

// writeEntityType writes the type of an entity after its name.
func (w *swiftPrinter) writeEntityType(id nodeID, style entityStyle, bound nodeID, suffixed bool) {
	if style == withoutType {
		return
	}
	typ := w.part(id, slotType)
	if typ == 0 {
		w.over = true
		return
	}
	if style == asFunction && !w.callable(typ) {
		style = withColon
	}
	labels := w.part(id, slotLabels)
	if w.short {
		if closure := w.kind(id) == nodeExplicitClosure || w.kind(id) == nodeImplicitClosure; style == asFunction && !closure {
			if suffixed {
				w.write(" ")
			}
			w.writeLabels(labels, typ)
		}
		return
	}
	switch {
	case style == withColon:
		w.write(" : ")
	case suffixed || w.needsSpace(typ):
		w.write(" ")
	}
	if labels == 0 && bound == 0 {
		w.print(typ)
		return
	}
	if bound != 0 {
		w.write("<")
		w.writeList(w.parts(bound), ", ")
		w.write(">")
	}
	if w.kind(typ) == nodeDependentType {
		if bound == 0 {
			w.print(w.part(typ, 0))
		}
		typ = w.part(typ, 1)
		if w.needsSpace(typ) {
			w.write(" ")
		}
	}
	w.writeLabelled(labels, typ)
}

// writeLabelled writes a type with the labels of its parameters, if it is a function's.
func (w *swiftPrinter) writeLabelled(labels, typ nodeID) {
	if w.kind(typ) != nodeFunc {
		w.print(typ)
		return
	}
	w.writeFunctionType(labels, typ)
}

// callable says whether a type is, perhaps below generic parameters, one that is
// written as parameters and result.
func (w *swiftPrinter) callable(typ nodeID) bool {
	for w.kind(typ) == nodeDependentType {
		typ = w.part(typ, 1)
	}
	if w.kind(typ) != nodeFunc {
		return false
	}
	switch w.at(typ).val & fnConvention {
	case fnPlain, fnNoEscape, fnUncurried, fnC, fnThin:
		return true
	}
	return false
}

// needsSpace says whether a blank stands between a name and this type.
func (w *swiftPrinter) needsSpace(typ nodeID) bool {
	switch w.kind(typ) {
	case nodeDependentType:
		return false
	case nodeFunc:
		c := w.at(typ).val & fnConvention
		return c != fnPlain && c != fnNoEscape && c != fnUncurried
	}
	return true
}

// writeLabels writes the parameters of a function by their labels alone: "(a:_:)".
func (w *swiftPrinter) writeLabels(labels, typ nodeID) {
	for w.kind(typ) == nodeDependentType {
		typ = w.part(typ, 1)
	}
	params := w.part(typ, funcParams)
	if w.kind(params) != nodeTuple {
		w.write("(_:)")
		return
	}
	w.write("(")
	for i, element := range w.parts(params) {
		w.writeLabel(labels, i, element)
		w.write(":")
	}
	w.write(")")
}

// writeLabel writes the i-th label of a function, "_" if there is none.
func (w *swiftPrinter) writeLabel(labels nodeID, i int, element nodeID) {
	text := ""
	if label := w.part(labels, i); w.kind(label) == nodeIdent {
		text = w.at(label).text
	} else if labels == 0 || w.at(labels).n == 0 {
		text = w.at(element).text
	}
	if text == "" {
		text = "_"
	}
	w.write(text)
}
