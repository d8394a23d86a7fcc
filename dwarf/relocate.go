package dwarf

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
)

// relocKinds says how many bytes the relocation types of an architecture write
// that put symbol plus addend into debug sections, by type: 0 for those that write
// nothing there, and notKnown for all others.
type relocKinds [288]int8

const notKnown = -1

// relocKindsOf knows the types that compilers use in debug sections, from the
// architectures' psABIs; false for an architecture that is not known.
func relocKindsOf(a object.Arch) (k relocKinds, ok bool) {
	const none = 0 // in every psABI
	for t := range k {
		k[t] = notKnown
	}
	k[none] = 0
	switch elf.Machine(a) {
	case elf.EM_X86_64:
		k[elf.R_X86_64_64], k[elf.R_X86_64_32], k[elf.R_X86_64_32S] = 8, 4, 4
		k[elf.R_X86_64_DTPOFF64], k[elf.R_X86_64_DTPOFF32] = 0, 0
	case elf.EM_386:
		k[elf.R_386_32], k[elf.R_386_TLS_LDO_32] = 4, 0
	case elf.EM_AARCH64:
		k[elf.R_AARCH64_NULL], k[elf.R_AARCH64_ABS64], k[elf.R_AARCH64_ABS32] = 0, 8, 4
	case elf.EM_ARM:
		k[elf.R_ARM_ABS32], k[elf.R_ARM_TLS_LDO32] = 4, 0
	case elf.EM_PPC64:
		k[elf.R_PPC64_ADDR64], k[elf.R_PPC64_ADDR32], k[elf.R_PPC64_DTPREL64] = 8, 4, 0
	case elf.EM_PPC:
		k[elf.R_PPC_ADDR32] = 4
	case elf.EM_S390:
		k[elf.R_390_64], k[elf.R_390_32], k[elf.R_390_TLS_LDO64] = 8, 4, 0
	default:
		return k, false
	}
	return k, true
}

// size returns how many bytes a type writes, notKnown for one that is not known.
func (k *relocKinds) size(t uint32) int {
	if t < uint32(len(k)) {
		return int(k[t])
	}
	return notKnown
}

// A relocator applies the static linker's relocations to the sections of an image.
type relocator struct {
	image   *object.Image
	data    *Data
	kinds   relocKinds
	found   map[*object.Section]*loaded
	symbols map[uint32][]uint64 // by the index of the table
	budget  uint64              // bytes of tables that may still be read
}

// relocate applies the static linker's relocations to the sections, which must be
// copies.
func (d *Data) relocate(ctx context.Context, found []loaded) error {
	if d.image.Format != object.ELF {
		return nil // Mach-O's assembler leaves the addresses of the file in place
	}
	r := &relocator{image: d.image, data: d, found: make(map[*object.Section]*loaded), symbols: make(map[uint32][]uint64)}
	var ok bool
	if r.kinds, ok = relocKindsOf(d.image.Arch); !ok {
		d.problem(fmt.Errorf("dwarf: %s: relocations of %s are not known", d.image.Name(), d.image.Arch))
		return nil
	}
	for k := range found {
		r.found[found[k].from] = &found[k]
	}
	r.budget = 2 * d.image.Size()
	sections := d.image.Sections()
	for k := range sections {
		table := &sections[k]
		kind := elf.SectionType(table.Type)
		if kind != elf.SHT_RELA && kind != elf.SHT_REL || table.Info >= uint32(len(sections)) {
			continue
		}
		to := r.found[&sections[table.Info]]
		if to == nil || to.data == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("dwarf: %s: %w", d.image.Name(), err)
		}
		if err := r.apply(table, to); err != nil {
			d.problem(err)
		}
	}
	return nil
}

var errOverlap = errors.New("overlaps other tables")

// read reads a table. Many headers of one large table would be quadratic work.
func (r *relocator) read(table *object.Section) ([]byte, error) {
	if table.FileSize > r.budget {
		return nil, &Problem{r.image.Name(), table.Name, 0, errOverlap}
	}
	r.budget -= table.FileSize
	raw, err := r.image.SectionData(table)
	if err != nil {
		return nil, fmt.Errorf("dwarf: %w", err)
	}
	return raw, nil
}

// noValue is the value of what is no code of this file, symbols that other files
// define and data: no code lies there.
const noValue = ^uint64(0) - 1

