package arguments

import (
	"errors"
	"fmt"
)

// IntegerResult returns how many bits of the register for results hold what the function returns, and whether it is signed. known is false
// where there is no debug information: then nothing is said against its being an int. The error says why it can't be compared with a number.
func (s *Signature) IntegerResult() (bits int, signed, known bool, err error) {
	if s.d == nil || len(s.results) == 0 {
		if s.d != nil {
			return 0, false, true, errors.New("it returns nothing")
		}
		return 32, true, false, nil
	}
	t := s.results[0].t
	if t == nil {
		return 32, true, false, nil
	}
	switch t.Kind {
	case KindVoid:
		return 0, false, true, errors.New("it returns nothing")
	case KindUnknown:
		return 32, true, false, nil
	case KindInt:
		signed = true
	case KindEnum, KindChar:
		signed = t.Signed
	case KindBool, KindUint, KindPointer, KindReference:
	default:
		return 0, false, true, fmt.Errorf("it returns %s, which is no integer", t.Name)
	}
	bits = int(8 * t.Size)
	if t.Kind == KindPointer || t.Kind == KindReference {
		bits = 64
	}
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		return 0, false, true, fmt.Errorf("what it returns has %d bits", bits)
	}
	return bits, signed, true, nil
}
