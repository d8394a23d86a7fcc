package arguments

// Declared are a function's arguments and its result as debug information has them. more says that the function takes arguments that
// aren't named, known that there is debug information. The result is nil where that doesn't tell.
func (s *Signature) Declared() (params []Declaration, more bool, result *Type, known bool) {
	if s.d == nil || s.golang || s.asm {
		return nil, false, nil, false
	}
	for _, p := range s.params {
		params = append(params, Declaration{p.name, p.t})
	}
	if len(s.results) > 0 {
		result = s.results[0].t
	}
	return params, s.more, result, true
}

// A Declaration is an argument as debug information has it.
type Declaration struct {
	Name string
	Type *Type
}

// PointsToText says whether a type is a pointer to characters.
func (s *Signature) PointsToText(t *Type) bool {
	if s.d == nil || t == nil || t.Kind != KindPointer || t.Elem.f == nil {
		return false
	}
	text := false
	err := catchPanics(s.d.name, func() error {
		elem, err := s.d.typeAt(t.Elem)
		text = err == nil && elem.Kind == KindChar && elem.Size == 1
		return nil
	})
	return err == nil && text
}
