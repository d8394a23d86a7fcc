package demangle

import "slices"

// A nodeID names a node of a swiftTree. Zero is no node: constructors that are
// given it for a part that must be there return it, and so a damaged part makes
// the whole damaged.
type nodeID uint32

// A nodeKind says what a node stands for, as far as the grammar or the printer
// tells nodes apart. Most productions only differ in the words around their
// parts; they share nodePhrase and carry the words as a template.
type nodeKind uint8

const (
	nodeNone nodeKind = iota

	// Markers and fragments that wait on the stack for their operator.
	nodeEmptyList
	nodeFirst
	nodeVariadic
	nodeSuffix // text
	nodeAsync
	nodeSendable
	nodeThrows        // the thrown type, if it is named
	nodeFuncIsolation // val: fnIsolatedAny, fnNonisolated, or zero with the actor's type
	nodeFuncDiff      // val: the letter of the kind
	nodeSendingResult
	nodeRetroactive

	// Names.
	nodeIdent    // text
	nodeOperator // text, val: the letter of its fixity
	nodeLocal    // name, val: discriminator
	nodePrivate  // discriminator, name or none
	nodeRelated  // name, text: the letter of the relation
	nodeModule   // text

	// Contexts and entities: parts as in the slot constants.
	nodeExtension // module, type, signature or none
	nodeAnonymous // name, parent, type list
	nodeStatic
	nodeAccessor // storage, text
	nodeFunction
	nodeVariable
	nodeSubscript
	nodeAllocator
	nodeConstructor
	nodeDeallocator // text
	nodeLifecycle   // text: a member without a type that is named by the language
	nodeInitializer // text: an initializer of a variable, printed "… of …"
	nodeDefaultArgument
	nodeExplicitClosure
	nodeImplicitClosure
	nodeBoundFunction // function, type list
	nodeOpaqueOf      // template
	nodeAutoDiff      // template
	nodeMacro
	nodeGenericParamDecl
	nodeMacroExpansion // text: the role, val: discriminator
	nodeMacroLocation  // template

	// Types.
	nodeClass
	nodeStruct
	nodeEnum
	nodeProtocol
	nodeTypeAlias
	nodeOtherNominal
	nodeBuiltinTuple
	nodeBuiltin // text
	nodeBound   // nominal type, type list
	nodeFunc    // parameters, result, actor or none, thrown type or none; val: fn flags
	nodeImplFunc
	nodeTuple
	nodeMetatype            // type; text: representation
	nodeExistentialMetatype // type; text: representation
	nodeProtocols
	nodeProtocolsAndClass // class, protocols
	nodeProtocolsAndAnyObject
	nodeGenericParam   // val: depth<<32 | index
	nodeDependentType  // signature, type
	nodeMember         // base, associated type
	nodeInOut          // type
	nodeTypePhrase     // template; put in parentheses before a suffix
	nodeSimplePhrase   // template; a suffix may follow
	nodeExistentialAny // template
	nodeInteger        // val

	// Parts of types.
	nodeTupleElement // type; text: label, val: 1 when variadic
	nodeTypeList
	nodeLabelList
	nodeAssocName // name, protocol or none
	nodeImplAttr  // text, or a signature
	nodeImplParam // type or none yet; text: convention, val: impl flags
	nodeImplResult
	nodeImplOther // type; text: convention, val: implYield or implError
	nodeImplSending
	nodeImplPattern // signature, type list
	nodeImplInvocation

	// Generic signatures and conformances.
	nodeSignature   // counts and requirements
	nodeCount       // val
	nodeRequirement // template
	nodePackMarker
	nodeValueMarker
	nodeConformance     // template
	nodeDependentConf   // template
	nodeConcreteConf    // template
	nodeConfRef         // template
	nodeConformanceList // conformances

	// Attributes of functions.
	nodeAttr // template
	nodePartialApply
	nodeSpecialization // text: words; parameters
	nodeSpecParam      // template or parts of a function's signature
	nodeSpecReturn
	nodePropKind    // val
	nodePropPayload // text
	nodeSerialized

	// Everything else.
	nodePhrase // template
	nodeText   // text
	nodeValueWitness
	nodeTypeMangling // label list, function type
	nodeIndexSubset  // text
	nodeOnceList     // names of variables

	nodeKinds // how many there are
)

// The parts of entities and nominal types, at fixed places so that an absent one
// needs no other kind of node.
const (
	slotContext = iota
	slotName
	slotLabels
	slotType
	slotPrivate // file discriminator of what has no name
	slots
)

// slotMacro is where an attached macro's expansion keeps the macro's name.
const slotMacro = slotLabels

// traits are the sets of kinds that productions choose by.
type traits uint16

