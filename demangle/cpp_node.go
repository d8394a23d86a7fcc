package demangle

// A cppKind says what a node stands for. Nodes that are written alike share a kind, and
// carry the words.
type cppKind uint8

const (
	cppNone cppKind = iota
	cppList         // of kids

	// Names.
	cppText         // text
	cppNested       // a::b
	cppLocal        // a::b of the function a
	cppFriend       // a::friend b
	cppGlobal       // ::a
	cppTemplate     // a and its arguments, the list b
	cppTag          // a[abi:text]
	cppModule       // a, or none, then text; flag: a partition
	cppModuleEntity // a@b
	cppStandard     // one of the standard library that has a letter of its own: text is its name
	cppStandardFull // the same with the template's arguments: flag for the string's allocator
	cppStructor     // text is "" or "~", a the class
	cppConversion   // operator a
	cppLiteral      // operator"" a
	cppClosure      // text: number; template parameters a, their requirement b, parameters c, requirement d
	cppUnnamed      // text: number
	cppBindings     // [list a]

	// Encodings.
	cppFunction // name a, result b or none, parameters c, attributes d, requirement e; quals and ref
	cppSpecial  // text and a
	cppInstead  // construction vtable for a-in-b
	cppClone    // a (text)
	cppEnableIf // [enable_if:list a]

	// Types.
	cppQualified   // a with quals
	cppVendor      // a text, with arguments b or none
	cppPostfix     // a followed by text
	cppElaborated  // text a
	cppTransformed // text(a)
	cppPointer
	cppReference // flag: an rvalue's
	cppMember    // pointer to a member of a, of type b
	cppArray     // of a, b of them or none
	cppType      // a function's: result a, parameters b, exceptions c or none; quals and ref
	cppNoexcept  // text(a)
	cppThrow     // throw(list a)
	cppThis      // this a
	cppVector    // of a, b of them or none
	cppObjC      // a<text>
	cppBinaryFP
	cppBitInt // flag: unsigned

	// Templates.
	cppArgumentPack // list a
	cppPack         // the same as what a parameter stands for
	cppExpansion    // of a
	cppForward      // a parameter whose argument, a, comes later; num: its index
	cppQualifiedArg // argument b; its parameter a is not written
	cppParamName    // text and num
	cppTypeParam    // typename a
	cppConstrained  // a b
	cppNonTypeParam // type a, name b
	cppTemplParam   // parameters a, name b, requirement c or none
	cppParamPack    // of a

	// Expressions.
	cppBinary    // a text b
	cppUnary     // text a
	cppPostfixed // a text
	cppSubscript // a[b]
	cppAccess    // a text b
	cppTernary   // a ? b : c
	cppEnclosed  // text(a)
	cppCast      // text<a>(b)
	cppSizeof    // of a pack
	cppCall      // a(list b); flag: a in parentheses
	cppNew       // list a, type b, initializers c; flag: an array; num: 1 with :: before
	cppDelete    // likewise, of a
	cppConvert   // (a)(list b)
	cppBraces    // a or none {list b}
	cppField     // .a = b, or [a] with the flag
	cppRange     // [a ... b] = c
	cppFold      // operator text, pack a, b or none; flag: to the left
	cppParam     // fp and text
	cppBool
	cppString  // "<a>"
	cppLambda  // [] a {...}
	cppEnum    // (a)text
	cppInteger // text of the type a
	cppFloat   // text, as the letter in num says
	cppRequires
	cppRequireExpr // a, b or none; flag: noexcept
	cppRequireType
	cppRequireNested
	cppSubobject // of a, type b, at text
)

// A precedence orders operators from those that bind most closely.
type precedence uint8

const (
	precPrimary precedence = iota
	precPostfix
	precUnary
	precCast
	precPointerToMember
	precMultiplicative
	precAdditive
	precShift
	precSpaceship
	precRelational
	precEquality
	precAnd
	precXor
	precOr
	precAndIf
	precOrIf
	precConditional
	precAssign
	precComma
	precDefault
)

// The qualifiers of types and member functions.
const (
	qualConst = 1 << iota
	qualVolatile
	qualRestrict
	refLvalue // of a member function
	refRvalue
)

// A trait is something that may have to be known of a type to write it: whether a part of it
// stands behind the name, whether it is an array or a function. Where a pack of arguments is in
// it this may differ from one argument to the next.
type trait uint8

const (
	traitBehind trait = iota
	traitArray
	traitFunction
)

const (
	traitNo = iota
	traitYes
	traitUnknown
)

// traits of a node, two bits each.
const (
	behindYes    = traitYes << (2 * traitBehind)
	functionLike = behindYes | traitYes<<(2*traitFunction)
	arrayLike    = behindYes | traitYes<<(2*traitArray)
	allUnknown   = traitUnknown | traitUnknown<<2 | traitUnknown<<4
	behindMask   = 3
)

// A cppNode is one part of a name. A list's parts are kids[a : a+b] of the tree.
type cppNode struct {
	text          string
	a, b, c, d, e nodeID
	num           int32
	kind          cppKind
	prec          precedence
	traits        uint8
	quals         uint8
	flag          bool
	busy          bool // is being written: a name can refer to what it is in
}

// A cppTree holds the nodes of one name. Substitutions make it a graph; a reference to an
// argument that comes later can make it one with cycles.
type cppTree struct {
	output
	nodes     [smallCppNodes]cppNode // nodes[0] is none
	kids      [smallCppKids]nodeID
	moreNodes []cppNode
	moreKids  []nodeID // no list is in both
	nodeCount int
	kidCount  int // of those in kids
}

const (
	smallCppNodes = 96
	smallCppKids  = 128
)

// at returns a node. It is only good until the next one is made.
func (t *cppTree) at(id nodeID) *cppNode {
	if id < smallCppNodes {
		return &t.nodes[id]
	}
	return &t.moreNodes[id-smallCppNodes]
}

// add makes a node. What is not the name has none.
func (t *cppTree) add(n cppNode) nodeID {
	if !t.spend(1) {
		return 0
	}
	if t.nodeCount == 0 {
		t.nodeCount = 1 // after cppNone
	}
	id := nodeID(t.nodeCount)
	if id < smallCppNodes {
		t.nodes[id] = n
	} else {
		t.moreNodes = append(t.moreNodes, n)
	}
	t.nodeCount++
	return id
}

// list makes a list of nodes.
func (t *cppTree) list(ids []nodeID) nodeID {
	if !t.spend(len(ids)) {
		return 0
	}
	n := cppNode{kind: cppList, b: nodeID(len(ids))}
	if t.kidCount+len(ids) <= smallCppKids {
		n.a = nodeID(t.kidCount)
		t.kidCount += copy(t.kids[t.kidCount:], ids)
	} else {
		n.a = nodeID(smallCppKids + len(t.moreKids))
		t.moreKids = append(t.moreKids, ids...)
	}
	return t.add(n)
}

// parts returns the parts of a list, none of none.
func (t *cppTree) parts(id nodeID) []nodeID {
	n := t.at(id)
	if n.a < smallCppKids {
		return t.kids[n.a : n.a+n.b]
	}
	return t.moreKids[n.a-smallCppKids:][:n.b]
}

// isText says whether a node is just that text.
func (t *cppTree) isText(id nodeID, text string) bool {
	n := t.at(id)
	return n.kind == cppText && n.text == text
}
