package object

import (
	"errors"
	"fmt"
)

// Kind is what a symbol names, with ELF's numbers (gABI, chapter 4, st_info).
type Kind uint8

// The kinds of symbols. Sections and source files, which symbol tables also list,
// are never returned.
const (
	NoType Kind = 0
	Object Kind = 1  // data
	Func   Kind = 2  // code
	Common Kind = 5  // data that the linker is still to place
	TLS    Kind = 6  // thread-local data: Addr is the offset in the TLS block
	IFunc  Kind = 10 // code that is called once and returns the function to use
)

// String returns the kind in a word.
func (k Kind) String() string {
	switch k {
	case NoType:
		return "notype"
	case Object:
		return "object"
	case Func:
		return "func"
	case Common:
		return "common"
	case TLS:
		return "tls"
	case IFunc:
		return "ifunc"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Binding is a symbol's reach, with ELF's numbers.
type Binding uint8

// The bindings.
const (
	Local  Binding = 0
	Global Binding = 1
	Weak   Binding = 2
	Unique Binding = 10 // one in the whole process (STB_GNU_UNIQUE)
)

// String returns the binding in a word.
func (b Binding) String() string {
	switch b {
	case Local:
		return "local"
	case Global:
		return "global"
	case Weak:
		return "weak"
	case Unique:
		return "unique"
	}
	return fmt.Sprintf("binding %d", uint8(b))
}

// Source is the table that a symbol was read from.
type Source uint8

// The sources.
const (
	Symtab       Source = iota // .symtab, or LC_SYMTAB of Mach-O
	Dynsym                     // .dynsym
	GnuDebugdata               // the .symtab inside the compressed .gnu_debugdata
)

// String returns the section's name.
func (s Source) String() string {
	switch s {
	case Symtab:
		return ".symtab"
	case Dynsym:
		return ".dynsym"
	case GnuDebugdata:
		return ".gnu_debugdata"
	}
	return fmt.Sprintf("source %d", uint8(s))
}

// The values of Symbol.Section that are no index.
const (
	SectionUndef  = 0      // defined elsewhere
	SectionAbs    = 0xfff1 // Addr is a number, not an address
	SectionCommon = 0xfff2 // not placed yet
)

// A Symbol is one name in an image.
type Symbol struct {
	Name    string // without the version; of Mach-O the raw one, with the leading underscore that C names get
	Version string // "GLIBC_2.17", or "" when there is none
	Addr    uint64 // link address; in a relocatable ELF file, the offset in the section
	Size    uint64 // bytes, 0 when unknown
	Section uint32 // index into Sections, or SectionUndef, SectionAbs, SectionCommon
	Kind    Kind
	Binding Binding
	Source  Source
	Dynamic bool // visible to other images: in .dynsym, or external in a Mach-O file
	Thumb   bool // ARM code in the Thumb encoding; Addr is even then
}

// Defined says whether this image, rather than another one, holds what is named.
func (s *Symbol) Defined() bool { return s.Section != SectionUndef }

// IsFunc says whether the symbol names code that this image holds.
func (s *Symbol) IsFunc() bool { return (s.Kind == Func || s.Kind == IFunc) && s.Defined() }

// VisitSymbols calls visit for the symbols that Symbols returns, in its order, until
// it returns false; but of ELF files for one that is in several tables as often as it
// is there. It keeps nothing, so that those of a large image take no memory; a symbol
// is visit's until it returns. The error is that of Symbols.
func (i *Image) VisitSymbols(visit func(*Symbol) bool) error {
	if i.Format == MachO {
		list, err := i.Symbols()
		for k := range list {
			if s := list[k]; !visit(&s) {
				break
			}
		}
		return err
	}
	tables, err := i.elf.symbolTables()
	return errors.Join(err, i.elf.visitSymbols(tables, visit))
}

// Symbols returns all named symbols of .symtab and .dynsym and the functions of
// .gnu_debugdata, in this order. A symbol in several tables (same name, same
// address, in a relocatable file in the same section, or the same undefined name) is returned once, with Dynamic set when
// .dynsym has it and the first table as its Source. Of a Mach-O file they are the
// symbols of LC_SYMTAB in its order, without the debugger's own (STABS); none has a
// size but a common one (see FunctionSymbols).
//
// The slice is made once, belongs to the image and must not be changed; names stay
// valid after Close. When a table is damaged the error says so, and the symbols of
// the other tables are returned beside it.
func (i *Image) Symbols() ([]Symbol, error) {
	i.symbols.once.Do(func() {
		if i.Format == MachO {
			i.symbols.list, i.symbols.err = i.mach.readSymbols()
		} else {
			i.symbols.list, i.symbols.err = i.elf.readSymbols()
		}
	})
	return i.symbols.list, i.symbols.err
}
