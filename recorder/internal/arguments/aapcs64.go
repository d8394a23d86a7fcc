package arguments

import (
	"fmt"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// aapcs64 is that of arm64: the Procedure Call Standard for the Arm 64-bit Architecture (IHI 0055), DWARF's numbers (IHI 0057 §4.1), and Go's
// registers (cmd/compile/abi-internal.md).
var aapcs64 = &abi{
	name:        "AAPCS64",
	integers:    registersTo(7),
	results:     registersTo(1),
	vectors:     vectorArguments,
	golang:      registersTo(15),
	goVectors:   16,
	sp:          31,
	firstVector: 64,
	lastVector:  95,
	dwarf:       registersTo(31),
	place:       (*Debug).placeAAPCS64,
	result:      (*Debug).resultAAPCS64,
}

// registersTo are x0 and those that follow it.
func registersTo(last isa.Reg) (list []isa.Reg) {
	for r := isa.Reg(0); r <= last; r++ {
		list = append(list, r)
	}
	return list
}

const (
	vectorArguments = 8
	// inRegisters is how long a composite that isn't homogeneous may be, in bytes, to be passed in general registers (rule B.4).
	inRegisters = 16
	doubleWord  = 8
	quadWord    = 16
)

// aapcs gives arguments their places (§6.8.2). Its fields are the standard's NGRN, NSRN and NSAA.
type aapcs struct {
	d          *Debug
	ngrn, nsrn int
	nsaa       int64
	guessing   bool // one before wasn't understood, so that nothing is known of the following ones
}

func (d *Debug) placeAAPCS64(s *Signature, _ *Type) {
	a := &aapcs{d: d} // where a large result goes is told in x8, which no argument takes
	for i := range s.params {
		if s.rust {
			s.params[i].p = a.rust(s.params[i].t)
		} else {
			s.params[i].p = a.argument(s.params[i].t)
		}
	}
}

// argument gives the next argument its place at the function's entry. Arguments that aren't named come behind those that are, and so take
// nothing from them.
func (a *aapcs) argument(t *Type) place {
	if a.guessing {
		return place{why: "an argument before it has a type that isn't understood"}
	}
	if a.d.passedByReference(t, 0) { // C++ ABI for the Arm 64-bit Architecture (IHI 0059) §3.2.1
		return a.reference()
	}
	k, err := a.d.shape(t)
	switch {
	case err != nil:
		a.guessing = true
		return place{why: err.Error()}
	case k.size == 0:
		return place{why: "it is empty"}
	case k.vectors > 0:
		return a.inVectors(k)
	case k.size > inRegisters: // B.4
		return a.reference()
	}
	return a.inGeneral(k)
}

// inVectors are rules C.1 to C.6.
func (a *aapcs) inVectors(k shape) place {
	if a.nsrn+k.vectors > vectorArguments {
		a.nsrn = vectorArguments
		return a.onStack(k.size, k.align)
	}
	var p place
	for i := range k.vectors {
		p.pieces = append(p.pieces, piece{int64(i) * k.each, k.each, stub.Operand{Origin: stub.OriginVector, Vector: uint8(a.nsrn)}})
		a.nsrn++
	}
	return p
}

// inGeneral are rules C.9 to C.17.
func (a *aapcs) inGeneral(k shape) place {
	all := a.d.abi.integers
	n := int((k.size + doubleWord - 1) / doubleWord)
	if k.align >= quadWord {
		a.ngrn = (a.ngrn + 1) &^ 1
	}
	if a.ngrn+n > len(all) {
		a.ngrn = len(all)
		return a.onStack(k.size, k.align)
	}
	var p place
	for at := int64(0); at < k.size; at += doubleWord {
		p.pieces = append(p.pieces, piece{at, min(k.size-at, doubleWord), stub.Operand{Reg: all[a.ngrn]}})
		a.ngrn++
	}
	return p
}

// reference gives an argument a place in memory whose address is an argument in its stead.
func (a *aapcs) reference() place {
	p := a.inGeneral(shape{size: doubleWord, align: doubleWord})
	o := stub.Operand{Memory: true}
	switch {
	case p.why != "":
		return p
	case p.memory != nil: // the address itself is in memory
		o = *p.memory
		o.Path, o.Off = []int32{o.Off}, 0
	default:
		o.Reg = p.pieces[0].operand.Reg
	}
	return place{memory: &o}
}

// onStack gives an argument a place in memory: at the stack pointer and above it, in their order.
func (a *aapcs) onStack(size, align int64) place {
	if size < 0 || size > maxStack || a.nsaa > maxStack {
		a.guessing = true
		return place{why: "it is too large"}
	}
	to := int64(doubleWord)
	if align >= quadWord {
		to = quadWord
	}
	a.nsaa = (a.nsaa + to - 1) &^ (to - 1)
	p := inMemory(stub.OriginStack, 0, a.nsaa)
	a.nsaa += (size + doubleWord - 1) &^ (doubleWord - 1)
	return p
}

// resultAAPCS64 is where the result stands at the function's return: as if it were the only argument (§6.9). A large one is in memory, whose address
// was in x8 at the entry, and needn't be anywhere at the return.
func (d *Debug) resultAAPCS64(s *Signature, t *Type) place {
	if t.Kind == KindVoid {
		return place{why: "the function returns nothing"}
	}
	if d.passedByReference(t, 0) {
		return inMemory(stub.OriginResult, 0, 0)
	}
	if k, err := d.shape(t); err == nil && k.vectors == 0 && k.size > inRegisters {
		return inMemory(stub.OriginResult, 0, 0)
	}
	a := &aapcs{d: d}
	if s.rust {
		return a.rust(t)
	}
	return a.argument(t)
}

// notUnderstood is the error for a type.
func notUnderstood(t *Type) error { return fmt.Errorf("type %q isn't understood", t.Name) }
