package demangle

import "slices"

// typeDescriptors are the operators after 'M' that take a type.
var typeDescriptors = [128]string{
	'a': "type metadata accessor for %0",
	'b': "canonical specialized generic type metadata accessor for %0",
	'B': "reflection metadata builtin descriptor %0",
	'D': "demangling cache variable for type metadata for %0",
	'f': "full type metadata for %0",
	'F': "reflection metadata field descriptor %0",
	'i': "type metadata instantiation function for %0",
	'I': "type metadata instantiation cache for %0",
	'l': "type metadata singleton initialization cache for %0",
	'L': "lazy cache variable for type metadata for %0",
	'm': "metaclass for %0",
	'M': "specialized generic metaclass for %0",
	'n': "nominal type descriptor for %0",
	'N': "noncanonical specialized generic type metadata for %0",
	'o': "class metadata base offset for %0",
	'P': "generic type metadata pattern for %0",
	'r': "type metadata completion function for %0",
	's': "ObjC resilient class stub for %0",
	't': "full ObjC resilient class stub for %0",
	'u': "method lookup function for %0",
	'U': "ObjC metadata update function for %0",
	'z': "flag for loading of canonical specialized generic type metadata for %0",
}

// anyDescriptors are the operators after 'M' that take what is there.
var anyDescriptors = [128]string{
	'g': "opaque type descriptor accessor for %0",
	'h': "opaque type descriptor accessor impl for %0",
	'j': "opaque type descriptor accessor key for %0",
	'J': "cache variable for noncanonical specialized generic type metadata for %0",
	'k': "opaque type descriptor accessor var for %0",
	'K': "metadata instantiation cache for %0",
	'q': "uniquable %0",
	'Q': "opaque type descriptor for %0",
}

// metadata reads what follows 'M': metadata and descriptors.
func (p *swiftParser) metadata() nodeID {
	c := p.next()
	if c >= 128 {
		return 0
	}
	if text := typeDescriptors[c]; text != "" {
		return p.make(nodePhrase, text, p.popType())
	}
	if text := anyDescriptors[c]; text != "" {
		return p.make(nodePhrase, text, p.pop())
	}
	switch c {
	case 'A':
		return p.make(nodePhrase, "reflection metadata associated type descriptor %0", p.popProtocolConformance())
	case 'c':
		return p.make(nodePhrase, "protocol conformance descriptor for %0", p.popProtocolConformance())
	case 'C':
		return p.make(nodePhrase, "reflection metadata superclass descriptor %0", p.popTrait(isNominal))
	case 'p':
		return p.make(nodePhrase, "protocol descriptor for %0", p.popProtocol())
	case 'S':
		return p.make(nodePhrase, "protocol self-conformance descriptor for %0", p.popProtocol())
	case 'V':
		return p.make(nodePhrase, "property descriptor for %0", p.popEntity())
	case 'X':
		return p.contextDescriptor()
	}
	return 0
}

// contextDescriptor reads the descriptors of contexts that are no types.
func (p *swiftParser) contextDescriptor() nodeID {
	switch p.next() {
	case 'E':
		return p.make(nodePhrase, "extension descriptor %0", p.popContext())
	case 'M':
		return p.make(nodePhrase, "module descriptor %0", p.popModule())
	case 'Y':
		discriminator := p.pop()
		return p.make(nodePhrase, "anonymous descriptor %0", p.popContext(), discriminator)
	case 'X':
		return p.make(nodePhrase, "anonymous descriptor %0", p.popContext())
	case 'A':
		path := p.popAssocPath()
		return p.make(nodePhrase, "generic parameter reference for associated type %0%1", p.popType(), path)
	}
	return 0
}

// conformanceTables are the operators after 'W' that take a conformance.
var conformanceTables = [128]string{
	'P': "protocol witness table for %0",
	'p': "protocol witness table pattern for %0",
	'G': "generic protocol witness table for %0",
	'I': "instantiation function for generic protocol witness table for %0",
	'r': "resilient protocol witness table for %0",
	'a': "protocol witness table accessor for %0",
}

