package symbols

import (
	"bytes"
	"debug/elf"
	"slices"
	"sort"

	"github.com/callreel/callreel/object"
)

// A symbolPiece is a stretch of code that one symbol names.
type symbolPiece struct {
	start, end uint64
	symbol     uint64  // the symbol's address, at or before start
	name, file nameRef // file: 0 is none
	sized      bool
}

// symbolTable says which symbol names which code, in disjoint sorted pieces. Several
// workers read it.
type symbolTable struct {
	pieces  []symbolPiece
	names   *symbolNames
	choices []choice // by address
}

// text returns the name of a reference with symbolName.
func (t *symbolTable) text(n nameRef) []byte { return t.names.at(uint32(n)) }

// candidateCost is the memory for each symbol of a table, as long as the map is made.
const candidateCost = 160

// candidate is a symbol that can name code, with its address and its size or 0.
type candidate struct {
	addr, size uint64
	name, file uint32
	mark       bool // may turn out to name nothing, see marksOf
	function   bool // by its type
	local      bool
}

// newSymbolTable makes the table of an image's code. Where symbols overlap, the one
// that starts last names the code; of several at one address the largest, then the
// last in the table. A symbol with a size ends there. One without, as assembly has
// them, ends at the next symbol, at the end of a symbol that it stands inside of, or
// at the end of the region.
//
// What is damaged is left out; the error tells.
func newSymbolTable(im *object.Image, place placeFunc, regions []region) (*symbolTable, error) {
	t := &symbolTable{}
	list, err := t.candidates(im, place, regions)
	t.lay(list, regions)
	return t, err
}

// lay makes the pieces of candidates that lie in the regions.
func (t *symbolTable) lay(list []candidate, regions []region) {
	kept := t.largest(list)
	var o overlay
	resolved := o.resolve(extents(kept, regions))
	t.pieces = make([]symbolPiece, 0, len(resolved))
	for _, p := range resolved {
		c := kept[p.owner]
		s := symbolPiece{p.start, p.end, c.addr, symbolName | nameRef(c.name), 0, c.size > 0}
		if c.file != 0 {
			s.file = symbolName | nameRef(c.file)
		}
		t.pieces = append(t.pieces, s)
	}
}

// largest returns of the candidates at each address the largest, of several such the
// last; sorted by address. It notes the choices.
func (t *symbolTable) largest(list []candidate) []candidate {
	keys := make([]keyed, 2*len(list))
	for k := range list {
		keys[k] = keyed{list[k].addr, uint32(k)}
	}
	kept := make([]candidate, 0, len(list))
	var same []candidate
	sorted := sortKeyed(keys[:len(list)], keys[len(list):])
	for from, to := 0, 0; from < len(sorted); from = to {
		best := list[sorted[from].index]
		for to = from + 1; to < len(sorted) && list[sorted[to].index].addr == best.addr; to++ {
			if c := list[sorted[to].index]; c.size >= best.size {
				best = c
			}
		}
		kept = append(kept, best)
		if to == from+1 || t.names == nil {
			continue
		}
		same = same[:0]
		for _, k := range sorted[from:to] {
			same = append(same, list[k.index])
		}
		if name, several := t.names.choose(same); several {
			t.choices = append(t.choices, choice{best.addr, name})
		}
	}
	return kept
}

// extents returns how far each of the sorted candidates reaches.
func extents(list []candidate, regions []region) []piece {
	ranges := make([]piece, 0, len(list))
	inside := uint64(0) // how far the symbols so far with a size reach
	for k, c := range list {
		r := &regions[nextRegion(regions, c.addr)]
		end := r.base + r.size
		if c.size > 0 {
			end = c.addr + min(c.size, end-c.addr)
			inside = max(inside, end)
		} else {
			if k+1 < len(list) {
				end = min(end, list[k+1].addr)
			}
			if inside > c.addr {
				end = min(end, inside)
			}
		}
		ranges = append(ranges, piece{c.addr, end, int32(k)})
	}
	return ranges
}

// candidates lists the symbols that can name code, in the order of the table, and sets
// t.names.
func (t *symbolTable) candidates(im *object.Image, place placeFunc, regions []region) (list []candidate, err error) {
	relocatable := im.Type == object.Relocatable && im.Format == object.ELF
	marks := marksOf(im.Arch)
	count := symtabEntries(im)
	if err := im.Take(uint64(count)*candidateCost, "a table of so many symbols"); err != nil {
		t.names = &symbolNames{}
		return nil, err
	}
	list = make([]candidate, 0, count/2) // in programs half of the symbols are code's
	t.names, err = eachSymbol(im, func(s *rawSymbol) {
		switch s.kind {
		case object.Func, object.IFunc, object.NoType, object.Object:
		default:
			return
		}
		addr := s.addr
		if relocatable {
			base, ok := place(int(s.section))
			if !ok {
				return
			}
			addr += base
		}
		if r := nextRegion(regions, addr); r < len(regions) && addr >= regions[r].base {
			list = append(list, candidate{
				addr: addr, size: s.size, name: s.name, file: s.file, mark: marks != nil && s.kind == object.NoType,
				function: s.kind == object.Func || s.kind == object.IFunc, local: s.local,
			})
		}
	})
	return slices.DeleteFunc(list, func(c candidate) bool { return c.mark && marks(t.names.at(c.name)) }), err
}

// marksOf returns what says whether a symbol without a type names nothing, nil where there are no such.
func marksOf(arch object.Arch) func(name []byte) bool {
	switch {
	case arch == object.ARM || arch == object.ARM64:
		return isMappingSymbol
	case elf.Machine(arch) == elf.EM_RISCV:
		return func(name []byte) bool { return isMappingSymbol(name) || bytes.HasPrefix(name, []byte(".L")) }
	}
	return nil
}

// isMappingSymbol says whether a name is that of a mapping symbol: $a, $d, $t and $x, alone, before a dot or, for RISC-V, before an ISA,
// tell code from data and name nothing (ELF for the ARM Architecture §5.5.5, for the 64-bit one §5.5.4; RISC-V ABIs, ELF, Mapping
// Symbol). Besides, RISC-V's assembler leaves its local labels in the table (".L0 "), as the linker may move code that they are in.
func isMappingSymbol(name []byte) bool {
	return len(name) >= 2 && name[0] == '$' && bytes.IndexByte([]byte("adtx"), name[1]) >= 0 &&
		(len(name) == 2 || name[2] == '.' || bytes.HasPrefix(name[2:], []byte("rv")))
}

// from returns the index of the first piece that ends behind an address.
func (t *symbolTable) from(addr uint64) int {
	return sort.Search(len(t.pieces), func(k int) bool { return t.pieces[k].end > addr })
}
