package arguments

import "slices"

// Rust has no ABI that it keeps to, but what rustc does goes by what a type comes down to: one number, or two, are passed as such, each for
// itself; what is longer than two words is passed by reference. Of the rest it isn't known: it has changed from version to version.

// rust gives the next argument of a Rust function its place.
func (a *aapcs) rust(t *Type) place {
	if a.guessing || t.Kind != KindStruct {
		return a.argument(t)
	}
	var parts []rustPart
	ok := !t.declared && !t.variant && !t.union && a.d.rustParts(t, 0, &parts, 0)
	switch {
	case ok && len(parts) == 0 || t.Size == 0:
		return place{why: "it is empty"}
	case t.Size > inRegisters:
		return a.reference()
	case !ok || len(parts) > 2:
		a.guessing = true
		return place{why: "how Rust passes it isn't known"}
	}
	slices.SortFunc(parts, func(a, b rustPart) int { return int(a.off - b.off) })
	var all place
	for _, part := range parts {
		p := a.argument(part.t)
		if p.why != "" || p.memory != nil { // of two, one may be in a register, and the other on the stack
			if len(parts) == 1 {
				return p
			}
			all.why = "it is in a register and in memory"
			continue
		}
		for _, piece := range p.pieces {
			piece.at += part.off
			all.pieces = append(all.pieces, piece)
		}
	}
	if all.why != "" {
		return place{why: all.why}
	}
	return all
}

// rustPart is a number of a type.
type rustPart struct {
	off int64
	t   *Type
}

// rustParts lists the numbers that a type comes down to; false is for what isn't a struct of numbers, or has more than two.
func (d *Debug) rustParts(t *Type, off int64, parts *[]rustPart, depth int) bool {
	if depth > maxChain || len(*parts) > 2 || t.declared || t.variant || t.union {
		return false
	}
	switch t.Kind {
	case KindStruct:
		for _, m := range t.Fields {
			mt, err := d.typeAt(m.Type)
			if err != nil || m.Bits || !d.rustParts(mt, off+m.Off, parts, depth+1) {
				return false
			}
		}
		return true
	case KindInt, KindUint, KindBool, KindChar, KindEnum, KindPointer, KindReference, KindFloat:
		*parts = append(*parts, rustPart{off, t})
		return true
	case KindArray:
		return t.Size == 0
	}
	return false
}
