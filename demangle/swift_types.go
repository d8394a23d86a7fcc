package demangle

import (
	"slices"
	"strconv"
)

// standardTypes are the types of the standard library with a mangling of one
// letter after 'S' (Mangling.rst, KNOWN-TYPE-KIND).
var standardTypes = [128]struct {
	kind nodeKind
	name string
}{
	'A': {nodeStruct, "Swift.AutoreleasingUnsafeMutablePointer"},
	'a': {nodeStruct, "Swift.Array"},
	'B': {nodeProtocol, "Swift.BinaryFloatingPoint"},
	'b': {nodeStruct, "Swift.Bool"},
	'D': {nodeStruct, "Swift.Dictionary"},
	'd': {nodeStruct, "Swift.Double"},
	'E': {nodeProtocol, "Swift.Encodable"},
	'e': {nodeProtocol, "Swift.Decodable"},
	'F': {nodeProtocol, "Swift.FloatingPoint"},
	'f': {nodeStruct, "Swift.Float"},
	'G': {nodeProtocol, "Swift.RandomNumberGenerator"},
	'H': {nodeProtocol, "Swift.Hashable"},
	'h': {nodeStruct, "Swift.Set"},
	'I': {nodeStruct, "Swift.DefaultIndices"},
	'i': {nodeStruct, "Swift.Int"},
	'J': {nodeStruct, "Swift.Character"},
	'j': {nodeProtocol, "Swift.Numeric"},
	'K': {nodeProtocol, "Swift.BidirectionalCollection"},
	'k': {nodeProtocol, "Swift.RandomAccessCollection"},
	'L': {nodeProtocol, "Swift.Comparable"},
	'l': {nodeProtocol, "Swift.Collection"},
	'M': {nodeProtocol, "Swift.MutableCollection"},
	'm': {nodeProtocol, "Swift.RangeReplaceableCollection"},
	'N': {nodeStruct, "Swift.ClosedRange"},
	'n': {nodeStruct, "Swift.Range"},
	'O': {nodeStruct, "Swift.ObjectIdentifier"},
	'P': {nodeStruct, "Swift.UnsafePointer"},
	'p': {nodeStruct, "Swift.UnsafeMutablePointer"},
	'Q': {nodeProtocol, "Swift.Equatable"},
	'q': {nodeEnum, "Swift.Optional"},
	'R': {nodeStruct, "Swift.UnsafeBufferPointer"},
	'r': {nodeStruct, "Swift.UnsafeMutableBufferPointer"},
	'S': {nodeStruct, "Swift.String"},
	's': {nodeStruct, "Swift.Substring"},
	'T': {nodeProtocol, "Swift.Sequence"},
	't': {nodeProtocol, "Swift.IteratorProtocol"},
	'U': {nodeProtocol, "Swift.UnsignedInteger"},
	'u': {nodeStruct, "Swift.UInt"},
	'V': {nodeStruct, "Swift.UnsafeRawPointer"},
	'v': {nodeStruct, "Swift.UnsafeMutableRawPointer"},
	'W': {nodeStruct, "Swift.UnsafeRawBufferPointer"},
	'w': {nodeStruct, "Swift.UnsafeMutableRawBufferPointer"},
	'X': {nodeProtocol, "Swift.RangeExpression"},
	'x': {nodeProtocol, "Swift.Strideable"},
	'Y': {nodeProtocol, "Swift.RawRepresentable"},
	'y': {nodeProtocol, "Swift.StringProtocol"},
	'Z': {nodeProtocol, "Swift.SignedInteger"},
	'z': {nodeProtocol, "Swift.BinaryInteger"},
}

// concurrencyTypes are those after 'Sc' (Mangling.rst, KNOWN-TYPE-KIND-2).
var concurrencyTypes = [128]struct {
	kind nodeKind
	name string
}{
	'A': {nodeProtocol, "Swift.Actor"},
	'C': {nodeStruct, "Swift.CheckedContinuation"},
	'c': {nodeStruct, "Swift.UnsafeContinuation"},
	'E': {nodeStruct, "Swift.CancellationError"},
	'e': {nodeStruct, "Swift.UnownedSerialExecutor"},
	'F': {nodeProtocol, "Swift.Executor"},
	'f': {nodeProtocol, "Swift.SerialExecutor"},
	'G': {nodeStruct, "Swift.TaskGroup"},
	'g': {nodeStruct, "Swift.ThrowingTaskGroup"},
	'h': {nodeProtocol, "Swift.TaskExecutor"},
	'I': {nodeProtocol, "Swift.AsyncIteratorProtocol"},
	'i': {nodeProtocol, "Swift.AsyncSequence"},
	'J': {nodeStruct, "Swift.UnownedJob"},
	'M': {nodeClass, "Swift.MainActor"},
	'P': {nodeStruct, "Swift.TaskPriority"},
	'S': {nodeStruct, "Swift.AsyncStream"},
	's': {nodeStruct, "Swift.AsyncThrowingStream"},
	'T': {nodeStruct, "Swift.Task"},
	't': {nodeStruct, "Swift.UnsafeCurrentTask"},
}

