package crash

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxParts bounds the pieces of memory.
const maxParts = 1 << 20

// addMemory notes a piece of memory.
func (d *minidump) addMemory(start uint64, at location) {
	if at.size > 0 && start+uint64(at.size) > start && len(d.parts) < maxParts {
		d.parts = append(d.parts, stored{Range{start, start + uint64(at.size)}, uint64(at.rva)})
	}
}

// memory reads MINIDUMP_MEMORY_LIST: address, size and offset each.
func (d *minidump) memory() error {
	b, count, err := d.list(streamMemory, 16, maxParts, "the list of memory")
	for ; count > 0; b, count = b[16:], count-1 {
		d.addMemory(binary.LittleEndian.Uint64(b), locationAt(b[8:]))
	}
	return err
}

// memory64 reads MINIDUMP_MEMORY64_LIST: the number of pieces, the offset of the first, and
// address and size of each; they follow one another in the file.
func (d *minidump) memory64() error {
	b, err := d.stream(streamMemory64, "the list of memory")
	if err != nil || len(b) < 16 {
		return err
	}
	le := binary.LittleEndian
	count, off := le.Uint64(b), le.Uint64(b[8:])
	for b = b[16:]; count > 0 && len(b) >= 16 && len(d.parts) < maxParts; b, count = b[16:], count-1 {
		start, size := le.Uint64(b), le.Uint64(b[8:])
		if start+size < start || off+size < off {
			return fmt.Errorf("crash: %s: %w: memory of %d bytes at %#x", d.name, ErrDamaged, size, start)
		}
		d.parts = append(d.parts, stored{Range{start, start + size}, off})
		off += size
	}
	if count > 0 {
		return fmt.Errorf("crash: %s: %w: %d pieces of memory are missing in the list", d.name, ErrDamaged, count)
	}
	return nil
}

// mappings reads what is mapped where: MINIDUMP_MEMORY_INFO_LIST, or /proc/PID/maps.
func (d *minidump) mappings() error {
	if b, err := d.stream(streamMemoryInfo, "the list of mappings"); err == nil && len(b) >= 16 {
		if list := memoryInfo(b); len(list) > 0 {
			d.report.maps = disjoint(list)
			return nil
		}
	}
	b, err := d.stream(streamLinuxMaps, "/proc/PID/maps")
	if err != nil {
		return err
	}
	var list []mapping
	for line := range bytes.Lines(b) {
		if m, ok := mapsLine(string(line)); ok && len(list) < maxParts {
			list = append(list, m)
		}
	}
	d.report.maps = disjoint(list)
	return nil
}

// memoryInfo reads MINIDUMP_MEMORY_INFO_LIST: the sizes of its header and of an entry, the number
// of entries; each has an address, that of its allocation, its protection then, the size, the
// state and the protection now.
func memoryInfo(b []byte) []mapping {
	le := binary.LittleEndian
	head, entry, count := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint64(b[8:])
	if head < 16 || head > uint64(len(b)) || entry < 48 {
		return nil
	}
	const committed = 0x1000
	var list []mapping
	for b = b[head:]; count > 0 && uint64(len(b)) >= entry && len(list) < maxParts; b, count = b[entry:], count-1 {
		start, size, state, protect := le.Uint64(b), le.Uint64(b[24:]), le.Uint32(b[32:]), le.Uint32(b[36:])
		if state != committed || start+size <= start {
			continue
		}
		// PAGE_READWRITE, PAGE_WRITECOPY; PAGE_EXECUTE, _READ, _READWRITE, _WRITECOPY.
		list = append(list, mapping{Range{start, start + size}, protect&0xf0 != 0, protect&(0x04|0x08|0x40|0x80) != 0})
	}
	return list
}

// mapsLine reads a line of /proc/PID/maps: "START-END rwxp OFFSET …".
func mapsLine(line string) (mapping, bool) {
	addrs, rest, ok := strings.Cut(line, " ")
	from, to, ok2 := strings.Cut(addrs, "-")
	if !ok || !ok2 || len(rest) < 4 {
		return mapping{}, false
	}
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	return mapping{Range{start, end}, rest[2] == 'x', rest[1] == 'w'}, err1 == nil && err2 == nil && start < end
}

// disjoint sorts mappings and drops those that lie over others.
func disjoint(list []mapping) []mapping {
	slices.SortStableFunc(list, func(a, b mapping) int { return cmp.Compare(a.Start, b.Start) })
	end := uint64(0)
	return slices.DeleteFunc(list, func(m mapping) bool {
		if m.Start < end {
			return true
		}
		end = m.End
		return false
	})
}

// wholeNumber reads a decimal number.
func wholeNumber(text string) (uint64, bool) {
	v, err := strconv.ParseUint(text, 10, 63)
	return v, err == nil
}