// witness reads what follows 'W': witness tables and what is outlined.
func (p *swiftParser) witness() nodeID {
	c := p.next()
	if c >= 128 {
		return 0
	}
	if text := conformanceTables[c]; text != "" {
		return p.make(nodePhrase, text, p.popProtocolConformance())
	}
	switch c {
	case 'C':
		return p.make(nodePhrase, "enum case for %0", p.popEntity())
	case 'V':
		return p.make(nodePhrase, "value witness table for %0", p.popType())
	case 'v':
		switch p.next() {
		case 'd':
			return p.make(nodePhrase, "direct field offset for %0", p.popEntity())
		case 'i':
			return p.make(nodePhrase, "indirect field offset for %0", p.popEntity())
		}
		return 0
	case 'S':
		return p.make(nodePhrase, "protocol self-conformance witness table for %0", p.popProtocol())
	case 'l':
		conformance := p.popProtocolConformance()
		return p.make(nodePhrase, "lazy protocol witness table accessor for type %0 and conformance %1", p.popType(), conformance)
	case 'L':
		conformance := p.popProtocolConformance()
		return p.make(nodePhrase, "lazy protocol witness table cache variable for type %0 and conformance %1", p.popType(), conformance)
	case 't':
		name := p.popTrait(isDeclName)
		return p.make(nodePhrase, "associated type metadata accessor for %1 in %0", p.popProtocolConformance(), name)
	case 'T':
		protocol := p.popType()
		path := p.popAssocPath()
		return p.make(nodePhrase, "associated type witness table accessor for %1 : %2 in %0", p.popProtocolConformance(), path, protocol)
	case 'b':
		protocol := p.popType()
		return p.make(nodePhrase, "base witness table accessor for %1 in %0", p.popProtocolConformance(), protocol)
	case 'O':
		return p.outlined()
	case 'Z':
		return p.globalOnce("one-time initialization function for %1")
	case 'z':
		return p.globalOnce("one-time initialization token for %1")
	case 'J':
		return p.differentiabilityWitness()
	}
	return 0
}

// outlinedOperations are the functions that were taken out of line, by the letter
// after 'WO'. Those with %1 show the generic signature.
var outlinedOperations = [128]string{
	'y': "outlined copy of %0%1",
	'e': "outlined consume of %0%1",
	'r': "outlined retain of %0",
	's': "outlined release of %0",
	'b': "outlined init with take of %0",
	'B': "outlined init with take of %0",
	'c': "outlined init with copy of %0",
	'C': "outlined init with copy of %0",
	'd': "outlined assign with take of %0",
	'D': "outlined assign with take of %0",
	'f': "outlined assign with copy of %0",
	'F': "outlined assign with copy of %0",
	'h': "outlined destroy of %0",
	'H': "outlined destroy of %0",
	'g': "outlined enum get tag of %0",
	'i': "outlined enum tag store of %0",
	'j': "outlined enum project data for load of %0",
}

func (p *swiftParser) outlined() nodeID {
	c := p.next()
	if c >= 128 || outlinedOperations[c] == "" {
		return 0
	}
	if c == 'i' || c == 'j' {
		if _, ok := p.index(); !ok {
			return 0
		}
	}
	signature := p.popKind(nodeSignature)
	typ := p.popType()
	if typ == 0 {
		return 0
	}
	return p.add(nodePhrase, outlinedOperations[c], 0, typ, signature)
}

// globalOnce takes the variables that are initialized together.
func (p *swiftParser) globalOnce(text string) nodeID {
	base := p.scratch.n
	defer p.scratch.cut(base)
	for p.popKind(nodeFirst) != 0 {
		if !p.scratch.push(p.popTrait(isDeclName)) {
			return 0
		}
	}
	slices.Reverse(p.scratch.from(base))
	context := p.popContext()
	return p.make(nodePhrase, text, context, p.add(nodeOnceList, "", 0, p.scratch.from(base)...))
}

// valueWitnessName names a function of a value witness table by its letters; an
// unknown one has no name.
func valueWitnessName(code string) string {
	switch code {
	case "al":
		return "allocateBuffer"
	case "ca":
		return "assignWithCopy"
	case "ta":
		return "assignWithTake"
	case "de":
		return "deallocateBuffer"
	case "xx":
		return "destroy"
	case "XX":
		return "destroyBuffer"
	case "Xx":
		return "destroyArray"
	case "CP":
		return "initializeBufferWithCopyOfBuffer"
	case "Cp":
		return "initializeBufferWithCopy"
	case "cp":
		return "initializeWithCopy"
	case "Tk":
		return "initializeBufferWithTake"
	case "tk":
		return "initializeWithTake"
	case "pr":
		return "projectBuffer"
	case "TK":
		return "initializeBufferWithTakeOfBuffer"
	case "Cc":
		return "initializeArrayWithCopy"
	case "Tt":
		return "initializeArrayWithTakeFrontToBack"
	case "tT":
		return "initializeArrayWithTakeBackToFront"
	case "xs":
		return "storeExtraInhabitant"
	case "xg":
		return "getExtraInhabitantIndex"
	case "ug":
		return "getEnumTag"
	case "up":
		return "destructiveProjectEnumData"
	case "ui":
		return "destructiveInjectEnumTag"
	case "et":
		return "getEnumTagSinglePayload"
	case "st":
		return "storeEnumTagSinglePayload"
	}
	return ""
}

// valueWitness reads what follows 'w'.
func (p *swiftParser) valueWitness() nodeID {
	if len(p.text)-p.pos < 2 {
		return 0
	}
	name := valueWitnessName(p.text[p.pos : p.pos+2])
	p.pos += 2
	if name == "" {
		return 0
	}
	return p.make(nodeValueWitness, name, p.popType())
}