// standardSubstitution reads what follows 'S': a module that is not Swift's own,
// an optional type, or a type of the standard library, perhaps repeated.
func (p *swiftParser) standardSubstitution() nodeID {
	switch p.peek() {
	case 'o':
		p.pos++
		return p.add(nodeModule, "__C", 0)
	case 'C':
		p.pos++
		return p.add(nodeModule, "__C_Synthesized", 0)
	case 'g':
		p.pos++
		optional := p.add(nodeEnum, "Swift.Optional", 0)
		wrapped := p.popType()
		return p.substitutable(p.make(nodeBound, "", optional, p.make(nodeTypeList, "", wrapped)))
	}
	repeat := 1
	if isDigit(p.peek()) {
		n, ok := p.natural()
		if !ok || n > maxRepeat {
			return 0
		}
		repeat = n
	}
	table := &standardTypes
	if p.nextIf('c') {
		table = &concurrencyTypes
	}
	c := p.next()
	if c >= 128 || table[c].kind == nodeNone {
		return 0
	}
	return p.pushCopies(repeat, p.add(table[c].kind, table[c].name, 0))
}

// builtinTypes are the types that only the compiler knows, by the letter after 'B'.
var builtinTypes = [128]string{
	'A': "Builtin.ImplicitActor",
	'b': "Builtin.BridgeObject",
	'B': "Builtin.UnsafeValueBuffer",
	'c': "Builtin.RawUnsafeContinuation",
	'D': "Builtin.DefaultActorStorage",
	'd': "Builtin.NonDefaultDistributedActorStorage",
	'e': "Builtin.Executor",
	'I': "Builtin.IntLiteral",
	'j': "Builtin.Job",
	'O': "Builtin.UnknownObject",
	'o': "Builtin.NativeObject",
	'P': "Builtin.PackIndex",
	'p': "Builtin.RawPointer",
	't': "Builtin.SILToken",
	'w': "Builtin.Word",
}

const (
	builtinPrefix = "Builtin."
	// maxBuiltinSize is a bound on the bits and elements of builtin types.
	maxBuiltinSize = 4096
)

// builtinType reads what follows 'B'.
func (p *swiftParser) builtinType() nodeID {
	switch c := p.next(); c {
	case 'f', 'i', 'v':
		index, ok := p.index()
		size := index - 1
		if !ok || size <= 0 || size > maxBuiltinSize {
			return 0
		}
		return p.sizedBuiltin(c, size)
	case 'V':
		element := p.popType()
		return p.make(nodeSimplePhrase, "Builtin.FixedArray<%0, %1>", p.popType(), element)
	case 'T':
		return p.add(nodeBuiltinTuple, "", 0)
	default:
		if c >= 128 || builtinTypes[c] == "" {
			return 0
		}
		return p.add(nodeBuiltin, builtinTypes[c], 0)
	}
}

// sizedBuiltin makes an integer or a float of so many bits, or a vector of so many
// of the elements on the stack.
func (p *swiftParser) sizedBuiltin(c byte, size int) nodeID {
	if c == 'v' {
		return p.vectorOf(p.popType(), size)
	}
	return p.swiftTree.sizedBuiltin(c, size)
}

// sizedBuiltin makes an integer or a float of so many bits.
func (t *swiftTree) sizedBuiltin(c byte, size int) nodeID {
	if c == 'f' {
		return t.add(nodeBuiltin, builtinPrefix+"FPIEEE"+strconv.Itoa(size), 0)
	}
	return t.add(nodeBuiltin, builtinPrefix+"Int"+strconv.Itoa(size), 0)
}

func (t *swiftTree) vectorOf(element nodeID, count int) nodeID {
	if t.kind(element) != nodeBuiltin {
		return 0
	}
	return t.add(nodeBuiltin, builtinPrefix+"Vec"+strconv.Itoa(count)+"x"+t.at(element).text[len(builtinPrefix):], 0)
}