// values returns the addresses of the symbols in a table, in the layout of
// Data.Place, or offsets in the joined sections of a source.
func (r *relocator) values(link uint32) ([]uint64, error) {
	if values := r.symbols[link]; values != nil {
		return values, nil
	}
	sections := r.image.Sections()
	if link >= uint32(len(sections)) {
		return nil, fmt.Errorf("dwarf: %s: symbol table index %d, want below %d", r.image.Name(), link, len(sections))
	}
	raw, err := r.read(&sections[link])
	if err != nil {
		return nil, err
	}
	extended, err := r.extendedIndices(link)
	if err != nil {
		return nil, err
	}
	order, size := r.image.ByteOrder, 24
	if r.image.Class == object.Class32 {
		size = 16
	}
	values := make([]uint64, 1, len(raw)/size+1)
	for k := 1; (k+1)*size <= len(raw); k++ {
		b := raw[k*size:]
		var value uint64
		var section uint32
		if size == 24 {
			section, value = uint32(order.Uint16(b[6:])), order.Uint64(b[8:])
		} else {
			section, value = uint32(order.Uint16(b[14:])), uint64(order.Uint32(b[4:]))
		}
		if elf.SectionIndex(section) == elf.SHN_XINDEX && len(extended) >= 4*(k+1) {
			section = order.Uint32(extended[4*k:])
		}
		values = append(values, r.value(section, value))
	}
	r.symbols[link] = values
	return values, nil
}

// value returns what relocations add for a symbol at an offset in a section.
func (r *relocator) value(section uint32, offset uint64) uint64 {
	sections := r.image.Sections()
	switch {
	case section == object.SectionAbs:
		return offset
	case section == object.SectionUndef || section >= uint32(len(sections)):
		return noValue
	case sections[section].Alloc():
		place, ok := r.data.Place(int(section))
		if !ok {
			return noValue
		}
		return place + offset
	}
	if to := r.found[&sections[section]]; to != nil {
		return to.base + offset
	}
	return offset
}

// extendedIndices returns the section indices that do not fit into a symbol of the
// table, nil when there are none (gABI, SHT_SYMTAB_SHNDX).
func (r *relocator) extendedIndices(table uint32) ([]byte, error) {
	sections := r.image.Sections()
	for k := range sections {
		if elf.SectionType(sections[k].Type) == elf.SHT_SYMTAB_SHNDX && sections[k].Link == table {
			return r.read(&sections[k])
		}
	}
	return nil, nil
}

// apply applies one table (gABI, chapter 4, Relocation).
func (r *relocator) apply(table *object.Section, to *loaded) error {
	symbols, err := r.values(table.Link)
	if err != nil {
		return err
	}
	raw, err := r.read(table)
	if err != nil {
		return err
	}
	data := to.into.data[to.base:][:len(to.data)]
	c := cursor{data: raw, big: bigEndian(r.image)}
	word, rela := r.image.Class.AddrSize(), elf.SectionType(table.Type) == elf.SHT_RELA
	entry := 2 * word
	if rela {
		entry += word
	}
	var first error
	bad := 0
	for c.remaining() >= entry {
		start := uint64(c.at)
		offset, info := c.fixed(word), c.fixed(word)
		kind, symbol := uint32(info), info>>32
		if word == 4 {
			kind, symbol = uint32(info&0xff), info>>8
		}
		addend := uint64(0)
		if rela {
			addend = c.fixed(word)
		}
		size := r.kinds.size(kind)
		if size == 0 {
			continue
		}
		if size > 0 && symbol < uint64(len(symbols)) && write(data, offset, size, symbols[symbol], addend, rela, c.big) {
			continue
		}
		if bad++; first == nil {
			first = &Problem{r.image.Name(), table.Name, start, fmt.Errorf("relocation of type %d with symbol %d at %#x of %s cannot be applied", kind, symbol, offset, to.from.Name)}
		}
	}
	if bad > 1 {
		return fmt.Errorf("%w, and %d more of the table", first, bad-1)
	}
	return first
}

// write writes symbol plus addend at an offset; without rela the addend stands
// there.
func write(data []byte, offset uint64, size int, symbol, addend uint64, rela, big bool) bool {
	n := uint64(len(data))
	if offset > n || uint64(size) > n-offset {
		return false
	}
	b := data[offset : offset+uint64(size)]
	if !rela {
		addend, _ = fixed(b, size, big)
	}
	v := symbol + addend
	if symbol == noValue {
		v = noValue
	}
	var order binary.ByteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	if size == 4 {
		order.PutUint32(b, uint32(v))
	} else {
		order.PutUint64(b, v)
	}
	return true
}
