package dwarf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// elfWith makes a little-endian 64-bit image with one executable section of 64 KiB
// at address 0x1000 and the sections given.
func elfWith(sections map[string][]byte) []byte {
	names := slices.Sorted(maps.Keys(sections))
	var out, strs, headers bytes.Buffer
	out.Write(make([]byte, 64))
	strs.WriteByte(0)
	header := func(name string, kind elf.SectionType, flags elf.SectionFlag, addr, off, size uint64) {
		h := elf.Section64{Name: uint32(strs.Len()), Type: uint32(kind), Flags: uint64(flags), Addr: addr, Off: off, Size: size}
		strs.WriteString(name + "\x00")
		binary.Write(&headers, binary.LittleEndian, &h)
	}
	header("", elf.SHT_NULL, 0, 0, 0, 0)
	header(".text", elf.SHT_NOBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, 0x1000, 0, 1<<16)
	for _, name := range names {
		header(name, elf.SHT_PROGBITS, 0, 0, uint64(out.Len()), uint64(len(sections[name])))
		out.Write(sections[name])
	}
	strs.WriteString(".shstrtab\x00")
	h := elf.Section64{Name: uint32(strs.Len() - len(".shstrtab\x00")), Type: uint32(elf.SHT_STRTAB), Off: uint64(out.Len()), Size: uint64(strs.Len())}
	binary.Write(&headers, binary.LittleEndian, &h)
	out.Write(strs.Bytes())
	shoff := uint64(out.Len())
	out.Write(headers.Bytes())
	file := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1,
		Shoff: shoff, Ehsize: 64, Shentsize: 64, Shnum: uint16(len(names) + 3), Shstrndx: uint16(len(names) + 2),
	}
	var first bytes.Buffer
	binary.Write(&first, binary.LittleEndian, &file)
	copy(out.Bytes(), first.Bytes())
	return out.Bytes()
}

// unit4 makes a unit of version 4 with the entries given.
func unit4(abbrev uint32, entries []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(7+len(entries)))
	b = binary.LittleEndian.AppendUint16(b, 4)
	b = binary.LittleEndian.AppendUint32(b, abbrev)
	return append(append(b, 8), entries...)
}

// The abbreviations of the tests below.
var abbrevs = []byte{
	1, tagCompileUnit, 1, attrStmtList, formSecOffset, 0, 0,
	2, tagSubprogram, 0, attrRanges, formSecOffset, 0, 0,
	3, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formData1, attrAbstractOrigin, formRef4, 0, 0,
	4, tagSubprogram, 1, attrLowPC, formAddr, attrHighPC, formData1, 0, 0,
	5, tagInlinedSubroutine, 1, 0, 0,
	6, tagInlinedSubroutine, 0, attrLowPC, formAddr, attrHighPC, formData1, attrCallLine, formData1, 0, 0,
	0,
}

// spend runs f and checks what it took of memory and, very roughly, of time: a
// quadratic reader would take hours.
func spend(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	runtime.ReadMemStats(&after)
	taken := after.TotalAlloc - before.TotalAlloc
	t.Logf("%v, %d KiB", time.Since(start), taken>>10)
	if taken > most {
		t.Errorf("%d bytes were taken, want %d at most", taken, most)
	}
}

func TestManyUsersOfOneListCostLittle(t *testing.T) {
	// One list of 100,000 ranges, and 100,000 functions that all have it.
	var list []byte
	for k := range uint64(100_000) {
		list = binary.LittleEndian.AppendUint64(list, 0x1000+k%0x8000)
		list = binary.LittleEndian.AppendUint64(list, 0x1001+k%0x8000)
	}
	entries := []byte{1, 0, 0, 0, 0}
	for range 100_000 {
		entries = append(entries, 2, 0, 0, 0, 0)
	}
	data := elfWith(map[string][]byte{
		".debug_info": unit4(0, append(entries, 0)), ".debug_abbrev": abbrevs, ".debug_ranges": list, ".debug_line": {0},
	})
	spend(t, 64<<20, func() {
		_, errs := readAll(t, data, Options{})
		if len(errs) == 0 || !strings.Contains(errs[0].Error(), errRangeWork.Error()) {
			t.Errorf("errors %v", errs)
		}
	})
}

func TestManyUsersOfOneLineTableCostLittle(t *testing.T) {
	// A program of a million rows, and 20,000 units that all have it.
	program := []byte{4, 0, 20, 0, 0, 0, 1, 1, 1, 0xff, 1, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0}
	program = append(program, 0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0)
	program = append(program, bytes.Repeat([]byte{14}, 1<<20)...)
	program = append(program, 0, 1, 1)
	table := append(binary.LittleEndian.AppendUint32(nil, uint32(len(program))), program...)
	var info []byte
	for range 20_000 {
		info = append(info, unit4(0, []byte{1, 0, 0, 0, 0, 0})...)
	}
	data := elfWith(map[string][]byte{".debug_info": info, ".debug_abbrev": abbrevs, ".debug_line": table})
	spend(t, 256<<20, func() {
		_, errs := readAll(t, data, Options{})
		if len(errs) == 0 {
			t.Error("nothing was told")
		}
	})
}

func TestOverlappingAbbreviationTablesCostLittle(t *testing.T) {
	// 20,000 units, each with a table that starts one abbreviation behind the last
	// one's and has all that follow.
	var table, info []byte
	for k := range uint32(20_000) {
		info = append(info, unit4(uint32(len(table)), []byte{1, 0})...)
		table = append(table, byte(k%100+1), 1, tagCompileUnit, 0, 0)
	}
	data := elfWith(map[string][]byte{".debug_info": info, ".debug_abbrev": append(table, 0)})
	spend(t, 256<<20, func() { readAll(t, data, Options{}) })
}

func TestReferencesInCirclesEnd(t *testing.T) {
	// Two functions that are each other's origin, and one that is its own.
	function := func(origin uint32) []byte {
		b := binary.LittleEndian.AppendUint64([]byte{3}, 0x1000)
		return binary.LittleEndian.AppendUint32(append(b, 16), origin)
	}
	const first, size = 11 + 5, 14
	entries := []byte{1, 0, 0, 0, 0}
	entries = append(entries, function(first+size)...)
	entries = append(entries, function(first)...)
	entries = append(entries, function(first+2*size)...)
	data := elfWith(map[string][]byte{".debug_info": unit4(0, append(entries, 0)), ".debug_abbrev": abbrevs})
	if functions, _ := readAll(t, data, Options{}); functions != 3 {
		t.Errorf("%d functions, want 3", functions)
	}
}

func TestDeepNestingTakesNoStack(t *testing.T) {
	entries := binary.LittleEndian.AppendUint64([]byte{1, 0, 0, 0, 0, 4}, 0x1000)
	entries = append(entries, 16)
	entries = append(entries, bytes.Repeat([]byte{5}, 1<<20)...)
	data := elfWith(map[string][]byte{".debug_info": unit4(0, entries), ".debug_abbrev": abbrevs})
	spend(t, 16<<20, func() {
		functions, errs := readAll(t, data, Options{})
		if functions != 1 || len(errs) == 0 {
			t.Errorf("%d functions, %v", functions, errs)
		}
	})
}
