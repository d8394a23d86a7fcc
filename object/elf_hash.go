package object

import (
	"debug/elf"
	"fmt"
)

// segmentTable finds .dynsym through the dynamic table, as the loader does.
func (e *elfFile) segmentTable() (*symbolTable, error) {
	addr, ok := e.dyn(elf.DT_SYMTAB)
	if !ok {
		return nil, nil
	}
	size := e.symbolSize()
	if given, ok := e.dyn(elf.DT_SYMENT); ok && given != size {
		return nil, e.errorf("dynamic table: symbol entry size %d, want %d", given, size)
	}
	strs, err := e.dynStrings()
	if err != nil {
		return nil, err
	}
	count, err := e.dynSymbolCount(addr, size)
	if err != nil {
		return nil, err
	}
	// count has 32 bits at most, so the product cannot wrap.
	raw, err := e.ReadAddr(addr, count*size)
	if err != nil {
		return nil, err
	}
	return &symbolTable{
		source:   Dynsym,
		where:    fmt.Sprintf("object: %s: dynamic symbols at address %#x", e.name, addr),
		entries:  raw,
		entSize:  size,
		strings:  strs,
		versions: e.segmentVersions(count, strs),
	}, nil
}

// symbolSize is the size of an entry of a symbol table.
func (e *elfFile) symbolSize() uint64 {
	if e.Class == Class32 {
		return symbolSize32
	}
	return symbolSize64
}

// dynSymbolCount learns the number of dynamic symbols, which the dynamic table
// does not state, from a hash table, or else from the custom that the string table
// follows the symbols.
func (e *elfFile) dynSymbolCount(symtab, size uint64) (uint64, error) {
	if addr, ok := e.dyn(elf.DT_HASH); ok {
		// nbucket, nchain: there is one chain entry a symbol (gABI, chapter 5).
		raw, err := e.ReadAddr(addr, 8)
		if err != nil {
			return 0, err
		}
		return uint64(e.ByteOrder.Uint32(raw[4:])), nil
	}
	if addr, ok := e.dyn(elf.DT_GNU_HASH); ok {
		switch count, all, err := e.gnuHashCount(addr); {
		case err != nil:
			return 0, err
		case all:
			return count, nil
		default:
			before, _ := e.symbolsBeforeStrings(symtab, size)
			return max(count, before), nil
		}
	}
	if count, ok := e.symbolsBeforeStrings(symtab, size); ok {
		return count, nil
	}
	return 0, e.errorf("dynamic table: no hash table tells how many symbols there are")
}

// symbolsBeforeStrings is how many symbols there are if the string table follows them.
func (e *elfFile) symbolsBeforeStrings(symtab, size uint64) (uint64, bool) {
	strs, ok := e.dyn(elf.DT_STRTAB)
	if _, available := e.fromAddr(symtab); !ok || strs <= symtab || strs-symtab > available {
		return 0, false
	}
	return min((strs-symtab)/size, 1<<32-1), true
}

// gnuHashCount counts the symbols of a GNU hash table: four words (number of
// buckets, first hashed symbol, words of the Bloom filter, shift), the filter, the
// buckets, and a hash for each hashed symbol whose lowest bit ends a chain. When nothing is hashed, as in
// a program that exports nothing, the table doesn't say how many there are (all is false): GNU ld then has
// 1 for the first.
func (e *elfFile) gnuHashCount(addr uint64) (count uint64, all bool, err error) {
	damaged := func(what string) error {
		return e.errorf("GNU hash table at address %#x: %s", addr, what)
	}
	off, available := e.fromAddr(addr)
	if available < 16 {
		return 0, false, damaged("not in the file")
	}
	raw, err := e.slice(off, 16)
	if err != nil {
		return 0, false, e.errorf("GNU hash table at address %#x: bytes %w", addr, err)
	}
	off, available = off+16, available-16
	o := e.ByteOrder
	buckets, first := uint64(o.Uint32(raw)), uint64(o.Uint32(raw[4:]))
	filter := uint64(o.Uint32(raw[8:])) * uint64(e.Class.AddrSize())
	if filter+4*buckets > available {
		return 0, false, damaged("filter and buckets reach beyond the segment")
	}
	last := uint64(0)
	b, err := e.slice(off+filter, 4*buckets)
	if err != nil {
		return 0, false, e.errorf("GNU hash table at address %#x: buckets %w", addr, err)
	}
	for ; len(b) > 0; b = b[4:] {
		last = max(last, uint64(o.Uint32(b)))
	}
	if last == 0 {
		return first, false, nil
	}
	if last < first {
		return 0, false, damaged("a bucket names a symbol that is not hashed")
	}
	// The chain of the highest bucket is the last; its end is the table's end.
	off, available = off+filter+4*buckets, available-filter-4*buckets
	for ; ; last++ {
		at := 4 * (last - first)
		if at+4 > available {
			return 0, false, damaged("last chain has no end")
		}
		hash, err := e.slice(off+at, 4)
		if err != nil {
			return 0, false, e.errorf("GNU hash table at address %#x: chain %w", addr, err)
		}
		if o.Uint32(hash)&1 != 0 {
			return last + 1, true, nil
		}
	}
}
