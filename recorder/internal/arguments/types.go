package arguments

import (
	"cmp"
	"debug/dwarf"
	"strings"
)

// TypeKind says what a type is.
type TypeKind uint8

// The kinds.
const (
	KindUnknown TypeKind = iota
	KindVoid
	KindInt
	KindUint
	KindBool
	KindChar  // of text, whatever its sign
	KindFloat // of 4 or 8 bytes
	KindOther // long double, complex, vectors: not recorded
	KindEnum
	KindPointer
	KindReference
	KindStruct // a class or union, too
	KindArray
)

// Type is a type, without typedefs and qualifiers.
type Type struct {
	Kind   TypeKind
	Name   string
	Size   int64
	Signed bool // of an enum or a char
	Elem   ref  // of a pointer or an array
	Count  int64
	Vector bool
	Enum   map[int64]string

	Fields   []Member
	union    bool
	declared bool  // only that there is such a type is known
	byRef    int8  // a class that is passed by reference: 1, or, as surely isn't, -1
	special  bool  // has a virtual function, or a destructor or copy constructor of its own
	variant  bool  // has parts that are there or not, which Rust and Ada have
	encoding int64 // of a base type of KindOther
	align    int64 // bytes, as the source says, 0 if it doesn't
	self     ref
}

// Member is a field of a struct, or a base class.
type Member struct {
	Name  string
	Off   int64
	Type  ref
	Base  bool
	Bits  bool  // it is a bit field
	align int64 // bytes, as the source says, 0 if it doesn't
}

// Bounds of types that are read.
const (
	maxMembers   = 4096
	maxTypedefs  = 64
	maxAlignment = 1 << 20
)

var voidType = &Type{Kind: KindVoid, Name: "void"}

// typeOf reads the type of an entry.
func (d *Debug) typeOf(f *file, e *dwarf.Entry) (*Type, error) {
	r, ok := d.refOf(f, e, dwarf.AttrType)
	if !ok {
		if e.AttrField(dwarf.AttrType) != nil {
			return &Type{Name: "a type in another file"}, nil
		}
		return voidType, nil
	}
	return d.typeAt(r)
}

// typeAt reads the type at an entry.
func (d *Debug) typeAt(r ref) (*Type, error) {
	if r.f == nil {
		return voidType, nil
	}
	if t := d.types[r]; t != nil {
		return t, nil
	}
	if d.depth++; d.depth > maxTypedefs {
		d.depth--
		return &Type{}, nil
	}
	defer func() { d.depth-- }()
	name := ""
	align := int64(0)
	at := r
	for range maxTypedefs {
		e, err := at.entry()
		if err != nil {
			return nil, err
		}
		align = max(align, alignment(e))
		switch e.Tag {
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType, tagAtomicType, tagImmutableType:
			if name == "" {
				name = d.text(e, dwarf.AttrName)
			}
			next, ok := d.refOf(at.f, e, dwarf.AttrType)
			if !ok {
				t := &Type{Name: name}
				if e.AttrField(dwarf.AttrType) == nil {
					t = voidType
				}
				d.types[r] = t
				return t, nil
			}
			at = next
			continue
		}
		t, err := d.read(at, e)
		if err != nil {
			return nil, err
		}
		if name != "" || align != t.align {
			named := *t
			named.Name = cmp.Or(name, t.Name)
			named.align = align
			t = &named
		}
		d.types[r] = t
		return t, nil
	}
	return &Type{Name: name}, nil
}

const (
	tagAtomicType    = dwarf.Tag(0x47)
	tagImmutableType = dwarf.Tag(0x4B)
	attrGNUVector    = dwarf.Attr(0x2107)
	attrDataBit      = dwarf.Attr(0x6B)
	attrDeleted      = dwarf.Attr(0x8A)
	attrDefaulted    = dwarf.Attr(0x8B)
)

