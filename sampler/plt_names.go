package sampler

import (
	"bytes"
	"sync"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
)

// stubNames names the stubs of an image's PLT by the functions that they lead to, as
// debuggers do: "puts@plt". Those of x86-64 and arm64 are known.
type stubNames struct {
	once   sync.Once
	ranges []object.Range
	places map[uint64]uint32 // address of a GOT entry: index of its symbol
}

// find returns the name of the stub that an address is in, "" when it is in none.
func (s *stubNames) find(file *object.Image, link uint64) string {
	if file.Arch != object.AMD64 && file.Arch != object.ARM64 || file.Format != object.ELF {
		return ""
	}
	s.once.Do(func() { s.ranges = file.PLTRanges() })
	for _, r := range s.ranges {
		if link < r.Start || link >= r.End {
			continue
		}
		if file.Arch == object.ARM64 {
			return s.arm64(file, link, r)
		}
		// All entries of a section are of one size, which some linkers leave out.
		size := uint64(16)
		if sec := file.Section(r.Name); sec != nil && sec.EntSize > 0 && sec.EntSize <= 64 {
			size = sec.EntSize
		}
		start := r.Start + (link-r.Start)/size*size
		code, err := file.ReadAddr(start, min(size, r.End-start))
		if err != nil {
			return ""
		}
		if name := s.target(file, start, code); name != "" {
			return name + "@plt"
		}
	}
	return ""
}

// target is the function whose address a stub loads from the GOT.
func (s *stubNames) target(file *object.Image, at uint64, code []byte) string {
	for len(code) > 0 {
		in, err := amd64.Decode(code)
		if err != nil {
			return ""
		}
		if place, ok := in.MemTarget(at); ok && in.Kind == amd64.IndirectJump {
			return s.symbol(file, place)
		}
		code, at = code[in.Len:], at+uint64(in.Len)
	}
	return ""
}

// symbol is the name of the symbol whose address the loader puts at a place.
func (s *stubNames) symbol(file *object.Image, place uint64) string {
	if s.places == nil {
		s.places = map[uint64]uint32{}
		_ = file.DynamicRelocations(func(r object.Reloc) bool { // what a damaged table has still counts
			if r.SymIndex != 0 {
				s.places[r.Offset] = r.SymIndex
			}
			return true
		})
	}
	index, ok := s.places[place]
	symbols, names := contents(file, ".dynsym"), contents(file, ".dynstr")
	const entry = 24 // of Elf64_Sym, which begins with the name's offset
	at := uint64(index) * entry
	if !ok || at+entry > uint64(len(symbols)) {
		return ""
	}
	off := uint64(file.ByteOrder.Uint32(symbols[at:]))
	if off >= uint64(len(names)) {
		return ""
	}
	name, _, _ := bytes.Cut(names[off:], []byte{0})
	return string(name)
}

func contents(file *object.Image, section string) []byte {
	s := file.Section(section)
	if s == nil {
		return nil
	}
	data, err := file.SectionData(s)
	if err != nil {
		return nil
	}
	return data
}
