package object

import (
	"debug/elf"
	"errors"
)

// A Reloc is one dynamic relocation: what the loader writes into memory.
type Reloc struct {
	Offset    uint64 // link address of the place
	Type      uint32 // the architecture's own number (for amd64, System V AMD64 ABI §4.4.1)
	SymIndex  uint32 // index into .dynsym, 0 for none
	Addend    int64  // from the entry, or for the REL and RELR forms from the place itself
	Symbol    bool   // SymValue is known: the symbol is defined in this image
	SymValue  uint64 // link address of the symbol
	FromTable string // name of the table: ".rela.dyn", "DT_RELR", …
}

// relocSemantics is what the relocation types mean that make the loader write an
// address of the image, by architecture.
type relocSemantics struct {
	relative  uint32 // base + addend
	irelative uint32 // result of the function at base + addend
	absolute  uint32 // symbol + addend
	globDat   uint32 // symbol
	jumpSlot  uint32 // symbol
}

// semantics returns the relocation types of the image's architecture (its
// psABI's chapter on relocation); false for one that is not known.
func (i *Image) semantics() (relocSemantics, bool) {
	switch i.Arch {
	case AMD64:
		return relocSemantics{
			relative: uint32(elf.R_X86_64_RELATIVE), irelative: uint32(elf.R_X86_64_IRELATIVE),
			absolute: uint32(elf.R_X86_64_64), globDat: uint32(elf.R_X86_64_GLOB_DAT), jumpSlot: uint32(elf.R_X86_64_JMP_SLOT),
		}, true
	case I386:
		return relocSemantics{
			relative: uint32(elf.R_386_RELATIVE), irelative: uint32(elf.R_386_IRELATIVE),
			absolute: uint32(elf.R_386_32), globDat: uint32(elf.R_386_GLOB_DAT), jumpSlot: uint32(elf.R_386_JMP_SLOT),
		}, true
	case ARM64:
		return relocSemantics{
			relative: uint32(elf.R_AARCH64_RELATIVE), irelative: uint32(elf.R_AARCH64_IRELATIVE),
			absolute: uint32(elf.R_AARCH64_ABS64), globDat: uint32(elf.R_AARCH64_GLOB_DAT), jumpSlot: uint32(elf.R_AARCH64_JUMP_SLOT),
		}, true
	case ARM:
		return relocSemantics{
			relative: uint32(elf.R_ARM_RELATIVE), irelative: uint32(elf.R_ARM_IRELATIVE),
			absolute: uint32(elf.R_ARM_ABS32), globDat: uint32(elf.R_ARM_GLOB_DAT), jumpSlot: uint32(elf.R_ARM_JUMP_SLOT),
		}, true
	}
	return relocSemantics{}, false
}

// DynamicRelocations calls yield for every relocation that the loader applies,
// table by table, until yield returns false. The compact RELR form is yielded as
// one relative relocation a place. On damage it returns an error after what came
// before; other tables are still visited. Relocatable files have no dynamic
// relocations. Those of Mach-O files are not read: the error wraps
// errors.ErrUnsupported.
func (i *Image) DynamicRelocations(yield func(Reloc) bool) error {
	if i.Format == MachO {
		return i.errorf("dynamic relocations of Mach-O: %w", errors.ErrUnsupported)
	}
	return i.elf.visitRelocations(yield)
}

// RelativeTargets calls yield for every place that will hold an address of this
// image after loading, with that address before the slide is added: relative
// relocations (RELR too), the resolvers of IRELATIVE ones, and absolute and GOT
// entries of symbols that this image defines. So a caller learns every address
// that data can hold, except those in a program linked to fixed addresses, which
// needs no relocation for its own.
func (i *Image) RelativeTargets(yield func(place, target uint64)) error {
	kinds, ok := i.semantics()
	if !ok {
		return i.errorf("relocations of %s are not known", i.Arch)
	}
	return i.DynamicRelocations(func(r Reloc) bool {
		if target, ok := kinds.target(&r); ok {
			if i.Class == Class32 {
				target = uint64(uint32(target))
			}
			yield(r.Offset, target)
		}
		return true
	})
}

// target returns the address that a relocation makes the loader write, less the
// slide.
func (k relocSemantics) target(r *Reloc) (uint64, bool) {
	switch r.Type {
	case k.relative, k.irelative:
		return uint64(r.Addend), true
	case k.absolute:
		return r.SymValue + uint64(r.Addend), r.Symbol
	case k.globDat, k.jumpSlot:
		return r.SymValue, r.Symbol
	}
	return 0, false
}
