package object

import (
	"errors"
	"fmt"
	"strings"
)

// machSymtab is where LC_SYMTAB says the symbols and their names are.
type machSymtab struct {
	off, count, strOff, strSize uint32
}

// The sizes of nlist and nlist_64.
const (
	nlistSize32, nlistSize64 = 12, 16
)

// The bits of n_type and n_desc (mach-o/nlist.h).
const (
	nStab       = 0xe0
	nPrivateExt = 0x10
	nTypeMask   = 0x0e
	nExternal   = 0x01

	nUndefined = 0x0
	nAbsolute  = 0x2
	nSection   = 0xe

	nThumbDef = 0x0008
	nWeakRef  = 0x0040
	nWeakDef  = 0x0080
)

// nlist is one entry of the symbol table.
type nlist struct {
	name    uint32
	kind    uint8
	section uint8
	desc    uint16
	value   uint64
}

// machSymbols is the symbol table with its names.
type machSymbols struct {
	raw     []byte
	size    int // of an entry
	strings *stringTable
	where   string // for errors
}

// symbolTable returns the table that LC_SYMTAB names, nil when there is none.
func (m *machFile) symbolTable() (*machSymbols, error) {
	t := &m.symtab
	if t.count == 0 {
		return nil, nil
	}
	size := nlistSize64
	if m.Class == Class32 {
		size = nlistSize32
	}
	where := fmt.Sprintf("LC_SYMTAB symbols at %#x", t.off)
	raw, err := m.slice(uint64(t.off), uint64(t.count)*uint64(size))
	if err != nil {
		return nil, m.errorf("%s: %d entries %w", where, t.count, err)
	}
	strs, err := m.slice(uint64(t.strOff), uint64(t.strSize))
	if err != nil {
		return nil, m.errorf("LC_SYMTAB strings at %#x: %#x bytes %w", t.strOff, t.strSize, err)
	}
	return &machSymbols{raw: raw, size: size, strings: newStrings(strs), where: where}, nil
}

// entry decodes entry k.
func (m *machFile) nlist(t *machSymbols, k int) nlist {
	b, o := t.raw[k*t.size:], m.ByteOrder
	n := nlist{name: o.Uint32(b), kind: b[4], section: b[5], desc: o.Uint16(b[6:])}
	if t.size == nlistSize32 {
		n.value = uint64(o.Uint32(b[8:]))
	} else {
		n.value = o.Uint64(b[8:])
	}
	return n
}

// readSymbols reads LC_SYMTAB. It goes on after a damaged entry and reports the
// first.
func (m *machFile) readSymbols() ([]Symbol, error) {
	t, err := m.symbolTable()
	if t == nil || err != nil {
		return nil, err
	}
	count := len(t.raw) / t.size
	list := make([]Symbol, 0, count-m.countStabs(t))
	var first error
	bad := 0
	for k := range count {
		n := m.nlist(t, k)
		if n.kind&nStab != 0 {
			continue
		}
		name, ok := t.strings.at(n.name)
		if !ok {
			if bad++; first == nil {
				first = m.errorf("%s: symbol %d: name at offset %#x is outside its string table of %#x bytes or has no end", t.where, k, n.name, len(t.strings.text))
			}
			continue
		}
		if name != "" {
			list = append(list, m.symbol(name, &n))
		}
	}
	if bad > 1 {
		first = errors.Join(first, m.errorf("%s: and %d more damaged entries", t.where, bad-1))
	}
	return list, first
}

// countStabs counts the debugger's entries: in a program linked with debug
// information they are most of the table.
func (m *machFile) countStabs(t *machSymbols) int {
	stabs := 0
	for at := 4; at < len(t.raw); at += t.size {
		if t.raw[at]&nStab != 0 {
			stabs++
		}
	}
	return stabs
}

// symbol translates one entry.
func (m *machFile) symbol(name string, n *nlist) Symbol {
	s := Symbol{Name: name, Source: Symtab}
	weak := n.desc&nWeakDef != 0
	switch n.kind & nTypeMask {
	case nSection:
		s.Addr, s.Section = n.value, uint32(n.section)
		s.Kind = m.symbolKind(&s)
		if s.Kind == Func && m.cpu == cpuARM {
			s.Thumb = n.desc&nThumbDef != 0 || s.Addr&1 != 0
			s.Addr &^= 1
		}
	case nAbsolute:
		s.Addr, s.Section = n.value, SectionAbs
	case nUndefined:
		weak = n.desc&nWeakRef != 0
		if n.value != 0 && n.kind&nExternal != 0 {
			s.Section, s.Kind, s.Size = SectionCommon, Common, n.value
		}
	}
	// What is left are indirect and prebound symbols, which others define.
	if n.kind&nExternal != 0 {
		s.Binding = Global
		s.Dynamic = n.kind&nPrivateExt == 0
		if weak {
			s.Binding = Weak
		}
	}
	return s
}

// symbolKind tells code from data by the section. A symbol outside of its section
// is a mark that the linker made, such as __mh_execute_header.
func (m *machFile) symbolKind(s *Symbol) Kind {
	if s.Section == 0 || uint64(s.Section) >= uint64(len(m.sections)) {
		return NoType
	}
	in := &m.sections[s.Section]
	switch {
	case s.Addr < in.Addr || s.Addr-in.Addr >= in.Size:
		return NoType
	case in.Executable():
		if isTemporaryLabel(s.Name) {
			return NoType
		}
		return Func
	case in.threadLocal():
		return TLS
	}
	return Object
}

// isTemporaryLabel knows the labels that assemblers for arm64 leave at the start of
// each section of an object file: ltmp0, ltmp1 and so on.
func isTemporaryLabel(name string) bool {
	digits, ok := strings.CutPrefix(name, "ltmp")
	return ok && strings.Trim(digits, "0123456789") == ""
}