// read reads a type that is no typedef.
func (d *Debug) read(r ref, e *dwarf.Entry) (*Type, error) {
	t := &Type{Name: d.text(e, dwarf.AttrName), self: r}
	t.Size, _ = number(e, dwarf.AttrByteSize)
	t.Elem, _ = d.refOf(r.f, e, dwarf.AttrType)
	t.declared = flag(e, dwarf.AttrDeclaration)
	t.align = alignment(e)
	switch e.Tag {
	case dwarf.TagBaseType:
		t.base(e)
	case dwarf.TagPointerType, dwarf.TagPtrToMemberType:
		t.Kind = KindPointer
		if e.Tag == dwarf.TagPtrToMemberType {
			t.Kind = KindUnknown // one to a member function has two words
		}
		t.Size = 8
	case dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
		t.Kind, t.Size = KindReference, 8
	case dwarf.TagSubroutineType: // of Go: a pointer to a closure
		t.Kind, t.Size, t.Elem = KindPointer, 8, ref{}
	case dwarf.TagUnspecifiedType: // decltype(nullptr)
		t.Kind, t.Size, t.Elem = KindPointer, 8, ref{}
	case dwarf.TagEnumerationType:
		t.Kind, t.Enum = KindEnum, map[int64]string{}
		if under, err := d.typeOf(r.f, e); err == nil {
			t.Signed = under.Kind == KindInt || under.Kind == KindChar && under.Signed
			if t.Size == 0 {
				t.Size = under.Size
			}
		}
		return t, d.enumerators(t)
	case dwarf.TagArrayType:
		t.Kind = KindArray
		t.Vector = flag(e, attrGNUVector)
		return t, d.dimensions(t)
	case dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType:
		t.Kind = KindStruct
		t.union = e.Tag == dwarf.TagUnionType
		switch cc, _ := number(e, dwarf.AttrCalling); cc {
		case 4:
			t.byRef = 1
		case 5:
			t.byRef = -1
		}
		return t, d.members(t)
	}
	return t, nil
}

// DWARF 5 §7.8.
const (
	encodingBoolean      = 0x02
	encodingComplex      = 0x03
	encodingFloat        = 0x04
	encodingSigned       = 0x05
	encodingSignedChar   = 0x06
	encodingUnsigned     = 0x07
	encodingUnsignedChar = 0x08
	encodingDecimal      = 0x0F
	encodingUTF          = 0x10
)

func (t *Type) base(e *dwarf.Entry) {
	encoding, _ := number(e, dwarf.AttrEncoding)
	t.encoding = encoding
	switch {
	case t.Size != 1 && t.Size != 2 && t.Size != 4 && t.Size != 8:
		t.Kind = KindOther
	case encoding == encodingFloat && t.Size >= 4:
		t.Kind = KindFloat
	case encoding == encodingBoolean:
		t.Kind = KindBool
	case t.Size == 1 && (t.Name == "char" || encoding == encodingUTF):
		t.Kind, t.Signed = KindChar, encoding == encodingSignedChar
	case encoding == encodingSigned, encoding == encodingSignedChar:
		t.Kind, t.Signed = KindInt, true
	case encoding == encodingUnsigned, encoding == encodingUnsignedChar, encoding == encodingUTF:
		t.Kind = KindUint
	default:
		t.Kind = KindOther
	}
}

// isFloat says whether a base type is a floating-point number of another size than C has, or a decimal one.
func (t *Type) isFloat() bool {
	return t.encoding == encodingFloat && (t.Size == 2 || t.Size == 16) || t.encoding == encodingDecimal && (t.Size == 4 || t.Size == 8 || t.Size == 16)
}

// isComplex says whether it is a complex number.
func (t *Type) isComplex() bool {
	return t.encoding == encodingComplex && (t.Size == 4 || t.Size == 8 || t.Size == 16 || t.Size == 32)
}

// isWide says whether it is an integer of more than eight bytes.
func (t *Type) isWide() bool {
	return t.Size > 8 && (t.encoding == encodingSigned || t.encoding == encodingUnsigned)
}

// alignment is an entry's, 0 if it says nothing that can be one.
func alignment(e *dwarf.Entry) int64 {
	a, _ := number(e, dwarf.AttrAlignment)
	if a < 0 || a > maxAlignment || a&(a-1) != 0 {
		return 0
	}
	return a
}

// enumerators reads those of an enum.
func (d *Debug) enumerators(t *Type) error {
	return t.self.children(func(e *dwarf.Entry) error {
		if v, ok := number(e, dwarf.AttrConstValue); ok && e.Tag == dwarf.TagEnumerator && len(t.Enum) < maxMembers {
			if v < 0 {
				t.Signed = true
			}
			if t.Enum[v] == "" {
				t.Enum[v] = d.text(e, dwarf.AttrName)
			}
		}
		return nil
	})
}

