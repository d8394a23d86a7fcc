package arguments

import (
	"debug/dwarf"
	"encoding/binary"

	"github.com/callreel/callreel/internal/leb128"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Operations that say no more than a register (DWARF 5 §2.6.1.1.3).
const (
	opReg0  = 0x50
	opReg31 = 0x6F
	opRegx  = 0x90
)

const maxLocations = 64

// entryRegister finds the register that a variable is in at the function's very entry, at low.
func (d *Debug) entryRegister(f *file, unit, e *dwarf.Entry, low uint64) (o stub.Operand, ok bool) {
	expr, ok := f.location(unit, e, low, func(from, to uint64) bool { return from == low && to > from })
	if !ok {
		return o, false
	}
	return f.registerOf(expr)
}

// location is the expression that says where a variable is at pc: its only one, or that of the range that suits.
func (f *file) location(unit, e *dwarf.Entry, pc uint64, suits func(from, to uint64) bool) (expr []byte, ok bool) {
	switch v := e.Val(dwarf.AttrLocation).(type) {
	case []byte:
		return v, true
	case int64:
		base, _ := unit.Val(dwarf.AttrLowpc).(uint64)
		if unit.Val(dwarf.AttrRanges) != nil {
			base = 0
		}
		if len(f.loclists) > 0 {
			return f.inLists(v, base, pc, suits)
		}
		return f.inOldLists(v, base, suits)
	}
	return nil, false
}

// registerOf reads an expression that is but a register.
func (f *file) registerOf(expr []byte) (o stub.Operand, ok bool) {
	switch {
	case len(expr) == 0:
		return o, false
	case expr[0] >= opReg0 && expr[0] <= opReg31 && len(expr) == 1:
		return f.abi.registerOfNumber(int(expr[0]) - opReg0)
	case expr[0] == opRegx:
		if n, size := leb128.ExactUint(expr[1:], 0); size == len(expr)-1 && size > 0 && n <= 1<<16 {
			return f.abi.registerOfNumber(int(n))
		}
	}
	return o, false
}

// inOldLists looks a location list of DWARF 2 to 4 up (DWARF 4 §2.6.2).
func (f *file) inOldLists(at int64, base uint64, suits func(from, to uint64) bool) (expr []byte, ok bool) {
	le := binary.LittleEndian
	for range maxLocations {
		if at < 0 || at+18 > int64(len(f.loc)) || f.big {
			return nil, false
		}
		from, to := le.Uint64(f.loc[at:]), le.Uint64(f.loc[at+8:])
		at += 16
		switch {
		case from == 0 && to == 0:
			return nil, false
		case from == 1<<64-1:
			base = to
			continue
		}
		n := int64(le.Uint16(f.loc[at:]))
		at += 2
		if at+n > int64(len(f.loc)) {
			return nil, false
		}
		if suits(base+from, base+to) {
			return f.loc[at : at+n], true
		}
		at += n
	}
	return nil, false
}

// The entries of location lists (DWARF 5 §7.7.3).
const (
	lleEnd          = 0
	lleBaseAddressx = 1
	lleStartxEndx   = 2
	lleStartxLength = 3
	lleOffsetPair   = 4
	lleDefault      = 5
	lleBaseAddress  = 6
	lleStartEnd     = 7
	lleStartLength  = 8
	lleViewPair     = 9 // of gcc: two numbers that say nothing of places
)

// inLists looks one of DWARF 5 up (DWARF 5 §7.7.3). Those that go by .debug_addr, as split units have them, are not looked into.
func (f *file) inLists(at int64, base, pc uint64, suits func(from, to uint64) bool) (expr []byte, ok bool) {
	if at < 0 || at >= int64(len(f.loclists)) || f.big {
		return nil, false
	}
	b := f.loclists[at:]
	uleb := func() uint64 {
		v, n := leb128.ExactUint(b, 0)
		if n < 0 {
			b = nil
			return 0
		}
		b = b[n:]
		return v
	}
	addr := func() uint64 {
		if len(b) < 8 {
			b = nil
			return 0
		}
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return v
	}
	for range maxLocations {
		if len(b) == 0 {
			return nil, false
		}
		kind := b[0]
		b = b[1:]
		var from, to uint64
		switch kind {
		case lleBaseAddress:
			base = addr()
			continue
		case lleViewPair:
			uleb()
			uleb()
			continue
		case lleOffsetPair:
			from, to = base+uleb(), base+uleb()
		case lleStartEnd:
			from, to = addr(), addr()
		case lleStartLength:
			from = addr()
			to = from + uleb()
		case lleDefault:
			from, to = pc, pc+1
		default:
			return nil, false
		}
		n := uleb()
		if n > uint64(len(b)) {
			return nil, false
		}
		if suits(from, to) {
			return b[:n], true
		}
		b = b[n:]
	}
	return nil, false
}
