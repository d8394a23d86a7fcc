package object

import "errors"

// A Slot is a place in memory that the loader fills with the address of what a symbol names: an entry of the global offset table.
type Slot struct {
	Offset uint64 // link address of the place, of an address-sized word
	Symbol Symbol // from .dynsym; most are of other images
	Addend int64  // of a Word
	Kind   SlotKind
}

// SlotKind says what a slot is for.
type SlotKind uint8

// The kinds of slots.
const (
	// SlotJump is what an entry of the PLT jumps by. It may be filled on its first use.
	SlotJump SlotKind = iota
	// SlotData is loaded by code, as an address or to jump by.
	SlotData
	// SlotWord is a pointer in data.
	SlotWord
)

// String returns the kind in a word.
func (k SlotKind) String() string {
	switch k {
	case SlotJump:
		return "jump"
	case SlotData:
		return "data"
	}
	return "word"
}

// VisitSlots calls visit for the slots of an ELF image whose relocations name a symbol, in the order of the tables, until it returns false. They
// are found by the sections or, without section headers, by the dynamic table. On damage it returns an error beside what can be read. A
// slot is visit's until it returns. Mach-O images have none that are read: the error wraps errors.ErrUnsupported.
func (i *Image) VisitSlots(visit func(*Slot) bool) error {
	if i.Format == MachO {
		return i.errorf("slots of Mach-O: %w", errors.ErrUnsupported)
	}
	kinds, ok := i.semantics()
	if !ok {
		return i.errorf("relocations of %s are not known", i.Arch)
	}
	e := i.elf
	symbols, err := e.dynamicTable()
	if symbols == nil || err != nil {
		return err
	}
	count := uint64(len(symbols.entries)) / symbols.entSize
	var s Slot
	rerr := e.visitRelocations(func(r Reloc) bool {
		switch r.Type {
		case kinds.jumpSlot:
			s.Kind = SlotJump
		case kinds.globDat:
			s.Kind = SlotData
		case kinds.absolute:
			s.Kind = SlotWord
		default:
			return true
		}
		if r.SymIndex == 0 || uint64(r.SymIndex) >= count {
			return true
		}
		keep, ok := e.symbol(symbols, int(r.SymIndex), &s.Symbol)
		if !keep || !ok {
			return true
		}
		s.Offset, s.Addend = r.Offset, r.Addend
		return visit(&s)
	})
	return errors.Join(err, rerr)
}
