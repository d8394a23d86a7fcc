package corefile

import (
	"bytes"
	"cmp"
	"slices"
)

// fileRange is one entry of NT_FILE.
type fileRange struct {
	start, end, offset uint64
	path               string
}

// fileNote reads NT_FILE: the number of entries, the unit of offsets, for each entry
// start, end and offset, and then the names, each with a NUL (fs/binfmt_elf.c,
// fill_files_note).
func (f *File) fileNote(desc []byte, offset uint64) {
	size := f.wordSize()
	if uint64(len(desc)) < 2*size {
		f.problem("note at offset %#x: NT_FILE of %d bytes", offset, len(desc))
		return
	}
	count, unit := f.word(desc), f.word(desc[size:])
	desc = desc[2*size:]
	if count > uint64(len(desc))/(3*size) {
		f.problem("note at offset %#x: NT_FILE: %d entries do not fit", offset, count)
		return
	}
	names := desc[count*3*size:]
	last := ""
	for range count {
		name, rest, ok := bytes.Cut(names, []byte{0})
		if !ok {
			f.problem("note at offset %#x: NT_FILE: names are cut off", offset)
			return
		}
		// Neighbours mostly share their name.
		if string(name) != last {
			last = string(name)
		}
		r := fileRange{f.word(desc), f.word(desc[size:]), f.word(desc[2*size:]) * unit, last}
		if r.start < r.end {
			f.unnamed = append(f.unnamed, r)
		}
		desc, names = desc[3*size:], rest
	}
}

// nameMappings tells the mappings which files they are of. Kernels leave mappings
// that they write nothing of out of the segments with some settings; those are
// added, without memory.
func (f *File) nameMappings() {
	slices.SortStableFunc(f.unnamed, func(a, b fileRange) int { return cmp.Compare(a.start, b.start) })
	var added []Mapping
	k, end := 0, uint64(0)
	for _, r := range f.unnamed {
		if r.start < end {
			continue // overlaps the one before, which no kernel writes
		}
		end = r.end
		for k < len(f.Maps) && f.Maps[k].End <= r.start {
			k++
		}
		if k == len(f.Maps) || f.Maps[k].Start >= r.end {
			added = append(added, Mapping{Start: r.start, End: r.end, Offset: r.offset, Path: r.path, Read: true, Exec: true})
			continue
		}
		for ; k < len(f.Maps) && f.Maps[k].Start < r.end; k++ {
			if m := &f.Maps[k]; m.Start >= r.start {
				m.Path, m.Offset = r.path, r.offset+(m.Start-r.start)
			}
		}
		k-- // may reach into the next range
	}
	f.unnamed = nil
	if len(added) == 0 {
		return
	}
	f.Maps = append(f.Maps, added...)
	slices.SortStableFunc(f.Maps, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
	end = 0
	f.Maps = slices.DeleteFunc(f.Maps, func(m Mapping) bool {
		if m.Start < end {
			return true
		}
		end = m.End
		return false
	})
}
