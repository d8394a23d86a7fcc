package object

import (
	"cmp"
	"slices"
	"sort"

	"github.com/callreel/callreel/internal/leb128"
)

// FunctionStarts returns the link addresses at which the functions of a Mach-O image
// start (LC_FUNCTION_STARTS), sorted, each once. Linkers write them for stripped
// programs too. It is empty for images that have no such list and for ELF. Where the
// list is damaged, the starts before are returned beside the error.
func (i *Image) FunctionStarts() ([]uint64, error) {
	at := i.mach.functionStarts
	if at.size == 0 {
		return nil, nil
	}
	raw, err := i.slice(at.off, at.size)
	if err != nil {
		return nil, i.errorf("LC_FUNCTION_STARTS at %#x: %#x bytes %w", at.off, at.size, err)
	}
	// A start takes a byte at least, and two on average.
	starts := make([]uint64, 0, len(raw)/2)
	addr := i.BaseAddr()
	for n := 0; n < len(raw); {
		delta, end := leb128.ExactUint(raw, n)
		if end < 0 {
			return starts, i.errorf("LC_FUNCTION_STARTS at %#x: number at offset %#x has no end or more than 64 bits", at.off, n)
		}
		if delta == 0 {
			break // the rest is padding
		}
		if addr += delta; addr < delta {
			return starts, i.errorf("LC_FUNCTION_STARTS at %#x: address beyond 64 bits at offset %#x", at.off, n)
		}
		n = end
		start := addr
		if i.Arch == ARM {
			start &^= 1 // set for Thumb
		}
		if len(starts) == 0 || start != starts[len(starts)-1] {
			starts = append(starts, start)
		}
	}
	return starts, nil
}

// FunctionSymbols returns the symbols that name code in this image, sorted by
// address and then in the order of Symbols, as a new slice. A symbol without a size,
// as all of Mach-O and some from assembly are, gets one: to the next function's
// symbol or start, to the end of the section at most; it may thus include padding
// and what has no symbol. It is 0 where no loaded section holds the address. The
// error is that of Symbols or FunctionStarts.
func (i *Image) FunctionSymbols() ([]Symbol, error) {
	all, err := i.Symbols()
	starts, startsErr := i.FunctionStarts()
	if err == nil {
		err = startsErr
	}
	var list []Symbol
	for k := range all {
		if all[k].IsFunc() {
			list = append(list, all[k])
		}
	}
	if i.Type == Relocatable && i.Format == ELF {
		// Addresses are offsets in sections: only the same section's count.
		slices.SortStableFunc(list, func(a, b Symbol) int {
			return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Addr, b.Addr))
		})
	} else {
		slices.SortStableFunc(list, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	}
	next := ^uint64(0) // address of the next symbol that is higher
	for k := len(list) - 1; k >= 0; k-- {
		s := &list[k]
		if k+1 < len(list) {
			if after := &list[k+1]; after.Section != s.Section && i.Type == Relocatable && i.Format == ELF {
				next = ^uint64(0)
			} else if after.Addr > s.Addr {
				next = after.Addr
			}
		}
		if s.Size == 0 {
			s.Size = i.extent(s, next, starts)
		}
	}
	return list, err
}

// extent returns how far a symbol without a size can reach.
func (i *Image) extent(s *Symbol, next uint64, starts []uint64) uint64 {
	if at := sort.Search(len(starts), func(k int) bool { return starts[k] > s.Addr }); at < len(starts) {
		next = min(next, starts[at])
	}
	in := i.sectionOf(s)
	if in == nil {
		return 0
	}
	base := in.Addr
	if i.Type == Relocatable && i.Format == ELF {
		base = 0
	}
	if s.Addr < base || s.Addr-base >= in.Size {
		return 0
	}
	return min(in.Size-(s.Addr-base), next-s.Addr)
}

// sectionOf returns the section that a symbol is in.
func (i *Image) sectionOf(s *Symbol) *Section {
	if s.Section > 0 && uint64(s.Section) < uint64(len(i.sections)) {
		return &i.sections[s.Section]
	}
	if i.Type == Relocatable {
		return nil
	}
	return i.SectionAt(s.Addr)
}
