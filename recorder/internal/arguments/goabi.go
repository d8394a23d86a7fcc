package arguments

import (
	"fmt"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// goReturnSize is what lies on the stack in front of the arguments there: the return address, or, on arm64, the place for it.
const goReturnSize = 8

// goABI gives a Go function's arguments, or its results, their places, one after the other. All of a value is in registers, or none of it.
type goABI struct {
	d       *Debug
	ints    int
	vectors int
	stack   int64
	unknown bool
}

// value gives the next one its place.
func (a *goABI) value(t *Type) place {
	if a.unknown {
		return place{why: "an argument before it has a type that isn't understood"}
	}
	ints, vectors := a.ints, a.vectors
	var p place
	fits, err := a.assign(t, 0, &p, 0)
	switch {
	case err != nil:
		a.unknown = true
		return place{why: err.Error()}
	case fits && len(p.pieces) == 0:
		return place{why: "it is empty"}
	case fits:
		return p
	}
	a.ints, a.vectors = ints, vectors
	if t.Size < 0 || t.Size > maxStack || a.stack > maxStack {
		a.unknown = true
		return place{why: "it is too large"}
	}
	to := a.d.goAlign(t, 0)
	a.stack = (a.stack + to - 1) &^ (to - 1)
	p = inMemory(stub.OriginStack, 0, goReturnSize+a.stack)
	a.stack += t.Size
	return p
}

// assign gives the parts of a value registers.
func (a *goABI) assign(t *Type, off int64, p *place, depth int) (fits bool, err error) {
	if depth > maxChain || off < 0 || off > maxStack {
		return false, fmt.Errorf("type %q isn't understood", t.Name)
	}
	switch t.Kind {
	case KindInt, KindUint, KindBool, KindChar, KindEnum, KindPointer, KindReference:
		if a.ints >= len(a.d.abi.golang) {
			return false, nil
		}
		p.pieces = append(p.pieces, piece{off, t.Size, stub.Operand{Reg: a.d.abi.golang[a.ints]}})
		a.ints++
		return true, nil
	case KindFloat:
		if a.vectors >= a.d.abi.goVectors {
			return false, nil
		}
		p.pieces = append(p.pieces, piece{off, t.Size, stub.Operand{Origin: stub.OriginVector, Vector: uint8(a.vectors)}})
		a.vectors++
		return true, nil
	case KindStruct:
		if t.declared {
			return false, fmt.Errorf("type %q isn't defined there", t.Name)
		}
		for _, m := range t.Fields {
			mt, err := a.d.typeAt(m.Type)
			if err != nil {
				return false, err
			}
			if fits, err := a.assign(mt, off+m.Off, p, depth+1); !fits || err != nil {
				return false, err
			}
		}
		return true, nil
	case KindArray:
		switch t.Count {
		case 0:
			return true, nil
		case 1:
			elem, err := a.d.typeAt(t.Elem)
			if err != nil {
				return false, err
			}
			return a.assign(elem, off, p, depth+1)
		}
		return false, nil
	}
	return false, fmt.Errorf("type %q isn't understood", t.Name)
}

// goAlign is a type's alignment.
func (d *Debug) goAlign(t *Type, depth int) int64 {
	to := int64(1)
	switch {
	case depth > maxChain:
		return 8
	case t.Kind == KindStruct:
		for _, m := range t.Fields {
			if mt, err := d.typeAt(m.Type); err == nil {
				to = max(to, d.goAlign(mt, depth+1))
			}
		}
	case t.Kind == KindArray:
		if elem, err := d.typeAt(t.Elem); err == nil {
			to = d.goAlign(elem, depth+1)
		}
	default:
		for to < t.Size && to < 8 {
			to *= 2
		}
	}
	return to
}