// integerType reads the value of an integer generic argument.
func (p *swiftParser) integerType() nodeID {
	negative := p.nextIf('n')
	n, ok := p.index()
	if !ok {
		return 0
	}
	if negative {
		n = -n
	}
	return p.add(nodeInteger, "", int64(n))
}

// nominalType makes a type of the name and the context on the stack.
func (p *swiftParser) nominalType(kind nodeKind) nodeID {
	name := p.popTrait(isDeclName)
	context := p.popContext()
	if name == 0 {
		return 0
	}
	return p.substitutable(p.entity(kind, "", 0, [slots]nodeID{slotContext: context, slotName: name}))
}

// extension makes the context that an extension in another module is.
func (p *swiftParser) extension() nodeID {
	signature := p.popKind(nodeSignature)
	module := p.popModule()
	typ := p.popTrait(isNominal)
	if module == 0 || typ == 0 {
		return 0
	}
	return p.add(nodeExtension, "", 0, module, typ, signature)
}

// popProtocol takes a protocol, or the name and context of one.
func (p *swiftParser) popProtocol() nodeID {
	if id := p.popType(); id != 0 {
		if p.kind(id) != nodeProtocol {
			return 0
		}
		return id
	}
	name := p.popTrait(isDeclName)
	context := p.popContext()
	if name == 0 {
		return 0
	}
	return p.entity(nodeProtocol, "", 0, [slots]nodeID{slotContext: context, slotName: name})
}

// popTupleElement takes a type with its label and what makes it variadic.
func (p *swiftParser) popTupleElement() nodeID {
	variadic := int64(0)
	if p.popKind(nodeVariadic) != 0 {
		variadic = 1
	}
	label := ""
	if id := p.popKind(nodeIdent); id != 0 {
		label = p.at(id).text
	}
	typ := p.popType()
	if typ == 0 {
		return 0
	}
	return p.add(nodeTupleElement, label, variadic, typ)
}

// popGenericArgs puts the lists of generic arguments on the scratch, those of the
// innermost type first. Conformances that stand after them are not shown.
func (p *swiftParser) popGenericArgs() bool {
	for p.popKind(nodeRetroactive) != 0 {
	}
	for {
		base := p.scratch.n
		for id := p.popType(); id != 0; id = p.popType() {
			p.scratch.push(id)
		}
		slices.Reverse(p.scratch.from(base))
		list := p.add(nodeTypeList, "", 0, p.scratch.from(base)...)
		p.scratch.cut(base)
		p.scratch.push(list)
		if list == 0 {
			return false
		}
		if p.popKind(nodeEmptyList) != 0 {
			return true
		}
		if p.popKind(nodeFirst) == 0 {
			return false
		}
	}
}

func (p *swiftParser) boundGenericType() nodeID {
	base := p.scratch.n
	ok := p.popGenericArgs()
	bound := nodeID(0)
	if ok {
		bound = p.bind(p.popTrait(isNominal), p.scratch.from(base), 0)
	}
	p.scratch.cut(base)
	return p.substitutable(bound)
}

// maxBindDepth bounds how many contexts generic arguments are passed out through.
const maxBindDepth = 128

// bind gives a type, and the types it stands in, their generic arguments.
func (p *swiftParser) bind(nominal nodeID, lists []nodeID, depth int) nodeID {
	if nominal == 0 || len(lists) == 0 || depth > maxBindDepth {
		return 0
	}
	context := p.part(nominal, slotContext)
	args := lists[0]
	binds := !p.is(nominal, unbindable)
	if binds {
		lists = lists[1:]
	}
	if len(lists) > 0 {
		if p.kind(context) == nodeExtension {
			module, extended, signature := p.part(context, 0), p.part(context, 1), p.part(context, 2)
			if extended = p.bind(extended, lists, depth+1); extended == 0 {
				return 0
			}
			context = p.add(nodeExtension, "", 0, module, extended, signature)
		} else {
			context = p.bind(context, lists, depth+1)
		}
		if nominal = p.withContext(nominal, context); nominal == 0 {
			return 0
		}
	}
	switch {
	case !binds || p.at(args).n == 0:
		return nominal
	case p.kind(nominal) == nodeFunction, p.kind(nominal) == nodeConstructor:
		return p.make(nodeBoundFunction, "", nominal, args)
	case p.is(nominal, isNominal):
		return p.make(nodeBound, "", nominal, args)
	}
	return 0
}

