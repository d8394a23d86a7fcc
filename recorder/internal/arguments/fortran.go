package arguments

import (
	"debug/dwarf"
	"slices"

	"github.com/callreel/callreel/internal/leb128"
)

// isFortran says whether a unit is in Fortran (DWARF 5 §7.12).
func isFortran(unit *dwarf.Entry) bool {
	language, _ := number(unit, dwarf.AttrLanguage)
	return slices.Contains([]uint64{0x07, 0x08, 0x0e, 0x22, 0x23, 0x2d}, uint64(language))
}

// byReference makes arguments that Fortran passes by reference, which is all but those with the VALUE attribute, references: gfortran gives
// them the types of what they refer to. Which they are only the places tell that the function's instance has for them.
func (d *Debug) byReference(s *Signature, abstract, concrete ref, unit *dwarf.Entry, low uint64) {
	value := map[string]bool{}
	_ = concrete.children(func(e *dwarf.Entry) error { // what can't be read is none by value
		if e.Tag != dwarf.TagFormalParameter {
			return nil
		}
		_, list, err := d.chain(ref{concrete.f, e.Offset})
		if err != nil {
			return err
		}
		for _, c := range list {
			if name := d.text(c, dwarf.AttrName); name != "" {
				_, inRegister := d.entryRegister(concrete.f, unit, e, low)
				expr, _ := e.Val(dwarf.AttrLocation).([]byte)
				value[name] = inRegister || isOnFrame(expr) || flag(c, dwarf.AttrArtificial) // such as lengths of strings
				break
			}
		}
		return nil
	})
	k := 0
	_ = abstract.children(func(e *dwarf.Entry) error {
		if e.Tag != dwarf.TagFormalParameter || k >= len(s.params) {
			return nil
		}
		p := &s.params[k]
		if k++; value[p.name] || p.t.Kind == KindReference || p.t.Kind == KindPointer {
			return nil
		}
		refs, list, err := d.chain(ref{abstract.f, e.Offset})
		if err != nil {
			return err
		}
		for i, c := range list {
			if elem, ok := d.refOf(refs[i].f, c, dwarf.AttrType); ok {
				p.t = &Type{Kind: KindReference, Name: p.t.Name, Size: 8, Elem: elem}
				break
			}
		}
		return nil
	})
}

// isOnFrame says whether an expression is but a place on the function's frame (DW_OP_fbreg), and not what is at the address there.
func isOnFrame(expr []byte) bool {
	const opFrame = 0x91
	if len(expr) < 2 || expr[0] != opFrame {
		return false
	}
	return leb128.Skip(expr, 1) == len(expr)
}
