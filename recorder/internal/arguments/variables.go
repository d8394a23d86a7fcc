package arguments

import (
	"cmp"
	"debug/dwarf"
	"encoding/binary"

	"github.com/callreel/callreel/internal/leb128"
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Variable is what debug information says of what is in a place.
type Variable struct {
	Name, Type string
	Kind       TypeKind
	Size       int64 // bytes
	Signed     bool  // of an enum
	Enum       map[int64]string
}

// Frame says where the canonical frame address is: so far above a register. Known is false where no call frame information says so.
type Frame struct {
	Reg   uint16 // its number in DWARF
	Off   int64
	Known bool
}

// spot is a variable in sight of some code, and where it is there.
type spot struct {
	depth int // of the block that it is of, the function's own being 1; 0 outside
	where stub.Operand
	frame bool // Off of where is from the canonical frame address
	r     ref
}

// Bounds of what is looked at for one address.
const (
	maxEntries = 1 << 20
	maxSpots   = 4096
	maxScopes  = 64
)

// Variable finds the variable that is, at the instruction at a link address, where an operand says; of several the one of the innermost block.
// Addresses of operands are link addresses. What is damaged, or isn't known, is false.
func (d *Debug) Variable(pc uint64, o *stub.Operand, frame Frame) (v Variable, ok bool) {
	if d == nil || len(o.Path) > 0 || o.Scale > 0 {
		return v, false
	}
	spots, known := d.spots[pc]
	if !known {
		if err := catchPanics(d.name, func() (err error) { spots, err = d.inSight(pc); return err }); err != nil {
			spots = nil
		}
		d.spots[pc] = spots
	}
	depth := -1
	for _, s := range spots {
		if s.depth > depth && s.is(o, frame, d.abi) {
			if found, err := d.describe(s.r); err == nil {
				v, ok, depth = found, true, s.depth
			}
		}
	}
	return v, ok
}

// is says whether a variable is where an operand says.
func (s *spot) is(o *stub.Operand, frame Frame, regs *abi) bool {
	w := &s.where
	switch {
	case w.Memory != o.Memory || o.Shift != 0:
		return false
	case !w.Memory:
		return w.Origin == o.Origin && w.Reg == o.Reg && w.Vector == o.Vector
	case o.Origin == stub.OriginAddress || w.Origin == stub.OriginAddress:
		return o.Origin == w.Origin && !s.frame && o.Addr == w.Addr
	}
	off, from := int64(o.Off), regs.base(o)
	if !s.frame {
		return from == regs.base(w) && off == int64(w.Off)
	}
	return frame.Known && int(frame.Reg) < len(regs.dwarf) && from == regs.dwarf[frame.Reg] && off-frame.Off == int64(w.Off)
}

// base is the register that an operand in memory goes by.
func (a *abi) base(o *stub.Operand) isa.Reg {
	if o.Origin == stub.OriginStack {
		return a.sp
	}
	return o.Reg
}

// describe reads a variable's name and type.
func (d *Debug) describe(r ref) (v Variable, err error) {
	err = catchPanics(d.name, func() error {
		refs, list, err := d.chain(r)
		if err != nil {
			return err
		}
		var t *Type
		for i, e := range list {
			v.Name = cmp.Or(v.Name, d.text(e, dwarf.AttrName))
			if t == nil && e.AttrField(dwarf.AttrType) != nil {
				if t, err = d.typeOf(refs[i].f, e); err != nil {
					return err
				}
			}
		}
		if t == nil {
			return ErrNoDebug
		}
		v.Type, v.Kind, v.Size, v.Signed, v.Enum = d.nameOf(t), t.Kind, t.Size, t.Signed, t.Enum
		return nil
	})
	return v, err
}

// inSight lists the variables of a unit that are in sight at an address and whose place there is known.
func (d *Debug) inSight(pc uint64) (list []spot, err error) {
	f := d.main
	unit, err := f.r.SeekPC(pc)
	if err != nil {
		return nil, err
	}
	type scope struct{ blocks, frame int }
	scopes := []scope{{}}
	var frames [][]byte
	for range maxEntries {
		e, err := f.r.Next()
		if err != nil || e == nil {
			return list, err
		}
		at := scopes[len(scopes)-1]
		switch e.Tag {
		case 0:
			if scopes = scopes[:len(scopes)-1]; len(scopes) == 0 {
				return list, nil
			}
			continue
		case dwarf.TagCompileUnit, dwarf.TagPartialUnit:
			return list, nil
		case dwarf.TagVariable, dwarf.TagFormalParameter:
			var frame []byte
			if at.frame > 0 {
				frame = frames[at.frame-1]
			}
			if s, ok := f.spot(unit, e, pc, frame); ok && len(list) < maxSpots && (at.blocks > 0 || s.where.Origin == stub.OriginAddress) {
				s.depth, s.r = at.blocks, ref{f, e.Offset}
				list = append(list, s)
			}
		case dwarf.TagNamespace:
			if e.Children && len(scopes) < maxScopes {
				scopes = append(scopes, at)
				continue
			}
		case dwarf.TagSubprogram, dwarf.TagLexDwarfBlock, dwarf.TagInlinedSubroutine, dwarf.TagTryDwarfBlock, dwarf.TagCatchDwarfBlock:
			if e.Children && len(scopes) < maxScopes && f.covers(e, pc) {
				at.blocks++
				if b, ok := e.Val(dwarf.AttrFrameBase).([]byte); ok {
					frames = append(frames, b)
					at.frame = len(frames)
				}
				scopes = append(scopes, at)
				continue
			}
		}
		if e.Children {
			f.r.SkipChildren()
		}
	}
	return list, nil
}

// covers says whether an entry's code has an address.
func (f *file) covers(e *dwarf.Entry, pc uint64) bool {
	ranges, err := f.data.Ranges(e)
	if err != nil {
		return false
	}
	for _, r := range ranges {
		if pc >= r[0] && pc < r[1] {
			return true
		}
	}
	return false
}

// Operations of location expressions (DWARF 5 §7.7.1).
const (
	opAddr    = 0x03
	opBreg0   = 0x70
	opFbreg   = 0x91
	opCallCFA = 0x9c
)

// spot reads where a variable is at an address: in a register, at an address, or in the frame.
func (f *file) spot(unit, e *dwarf.Entry, pc uint64, frame []byte) (s spot, ok bool) {
	expr, ok := f.location(unit, e, pc, func(from, to uint64) bool { return pc >= from && pc < to })
	if !ok || len(expr) == 0 || f.big {
		return s, false
	}
	if s.where, ok = f.registerOf(expr); ok {
		return s, true
	}
	s.where = stub.Operand{Memory: true}
	switch op := expr[0]; {
	case op == opAddr && len(expr) == 9:
		s.where.Origin, s.where.Addr = stub.OriginAddress, binary.LittleEndian.Uint64(expr[1:])
		return s, true
	case op == opFbreg && len(frame) > 0:
		off, ok := only(expr[1:])
		if !ok {
			return s, false
		}
		s.where.Off = off
		switch base := frame[0]; {
		case base == opCallCFA && len(frame) == 1:
			s.frame = true
			return s, true
		case base >= opReg0 && int(base) < opReg0+len(f.abi.dwarf) && len(frame) == 1: // clang: what the register has
			return s, s.at(int(base)-opReg0, f.abi)
		case base >= opBreg0 && int(base) < opBreg0+len(f.abi.dwarf):
			more, ok := only(frame[1:])
			s.where.Off += more
			return s, ok && s.at(int(base)-opBreg0, f.abi)
		}
	case op >= opBreg0 && int(op) < opBreg0+len(f.abi.dwarf):
		if s.where.Off, ok = only(expr[1:]); ok {
			return s, s.at(int(op)-opBreg0, f.abi)
		}
	}
	return s, false
}

// at places a variable in memory by a register, by its number in DWARF.
func (s *spot) at(reg int, regs *abi) bool {
	if r := regs.dwarf[reg]; r == regs.sp {
		s.where.Origin = stub.OriginStack
	} else {
		s.where.Origin, s.where.Reg = stub.OriginReg, r
	}
	return true
}

// only reads a signed number that is all that is left.
func only(b []byte) (int32, bool) {
	v, n := leb128.ExactInt(b, 0)
	return int32(v), n == len(b) && n > 0 && v >= -1<<30 && v < 1<<30
}
