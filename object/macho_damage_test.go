package object

import (
	"encoding/binary"
	"strings"
	"testing"
)

// useMach calls what only Mach-O files have, beside what use calls.
func useMach(t *testing.T, i *Image) {
	t.Helper()
	use(t, i)
	if files, _ := i.OSO(); len(files) > int(i.size) {
		t.Errorf("%d object files from %d bytes", len(files), int(i.size))
	}
	if starts, _ := i.FunctionStarts(); len(starts) > int(i.size) {
		t.Errorf("%d function starts from %d bytes", len(starts), int(i.size))
	}
	for _, name := range []string{".debug_info", ".text", "__TEXT,__const", "__data"} {
		i.Section(name)
	}
	i.UnwindInfo()
	i.UUID()
	i.ArchName()
	i.Encrypted()
}

// machFixtures are small files of each kind, for damage and fuzzing.
func machFixtures(t testing.TB) map[string][]byte {
	arm64, armv7 := buildMach(t, "arm64"), buildMach(t, "armv7")
	i386 := read(t, buildMach(t, "i386").objects[0])
	return map[string][]byte{
		"object": read(t, arm64.objects[0]), "dSYM": read(t, arm64.dwarfFile()), "Thumb object": read(t, armv7.objects[0]),
		"32-bit object": i386, "big-endian object": swapMach(t, append([]byte(nil), i386...)),
	}
}

// metadata is the part of a file that is read whatever is asked: header, load
// commands and the tables at the end.
func metadata(t *testing.T, data []byte) [][2]int {
	t.Helper()
	i, err := Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	last := i.mach.commands[len(i.mach.commands)-1]
	spans := [][2]int{{0, int(last.off + last.size)}}
	if s := i.mach.symtab; s.count > 0 {
		spans = append(spans, [2]int{int(s.off), min(len(data), int(s.strOff+s.strSize))})
	}
	if s := i.mach.functionStarts; s.size > 0 {
		spans = append(spans, [2]int{int(s.off), int(s.off + s.size)})
	}
	return spans
}

func TestFlippedBytesOfMachFilesDoNoHarm(t *testing.T) {
	for name, data := range machFixtures(t) {
		t.Run(name, func(t *testing.T) {
			parsed := 0
			for _, span := range metadata(t, data) {
				for at := span[0]; at < span[1]; at++ {
					for _, flip := range []byte{0xff, 0x80, 0x01} {
						data[at] ^= flip
						if i, err := Parse("x", data); err == nil {
							useMach(t, i)
							parsed++
						} else if !strings.HasPrefix(err.Error(), "object: x: ") {
							t.Errorf("error %q does not name the file", err)
						}
						data[at] ^= flip
					}
				}
			}
			if parsed == 0 {
				t.Error("nothing could be parsed")
			}
		})
	}
}

func TestTruncatedMachFilesDoNoHarm(t *testing.T) {
	for name, data := range machFixtures(t) {
		t.Run(name, func(t *testing.T) {
			refused := 0
			// Everywhere in the headers; a file of some kilobytes in steps behind them.
			for size := 0; size < len(data); size += 1 + size/512 {
				i, err := Parse("x", data[:size:size])
				if err != nil {
					refused++
					continue
				}
				useMach(t, i)
			}
			if refused < machHeaderSize32 {
				t.Errorf("%d truncated files are refused", refused)
			}
		})
	}
}

func TestErrorsOfMachFilesNameThePlace(t *testing.T) {
	good := read(t, buildMach(t, "arm64").dylib)
	i, err := Parse("x", good)
	if err != nil {
		t.Fatal(err)
	}
	command := func(kind uint32) uint64 {
		for _, c := range i.mach.commands {
			if c.kind == kind {
				return c.off
			}
		}
		t.Fatalf("no load command %#x", kind)
		return 0
	}
	put := func(b []byte, off uint64, v uint32) { binary.LittleEndian.PutUint32(b[off:], v) }
	segment, symtab, starts, uuid := command(lcSegment64), command(lcSymtab), command(lcFunctionStarts), command(lcUUID)
	for _, test := range []struct {
		name   string
		damage func(b []byte)
		try    func(i *Image) error
		says   string
	}{
		{"number of commands", func(b []byte) { put(b, 16, 1<<31) }, nil, "load command "},
		{"size of commands", func(b []byte) { put(b, 20, 1<<31) }, nil, "load commands at 0x20: 0x80000000 bytes reach beyond"},
		{"size of a command", func(b []byte) { put(b, uuid+4, 7) }, nil, "impossible size 0x7"},
		{"short command", func(b []byte) { put(b, segment, lcUUID); put(b, segment+4, 16) }, nil, "16 bytes, want 24"},
		{"number of sections", func(b []byte) { put(b, segment+64, 1<<30) }, nil, "segment __TEXT at 0x20: 1073741824 sections of 80 bytes"},
		{"place of the symbols", func(b []byte) { put(b, symtab+8, 1<<31) }, symbolsError, "LC_SYMTAB symbols at 0x80000000"},
		{"size of the strings", func(b []byte) { put(b, symtab+20, 1<<31) }, symbolsError, "LC_SYMTAB strings at "},
		{"name of a symbol", func(b []byte) { put(b, uint64(i.mach.symtab.off+(i.mach.symtab.count-1)*nlistSize64), 1<<30) }, symbolsError, ": name at offset 0x40000000 is outside"},
		{"function starts", func(b []byte) { put(b, starts+12, 1<<31) }, startsError, "LC_FUNCTION_STARTS at "},
		{"section's place", func(b []byte) { put(b, segment+machSegmentSize64+48, 1<<31) }, textError, "section __text at 0x80000000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := append([]byte(nil), good...)
			test.damage(data)
			i, err := Parse("x", data)
			if test.try != nil {
				if err != nil {
					t.Fatal(err)
				}
				err = test.try(i)
			}
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "object: x: ") {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

func startsError(i *Image) error { _, err := i.FunctionStarts(); return err }
func textError(i *Image) error   { _, err := i.SectionData(i.Section(".text")); return err }

func FuzzMachO(f *testing.F) {
	for _, data := range machFixtures(f) {
		f.Add(data)
	}
	fat, _ := buildFat(f)
	f.Add(read(f, fat))
	f.Fuzz(func(t *testing.T, data []byte) {
		slices, err := ParseSlices("fuzz", data)
		if err != nil && !strings.HasPrefix(err.Error(), "object: fuzz: ") {
			t.Errorf("error %q does not name the file", err)
		}
		for _, s := range slices {
			if i, err := ParseArch("fuzz", data, s.Name); err == nil {
				useMach(t, i)
			}
		}
		i, err := Parse("fuzz", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "object: fuzz: ") {
				t.Errorf("error %q does not name the file", err)
			}
			return
		}
		useMach(t, i)
	})
}