// dimensions reads those of an array.
func (d *Debug) dimensions(t *Type) error {
	t.Count = 1
	err := t.self.children(func(e *dwarf.Entry) error {
		if e.Tag != dwarf.TagSubrangeType {
			return nil
		}
		n, ok := number(e, dwarf.AttrCount)
		if upper, has := number(e, dwarf.AttrUpperBound); !ok && has {
			n = upper + 1
		}
		if n < 0 || n > 1<<31 || t.Count > 1<<31 {
			n = 0
		}
		t.Count *= n
		return nil
	})
	if err != nil || t.Size != 0 {
		return err
	}
	if elem, err := d.typeAt(t.Elem); err == nil && elem.Size < 1<<31 {
		t.Size = elem.Size * t.Count
	}
	return nil
}

// members reads those of a struct.
func (d *Debug) members(t *Type) error {
	r := t.self
	return r.children(func(e *dwarf.Entry) error {
		switch e.Tag {
		case dwarf.TagMember, dwarf.TagInheritance:
			off, known := number(e, dwarf.AttrDataMemberLoc)
			if e.AttrField(dwarf.AttrDataMemberLoc) != nil && !known {
				t.special = t.special || e.Tag == dwarf.TagInheritance
				return nil // a virtual base's
			}
			if flag(e, dwarf.AttrExternal) || flag(e, dwarf.AttrDeclaration) || e.Val(dwarf.AttrConstValue) != nil || len(t.Fields) >= maxMembers {
				return nil // static
			}
			m := Member{Name: d.text(e, dwarf.AttrName), Off: off, Base: e.Tag == dwarf.TagInheritance}
			m.Bits = e.Val(dwarf.AttrBitSize) != nil || e.Val(attrDataBit) != nil
			m.Type, _ = d.refOf(r.f, e, dwarf.AttrType)
			m.align = alignment(e)
			if strings.HasPrefix(m.Name, "_vptr") {
				t.special = true
			}
			t.Fields = append(t.Fields, m)
		case dwarf.TagVariantPart:
			t.variant = true
		case dwarf.TagSubprogram:
			t.special = t.special || d.makesSpecial(t, r.f, e)
		}
		return nil
	})
}

// makesSpecial says whether a member function is a destructor, or a constructor that copies, which somebody has written: then the class is
// passed by reference (System V ABI, C++ ABI §3.1.1). DWARF 5 says so itself.
func (d *Debug) makesSpecial(t *Type, f *file, e *dwarf.Entry) bool {
	name := d.text(e, dwarf.AttrName)
	if flag(e, dwarf.AttrArtificial) || t.Name == "" {
		return false
	}
	base, _, _ := strings.Cut(t.Name, "<")
	switch how, _ := number(e, attrDefaulted); {
	case how == 1, flag(e, attrDeleted):
		return false
	case strings.HasPrefix(name, "~"):
		return true
	case name != base:
		return false
	}
	params := 0
	copies := false
	_ = ref{f, e.Offset}.children(func(p *dwarf.Entry) error {
		if p.Tag != dwarf.TagFormalParameter || flag(p, dwarf.AttrArtificial) {
			return nil
		}
		params++
		if r, ok := d.refOf(f, p, dwarf.AttrType); ok {
			if pe, err := r.entry(); err == nil && (pe.Tag == dwarf.TagReferenceType || pe.Tag == dwarf.TagRvalueReferenceType) {
				copies = copies || d.refersTo(r.f, pe, t.self)
			}
		}
		return nil
	})
	return copies && params == 1
}

// refersTo says whether a reference's type is of a class, qualifiers left out.
func (d *Debug) refersTo(f *file, e *dwarf.Entry, class ref) bool {
	for range maxChain {
		r, ok := d.refOf(f, e, dwarf.AttrType)
		if !ok {
			return false
		}
		if r == class {
			return true
		}
		next, err := r.entry()
		if err != nil || next.Tag != dwarf.TagConstType && next.Tag != dwarf.TagVolatileType {
			return false
		}
		f, e = r.f, next
	}
	return false
}

// passedByReference says whether a class is.
func (d *Debug) passedByReference(t *Type, depth int) bool {
	switch {
	case t.Kind != KindStruct || depth > maxChain:
		return false
	case t.byRef != 0:
		return t.byRef > 0
	case t.special:
		return true
	}
	for _, m := range t.Fields {
		if mt, err := d.typeAt(m.Type); err == nil {
			for range maxChain {
				if mt.Kind != KindArray {
					break
				}
				if mt, err = d.typeAt(mt.Elem); err != nil {
					return false
				}
			}
			if d.passedByReference(mt, depth+1) {
				return true
			}
		}
	}
	return false
}
