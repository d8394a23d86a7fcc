package arguments

import (
	"fmt"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// place is where a value stands: in registers, piece by piece, or in memory.
type place struct {
	pieces []piece
	// memory is where it begins: Off bytes from where Path leads.
	memory *stub.Operand
	why    string // it is not known where, and this is why
}

// piece is a register that has Size bytes of a value, from its byte At on.
type piece struct {
	at, size int64
	operand  stub.Operand
}

func inMemory(origin stub.Origin, r amd64.Reg, off int64) place {
	return place{memory: &stub.Operand{Origin: origin, Reg: isa.Reg(r), Memory: true, Off: int32(off)}}
}

// The registers of arguments and results (System V AMD64 ABI §3.2.3).
var (
	argumentRegs = []amd64.Reg{amd64.RDI, amd64.RSI, amd64.RDX, amd64.RCX, amd64.R8, amd64.R9}
	resultRegs   = []amd64.Reg{amd64.RAX, amd64.RDX}
)

const argumentVectors = 8

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
	if a.ints+ints > len(argumentRegs) || a.vectors+vectors > argumentVectors {
		return a.onStack(t.Size, 8)
	}
	var p place
	for i, k := range c {
		at := int64(8 * i)
		size := min(t.Size-at, 8)
		switch k {
		case classInteger:
			p.pieces = append(p.pieces, piece{at, size, stub.Operand{Reg: isa.Reg(argumentRegs[a.ints])}})
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
	if a.ints >= len(argumentRegs) {
		return a.onStack(8, 8)
	}
	a.ints++
	return place{pieces: []piece{{0, 8, stub.Operand{Reg: isa.Reg(argumentRegs[a.ints-1])}}}}
}

// onStack gives an argument a place in memory: above the return address, in their order.
func (a *sysV) onStack(size, alignment int64) place {
	if size < 0 || a.stack > maxStack || size > maxStack {
		a.guessing = true
		return place{why: "it is too large"}
	}
	a.stack = (a.stack + alignment - 1) &^ (alignment - 1)
	p := inMemory(stub.OriginStack, 0, 8+a.stack)
	a.stack += (size + 7) &^ 7
	return p
}

const maxStack = 1 << 20

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

// result is where the result stands at the function's return.
func (d *Debug) result(t *Type) place {
	hidden, err := d.hidden(t)
	switch {
	case t.Kind == KindVoid:
		return place{why: "the function returns nothing"}
	case err != nil:
		return place{why: err.Error()}
	case hidden:
		return inMemory(stub.OriginReg, amd64.RAX, 0)
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
			p.pieces = append(p.pieces, piece{at, size, stub.Operand{Reg: isa.Reg(resultRegs[ints])}})
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

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
