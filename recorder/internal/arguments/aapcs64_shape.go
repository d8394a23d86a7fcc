package arguments

// shape is what AAPCS64 goes by of a type.
type shape struct {
	size, align int64 // bytes; align is that of an argument, see natural
	// vectors is how many vector registers it takes, and each how many bytes of it are in one: of a floating-point number, a short vector, or
	// an aggregate of up to four such that are the same (§5.9.5). It is 0 for all others.
	vectors int
	each    int64
}

// Bounds of homogeneous aggregates, and the sizes of short vectors (§5.4, §5.9.5).
const (
	mostElements      = 4
	shortVector       = 8
	longerShortVector = 16
	maxFields         = 64 // that are looked at of a composite of up to 64 bytes
)

// shape finds a type's.
func (d *Debug) shape(t *Type) (k shape, err error) {
	k.size = t.Size
	switch t.Kind {
	case KindInt, KindUint, KindBool, KindChar, KindEnum, KindPointer, KindReference:
		if t.Size < 1 || t.Size > doubleWord {
			return k, notUnderstood(t)
		}
	case KindFloat:
	case KindOther:
		if !t.isFloat() && !t.isComplex() && !(t.isWide() && t.Size == quadWord) {
			return k, notUnderstood(t)
		}
	case KindStruct:
		if t.declared || t.Size > 0 && len(t.Fields) == 0 && t.variant {
			return k, notUnderstood(t)
		}
		if err := d.known(t, 0); err != nil {
			return k, err
		}
	case KindArray:
		if t.Vector && t.Size != shortVector && t.Size != longerShortVector || t.Size <= 0 {
			return k, notUnderstood(t)
		}
	default:
		return k, notUnderstood(t)
	}
	k.align = d.natural(t, 0)
	var e element
	if n, ok := d.elements(t, &e, 0); ok && n >= 1 && n <= mostElements && n*e.size == t.Size {
		k.vectors, k.each = int(n), e.size
	}
	return k, nil
}

// known returns an error for a composite in which there is what isn't understood, and which may be passed in registers.
func (d *Debug) known(t *Type, depth int) error {
	if depth > maxChain {
		return notUnderstood(t)
	}
	if t.Size > mostElements*quadWord { // by reference, whatever is in it
		return nil
	}
	if len(t.Fields) > maxFields {
		return nil // it isn't homogeneous
	}
	for _, m := range t.Fields {
		mt, err := d.typeAt(m.Type)
		if err != nil {
			return err
		}
		for range maxChain {
			if mt.Kind != KindArray || mt.Vector {
				break
			}
			if mt, err = d.typeAt(mt.Elem); err != nil {
				return err
			}
		}
		switch {
		case mt.Kind == KindUnknown, mt.Kind == KindVoid, mt.declared:
			return notUnderstood(t)
		case mt.Kind == KindStruct:
			if err := d.known(mt, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// element is what a homogeneous aggregate consists of.
type element struct {
	size   int64
	vector bool
}

// elements counts those of a type. They must all be as e is, which is set by the first.
func (d *Debug) elements(t *Type, e *element, depth int) (n int64, ok bool) {
	are := func(n, size int64, vector bool) (int64, bool) {
		if e.size == 0 {
			*e = element{size, vector}
		}
		return n, size > 0 && *e == element{size, vector}
	}
	switch {
	case depth > maxChain:
		return 0, false
	case t.Kind == KindFloat, t.Kind == KindOther && t.isFloat():
		return are(1, t.Size, false)
	case t.Kind == KindOther && t.isComplex():
		return are(2, t.Size/2, false)
	case t.Kind == KindArray && t.Vector:
		if t.Size != shortVector && t.Size != longerShortVector {
			return 0, false
		}
		return are(1, t.Size, true)
	case t.Kind == KindArray:
		elem, err := d.typeAt(t.Elem)
		if err != nil || t.Count < 0 || t.Count > mostElements {
			return 0, false
		}
		n, ok = d.elements(elem, e, depth+1)
		return n * t.Count, ok && n <= mostElements
	case t.Kind == KindStruct && len(t.Fields) <= maxFields:
		return d.elementsOfFields(t, e, depth)
	}
	return 0, false
}

// elementsOfFields counts those of a struct, or the most that a member of a union has.
func (d *Debug) elementsOfFields(t *Type, e *element, depth int) (n int64, ok bool) {
	for _, m := range t.Fields {
		mt, err := d.typeAt(m.Type)
		if err != nil || m.Bits {
			return 0, false
		}
		if mt.Kind == KindStruct && len(mt.Fields) == 0 && !mt.declared {
			continue // an empty base
		}
		k, same := d.elements(mt, e, depth+1)
		if !same || k > mostElements || n > mostElements {
			return 0, false
		}
		if t.union {
			n = max(n, k)
		} else {
			n += k
		}
	}
	// Nothing but these may be in it.
	return n, n > 0 && n*e.size == t.Size
}

// natural is a type's natural alignment, in bytes: what has been said of its own alignment in the source counts for members only (§5.9.1,
// §6.8.2 B.6).
func (d *Debug) natural(t *Type, depth int) int64 {
	switch {
	case depth > maxChain:
		return doubleWord
	case t.Kind == KindOther && t.isComplex():
		return max(t.Size/2, 1)
	case t.Kind == KindArray && !t.Vector:
		elem, err := d.typeAt(t.Elem)
		if err != nil {
			return doubleWord
		}
		return d.aligned(elem, depth+1)
	case t.Kind == KindStruct:
		to := int64(1)
		for i, m := range t.Fields {
			if i >= maxFields {
				break
			}
			mt, err := d.typeAt(m.Type)
			if err != nil {
				continue
			}
			if a := max(m.align, d.aligned(mt, depth+1)); m.Off%a == 0 && t.Size%a == 0 { // else it is packed
				to = max(to, a)
			}
		}
		return to
	}
	return max(t.Size, 1)
}

// aligned is a type's alignment as a member.
func (d *Debug) aligned(t *Type, depth int) int64 { return max(t.align, d.natural(t, depth)) }