const (
	isType        traits = 1 << iota // may stand where the grammar has a type
	isContext                        // may contain declarations
	isDeclName                       // may name a declaration
	isNominal                        // a declared type
	isAttribute                      // stands before a function
	isRequirement                    // of a generic signature
	isAnyConf                        // any protocol conformance
	isSimple                         // needs no parentheses before a suffix
	isEntity                         // laid out by the slot constants
	isExistential                    // its metatype is written ".Protocol"
	unbindable                       // takes no list of generic arguments
)

var kindTraits = [nodeKinds]traits{
	nodeIdent:    isDeclName,
	nodeOperator: isDeclName,
	nodeLocal:    isDeclName,
	nodePrivate:  isDeclName,
	nodeRelated:  isDeclName,
	nodeModule:   isContext,

	nodeExtension:        isContext,
	nodeAnonymous:        isContext,
	nodeStatic:           isContext | unbindable,
	nodeAccessor:         isContext,
	nodeFunction:         isContext | isEntity,
	nodeVariable:         isContext | isEntity | unbindable,
	nodeSubscript:        isContext | isEntity | unbindable,
	nodeAllocator:        isContext | isEntity,
	nodeConstructor:      isContext | isEntity,
	nodeDeallocator:      isContext | isEntity,
	nodeLifecycle:        isContext | isEntity,
	nodeInitializer:      isContext | isEntity | unbindable,
	nodeDefaultArgument:  isContext | isEntity | unbindable,
	nodeExplicitClosure:  isContext | isEntity | unbindable,
	nodeImplicitClosure:  isContext | isEntity | unbindable,
	nodeOpaqueOf:         isContext,
	nodeAutoDiff:         isContext,
	nodeMacro:            isEntity,
	nodeGenericParamDecl: isEntity,
	nodeMacroExpansion:   isEntity,

	nodeClass:        isType | isContext | isNominal | isSimple | isEntity,
	nodeStruct:       isType | isContext | isNominal | isSimple | isEntity,
	nodeEnum:         isType | isContext | isNominal | isSimple | isEntity,
	nodeProtocol:     isType | isContext | isNominal | isSimple | isEntity,
	nodeTypeAlias:    isType | isContext | isNominal | isSimple | isEntity,
	nodeOtherNominal: isType | isContext | isNominal | isSimple | isEntity,
	nodeBuiltinTuple: isType | isContext | isNominal | isSimple,
	nodeBuiltin:      isType | isSimple,
	nodeBound:        isType | isSimple,
	nodeFunc:         isType,
	nodeImplFunc:     isType,
	nodeTuple:        isType | isSimple,
	nodeMetatype:     isType | isSimple,

	nodeExistentialMetatype:   isType | isSimple | isExistential,
	nodeProtocols:             isType | isExistential,
	nodeProtocolsAndClass:     isType | isExistential,
	nodeProtocolsAndAnyObject: isType | isExistential,
	nodeGenericParam:          isType | isSimple,
	nodeDependentType:         isType | isSimple,
	nodeMember:                isType | isSimple,
	nodeInOut:                 isType,
	nodeTypePhrase:            isType,
	nodeSimplePhrase:          isType | isSimple,
	nodeExistentialAny:        isType,
	nodeInteger:               isType | isSimple,

	nodeRequirement: isRequirement,
	nodePackMarker:  isRequirement,
	nodeValueMarker: isRequirement,

	nodeDependentConf: isAnyConf,
	nodeConcreteConf:  isAnyConf,

	nodeAttr:           isAttribute,
	nodePartialApply:   isAttribute,
	nodeSpecialization: isAttribute,
}

func (k nodeKind) is(t traits) bool { return kindTraits[k]&t != 0 }

// A swiftNode is one production. Its parts are kids[first : first+n] of the tree.
type swiftNode struct {
	text  string
	val   int64
	first uint32
	n     uint16
	kind  nodeKind
}

// A swiftTree holds the nodes of one name. Substitutions make it a graph without
// cycles: a node only has parts that were made before it, save for the types of
// implementation functions and the labels of old tuples, which are filled in.
//
// The arrays are large enough for nearly all names, and what is reached through no
// pointer can stay on the caller's stack.
type swiftTree struct {
	output
	nodes     [smallNodes]swiftNode // nodes[0] is nodeNone
	kids      [smallKids]nodeID
	moreNodes []swiftNode // those that did not fit
	moreKids  []nodeID    // likewise; no node's parts are in both
	nodeCount int
	kidCount  int  // of those in kids
	full      bool // a limit was met; what is built is not the name
}

const (
	smallNodes = 160
	smallKids  = 384
	// maxNodes bounds the nodes of one name. The longest names make fewer, save
	// where they repeat substitutions.
	maxNodes = 1 << 16
	// maxKids bounds the parts of all nodes of one name.
	maxKids = 1 << 18
	// maxParts bounds the parts of one node.
	maxParts = 1<<16 - 1
)

