package arguments

import (
	"fmt"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// systemV is that of x86-64: the registers of arguments and results (System V AMD64 ABI §3.2.3), DWARF's numbers (figure 3.36), and Go's
// registers (cmd/compile/abi-internal.md).
var systemV = &abi{
	name:        "the System V ABI",
	integers:    regs(amd64.RDI, amd64.RSI, amd64.RDX, amd64.RCX, amd64.R8, amd64.R9),
	results:     regs(amd64.RAX, amd64.RDX),
	vectors:     8,
	returnSize:  8,
	golang:      regs(amd64.RAX, amd64.RBX, amd64.RCX, amd64.RDI, amd64.RSI, amd64.R8, amd64.R9, amd64.R10, amd64.R11),
	goVectors:   15,
	sp:          isa.Reg(amd64.RSP),
	firstVector: 17,
	lastVector:  32,
	dwarf: regs(amd64.RAX, amd64.RDX, amd64.RCX, amd64.RBX, amd64.RSI, amd64.RDI, amd64.RBP, amd64.RSP,
		amd64.R8, amd64.R9, amd64.R10, amd64.R11, amd64.R12, amd64.R13, amd64.R14, amd64.R15),
	place:  (*Debug).placeSysV,
	result: (*Debug).resultSysV,
}

func regs(list ...amd64.Reg) []isa.Reg {
	all := make([]isa.Reg, len(list))
	for i, r := range list {
		all[i] = isa.Reg(r)
	}
	return all
}

// class is that of an eightbyte.
type class uint8

const (
	classNone class = iota
	classSSE
	classInteger
	classMemory
)

// sysV gives arguments their places.
type sysV struct {
	d        *Debug
	ints     int
	vectors  int
	stack    int64 // bytes of arguments in memory so far
	guessing bool  // one before wasn't understood, so that nothing is known of the following ones
}

// classify finds the classes of a type's eightbytes.
func (d *Debug) classify(t *Type) ([2]class, error) {
	var c [2]class
	if t.Size > 16 {
		c[0] = classMemory
		return c, nil
	}
	err := d.merge(t, 0, &c, 0)
	if c[0] == classMemory || c[1] == classMemory {
		c = [2]class{classMemory}
	}
	return c, err
}

// merge adds the classes of a type that stands at an offset.
func (d *Debug) merge(t *Type, off int64, c *[2]class, depth int) error {
	if depth > maxChain || off < 0 || off+t.Size > 16 {
		return fmt.Errorf("type %q isn't understood", t.Name)
	}
	put := func(k class) {
		if t.Size > 0 && off%min(t.Size, 8) != 0 {
			k = classMemory // unaligned
		}
		for i := off / 8; i < 2 && i*8 < off+max(t.Size, 1); i++ {
			c[i] = max(c[i], k)
		}
	}
	switch t.Kind {
	case KindInt, KindUint, KindBool, KindChar, KindEnum, KindPointer, KindReference:
		if t.Size < 1 || t.Size > 8 {
			return fmt.Errorf("type %q of %d bytes isn't understood", t.Name, t.Size)
		}
		put(classInteger)
	case KindFloat:
		put(classSSE)
	case KindStruct:
		if t.declared {
			return fmt.Errorf("type %q isn't defined there", t.Name)
		}
		for _, m := range t.Fields {
			mt, err := d.typeAt(m.Type)
			if err != nil {
				return err
			}
			if m.Bits {
				whole := *mt
				if whole.Size = min(whole.Size, t.Size); whole.Size == 0 {
					continue
				}
				for i := m.Off / 8; i < 2 && i*8 < m.Off+1; i++ {
					c[i] = max(c[i], classInteger)
				}
				continue
			}
			if mt.Kind == KindStruct && len(mt.Fields) == 0 {
				continue // an empty base
			}
			if err := d.merge(mt, off+m.Off, c, depth+1); err != nil {
				return err
			}
		}
	case KindArray:
		elem, err := d.typeAt(t.Elem)
		if err != nil {
			return err
		}
		if t.Vector || elem.Size <= 0 {
			return fmt.Errorf("type %q isn't understood", t.Name)
		}
		for i := int64(0); i < t.Count && i < 16; i++ {
			if err := d.merge(elem, off+i*elem.Size, c, depth+1); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("type %q isn't understood", t.Name)
	}
	return nil
}

// align is a type's alignment, as far as the stack goes: 16 for the widest, else 8.
func align(t *Type) int64 {
	if t.Kind == KindOther && t.Size == 16 {
		return 16
	}
	return 8
}

// argument gives the next argument its place at the function's entry.
func (a *sysV) argument(t *Type) place {
	if a.guessing {
		return place{why: "an argument before it has a type that isn't understood"}
	}
	byRef := a.d.passedByReference(t, 0)
	if byRef {
		r := a.integer()
		if r.memory != nil { // the pointer itself is in memory
			r.memory.Path, r.memory.Off = append(r.memory.Path, r.memory.Off), 0
			return r
		}
		o := r.pieces[0].operand
		o.Memory = true
		return place{memory: &o}
	}
	if t.Kind == KindOther && t.Size == 16 && t.Name == "long double" {
		return a.onStack(16, 16)
	}
	c, err := a.d.classify(t)
	switch {
	case err != nil:
		a.guessing = true
		return place{why: err.Error()}
	case t.Size == 0, c[0] == classNone && c[1] == classNone:
		return place{why: "it is empty"}
	case c[0] == classMemory:
		return a.onStack(t.Size, align(t))
	}
	ints, vectors := 0, 0
	for _, k := range c {
		ints += btoi(k == classInteger)
		vectors += btoi(k == classSSE)
	}
	if a.ints+ints > len(a.d.abi.integers) || a.vectors+vectors > a.d.abi.vectors {
		return a.onStack(t.Size, 8)
	}
	var p place
	for i, k := range c {
		at := int64(8 * i)
		size := min(t.Size-at, 8)
		switch k {
		case classInteger:
			p.pieces = append(p.pieces, piece{at, size, stub.Operand{Reg: a.d.abi.integers[a.ints]}})
			a.ints++
		case classSSE:
			p.pieces = append(p.pieces, piece{at, size, stub.Operand{Origin: stub.OriginVector, Vector: uint8(a.vectors)}})
			a.vectors++
		}
	}
	return p
}

// integer gives a pointer its place.
func (a *sysV) integer() place {
	if a.ints >= len(a.d.abi.integers) {
		return a.onStack(8, 8)
	}
	a.ints++
	return place{pieces: []piece{{0, 8, stub.Operand{Reg: a.d.abi.integers[a.ints-1]}}}}
}

// onStack gives an argument a place in memory: above the return address, in their order.
func (a *sysV) onStack(size, alignment int64) place {
	if size < 0 || a.stack > maxStack || size > maxStack {
		a.guessing = true
		return place{why: "it is too large"}
	}
	a.stack = (a.stack + alignment - 1) &^ (alignment - 1)
	p := inMemory(stub.OriginStack, 0, a.d.abi.returnSize+a.stack)
	a.stack += (size + 7) &^ 7
	return p
}

// hidden says whether the result is stored where the first argument, which isn't in the source, says.
func (d *Debug) hidden(t *Type) (bool, error) {
	if t.Kind == KindVoid {
		return false, nil
	}
	if d.passedByReference(t, 0) {
		return true, nil
	}
	if t.Kind == KindOther {
		if t.Size > 16 {
			return true, nil
		}
		return false, nil
	}
	c, err := d.classify(t)
	return c[0] == classMemory, err
}

// resultSysV is where the result stands at the function's return.
func (d *Debug) resultSysV(_ *Signature, t *Type) place {
	hidden, err := d.hidden(t)
	switch {
	case t.Kind == KindVoid:
		return place{why: "the function returns nothing"}
	case err != nil:
		return place{why: err.Error()}
	case hidden:
		return inMemory(stub.OriginReg, d.abi.results[0], 0)
	}
	c, err := d.classify(t)
	if err != nil {
		return place{why: err.Error()}
	}
	var p place
	ints, vectors := 0, uint8(0)
	for i, k := range c {
		at := int64(8 * i)
		size := min(t.Size-at, 8)
		switch k {
		case classInteger:
			p.pieces = append(p.pieces, piece{at, size, stub.Operand{Reg: d.abi.results[ints]}})
			ints++
		case classSSE:
			p.pieces = append(p.pieces, piece{at, size, stub.Operand{Origin: stub.OriginVector, Vector: vectors}})
			vectors++
		}
	}
	if len(p.pieces) == 0 {
		return place{why: "it is empty"}
	}
	return p
}

func (d *Debug) placeSysV(s *Signature, result *Type) {
	a := &sysV{d: d}
	hidden, err := d.hidden(result)
	if err != nil {
		a.guessing = true // there may be a first argument that isn't in the list
	}
	if hidden {
		a.integer()
	}
	for i := range s.params {
		s.params[i].p = a.argument(s.params[i].t)
	}
}