// specialPhrases are the types of one operand after 'X'.
var specialPhrases = [128]struct {
	kind nodeKind
	text string
}{
	'o': {nodeTypePhrase, "unowned %0"},
	'u': {nodeTypePhrase, "unowned(unsafe) %0"},
	'w': {nodeTypePhrase, "weak %0"},
	'b': {nodeSimplePhrase, "@box %0"},
	'D': {nodeSimplePhrase, "Self"},
	'p': {nodeExistentialMetatype, ""},
}

// specialType reads what follows 'X'.
func (p *swiftParser) specialType() nodeID {
	c := p.next()
	if c < 128 && specialPhrases[c].kind != nodeNone {
		return p.make(specialPhrases[c].kind, specialPhrases[c].text, p.popType())
	}
	if convention, ok := functionConvention(c); ok {
		return p.functionType(convention, "")
	}
	switch c {
	case 'z':
		convention, ok := functionConvention(p.next())
		if !ok || convention != fnBlock && convention != fnC {
			return 0
		}
		clang := p.piece()
		if clang == "" {
			return 0
		}
		return p.functionType(convention, clang)
	case 'g':
		return p.make(nodePhrase, "existential shape for any %0", p.popType())
	case 'G':
		typ := p.popType()
		return p.make(nodePhrase, "existential shape for %0 any %1", p.popKind(nodeSignature), typ)
	case 'M', 'm':
		representation := metatypeRepresentation(p.next())
		if representation == "" {
			return 0
		}
		kind := nodeMetatype
		if c == 'm' {
			kind = nodeExistentialMetatype
		}
		return p.make(kind, representation, p.popType())
	case 'P':
		requirements := p.popList(nodeTypeList, "", aRequirement)
		return p.make(nodeExistentialAny, "any %0<%l1>", p.popType(), requirements)
	case 'c':
		class := p.popType()
		return p.make(nodeProtocolsAndClass, "", class, p.popList(nodeTypeList, "", aProtocol))
	case 'l':
		return p.popList(nodeProtocolsAndAnyObject, "", aProtocol)
	case 'X', 'x':
		return p.boxType(c == 'X')
	case 'Y':
		return p.nominalType(nodeOtherNominal)
	case 'Z':
		types := p.popList(nodeTypeList, "", aType)
		name := p.popKind(nodeIdent)
		return p.make(nodeAnonymous, "", name, p.popContext(), types)
	case 'e':
		return p.add(nodeSimplePhrase, "<ERROR TYPE>", 0)
	case 'S':
		return p.sugaredType()
	}
	return 0
}

func (p *swiftParser) popRequirement() nodeID { return p.popTrait(isRequirement) }

func metatypeRepresentation(c byte) string {
	switch c {
	case 't':
		return "@thin "
	case 'T':
		return "@thick "
	case 'o':
		return "@objc_metatype "
	}
	return ""
}

// sugaredType reads the types that debuggers are given as they were written.
func (p *swiftParser) sugaredType() nodeID {
	switch p.next() {
	case 'q':
		return p.make(nodeSimplePhrase, "%(0?", p.popType())
	case 'a':
		return p.make(nodeSimplePhrase, "[%0]", p.popType())
	case 'p':
		return p.make(nodeSimplePhrase, "(%0)", p.popType())
	case 'A':
		element := p.popType()
		return p.make(nodeSimplePhrase, "[%0 of %1]", p.popType(), element)
	case 'D':
		value := p.popType()
		return p.make(nodeSimplePhrase, "[%0 : %1]", p.popType(), value)
	}
	return 0
}

// boxType reads a box that holds captured variables; inout ones can be changed.
func (p *swiftParser) boxType(generic bool) nodeID {
	signature, args := nodeID(0), nodeID(0)
	if generic {
		signature = p.popKind(nodeSignature)
		args = p.popList(nodeTypeList, "", aType)
		if signature == 0 || args == 0 {
			return 0
		}
	}
	fields := p.popList(nodeTypeList, "", aBoxField)
	if fields == 0 {
		return 0
	}
	return p.boxOf(fields, signature, args)
}

func (p *swiftParser) popBoxField() nodeID {
	typ := p.popType()
	if p.kind(typ) == nodeInOut {
		return p.make(nodePhrase, " var %0", p.part(typ, 0))
	}
	return p.make(nodePhrase, " let %0", typ)
}

// boxOf makes the type of a box; signature and args are given both or not at all.
func (t *swiftTree) boxOf(fields, signature, args nodeID) nodeID {
	if signature == 0 {
		return t.make(nodeSimplePhrase, "{%c0 }", fields)
	}
	return t.make(nodeSimplePhrase, "%1 {%c0 } <%l2>", fields, signature, args)
}