// at returns a node. It is only good until the next one is made.
func (t *swiftTree) at(id nodeID) *swiftNode {
	if id < smallNodes {
		return &t.nodes[id]
	}
	return &t.moreNodes[id-smallNodes]
}

func (t *swiftTree) kind(id nodeID) nodeKind     { return t.at(id).kind }
func (t *swiftTree) is(id nodeID, s traits) bool { return kindTraits[t.at(id).kind]&s != 0 }

// parts returns a node's parts. The slice is only good until the next node is made.
func (t *swiftTree) parts(id nodeID) []nodeID {
	n := t.at(id)
	if n.first < smallKids {
		return t.kids[n.first : n.first+uint32(n.n)]
	}
	first := n.first - smallKids
	return t.moreKids[first : first+uint32(n.n)]
}

// part returns the i-th part, or none.
func (t *swiftTree) part(id nodeID, i int) nodeID {
	if parts := t.parts(id); i < len(parts) {
		return parts[i]
	}
	return 0
}

// add makes a node whose parts may be absent.
func (t *swiftTree) add(kind nodeKind, text string, val int64, parts ...nodeID) nodeID {
	if !t.spend(1+len(parts)) || t.nodeCount >= maxNodes || len(t.moreKids)+len(parts) > maxKids || len(parts) > maxParts {
		t.full = true
		return 0
	}
	n := swiftNode{text: text, val: val, n: uint16(len(parts)), kind: kind}
	if t.kidCount+len(parts) < smallKids {
		n.first = uint32(t.kidCount)
		t.kidCount += copy(t.kids[t.kidCount:], parts)
	} else {
		n.first = uint32(smallKids + len(t.moreKids))
		t.moreKids = append(t.moreKids, parts...)
	}
	if t.nodeCount == 0 {
		t.nodeCount = 1 // after nodeNone
	}
	id := nodeID(t.nodeCount)
	if id < smallNodes {
		t.nodes[id] = n
	} else {
		t.moreNodes = append(t.moreNodes, n)
	}
	t.nodeCount++
	return id
}

// make makes a node all of whose parts must be there.
func (t *swiftTree) make(kind nodeKind, text string, parts ...nodeID) nodeID {
	if slices.Contains(parts, 0) {
		return 0
	}
	return t.add(kind, text, 0, parts...)
}

// entity makes a node laid out by the slot constants; the context must be there.
func (t *swiftTree) entity(kind nodeKind, text string, val int64, parts [slots]nodeID) nodeID {
	if parts[slotContext] == 0 {
		return 0
	}
	return t.add(kind, text, val, parts[:]...)
}

// withContext makes a copy of a node with another first part.
func (t *swiftTree) withContext(id, context nodeID) nodeID {
	if context == 0 {
		return 0
	}
	n := *t.at(id)
	copied := t.add(n.kind, n.text, n.val, t.parts(id)...)
	if copied != 0 {
		t.parts(copied)[0] = context
	}
	return copied
}

// A nodeStack is a stack of nodes.
type nodeStack struct {
	ids  [smallStack]nodeID
	more []nodeID // all of them, once they are too many for ids
	n    int
	full bool // the limit was met
}

const (
	smallStack = 64
	// maxStack bounds the nodes on a stack. Only repeated substitutions need more
	// than one byte of name for each.
	maxStack = 1 << 15
)

// push puts a node on the stack; it reports whether there is one and it fits.
func (s *nodeStack) push(id nodeID) bool {
	if id == 0 || s.n >= maxStack {
		s.full = s.full || id != 0
		return false
	}
	switch {
	case s.n < smallStack && s.more == nil:
		s.ids[s.n] = id
	case s.more == nil:
		s.more = append(append(make([]nodeID, 0, 4*smallStack), s.ids[:]...), id)
	default:
		s.more = append(s.more[:s.n], id)
	}
	s.n++
	return true
}

// pop takes the top of the stack, or returns none.
func (s *nodeStack) pop() nodeID {
	top := s.top()
	if top != 0 {
		s.n--
	}
	return top
}

// top returns the top of the stack, or none.
func (s *nodeStack) top() nodeID {
	if s.n == 0 {
		return 0
	}
	return s.from(s.n - 1)[0]
}

// from returns what was put on since there were base nodes. The slice is only good
// until the next node is put on.
func (s *nodeStack) from(base int) []nodeID {
	if s.more != nil {
		return s.more[base:s.n]
	}
	return s.ids[base:s.n]
}

// cut takes off what was put on since there were base nodes.
func (s *nodeStack) cut(base int) { s.n = base }
