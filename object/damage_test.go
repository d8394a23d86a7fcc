package object

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenRefusesWhatIsNoImage(t *testing.T) {
	dir := t.TempDir()
	empty, text := filepath.Join(dir, "empty"), filepath.Join(dir, "text")
	for path, data := range map[string]string{empty: "", text: "#!/bin/sh\nexec true\n"} {
		if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrUnknownFormat) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: %v", err)
	}
}

func TestNamesOutliveTheImage(t *testing.T) {
	path := library(t, "libc.so.6")
	i, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := i.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
	}
	found := false
	for _, s := range symbols {
		found = found || s.Name == "malloc"
	}
	if !found {
		t.Error("malloc is not among the symbols")
	}
	if _, err := i.ReadAddr(i.Section(".text").Addr, 1); err == nil {
		t.Error("a closed image still gives bytes")
	}
}

func TestErrorsNameFileSectionAndOffset(t *testing.T) {
	path := compile(t)
	section := func(i *Image, name string) int { // offset of its header
		shoff := int(i.ByteOrder.Uint64(all(t, i)[40:]))
		for k := range i.sections {
			if i.sections[k].Name == name {
				return shoff + 64*k
			}
		}
		t.Fatalf("no %s", name)
		return 0
	}
	last := open(t, path).Section(".symtab").Size/24 - 1 // symbol: one that has a name
	for _, test := range []struct {
		name   string
		damage func(i *Image, b []byte)
		try    func(i *Image) error
		says   string
	}{
		{"entry size of .symtab", func(i *Image, b []byte) { b[section(i, ".symtab")+56] = 7 }, symbolsError, "object: x: section .symtab at 0x"},
		{"entry size of .symtab", func(i *Image, b []byte) { b[section(i, ".symtab")+56] = 7 }, symbolsError, "entry size 7, want 24"},
		{"size of .symtab", func(i *Image, b []byte) { b[section(i, ".symtab")+32+6] = 1 }, symbolsError, "reach beyond the end of the file"},
		{"strings of .symtab", func(i *Image, b []byte) { b[section(i, ".symtab")+40] = 200 }, symbolsError, "string table index 200"},
		{"name of a symbol", func(i *Image, b []byte) {
			binary.LittleEndian.PutUint32(b[i.Section(".symtab").Off+24*last:], 1<<30)
		}, symbolsError, fmt.Sprintf("symbol %d: name at offset 0x40000000", last)},
		{"size of .rela.dyn", func(i *Image, b []byte) { b[section(i, ".rela.dyn")+32]++ }, relocsError, "relocations .rela.dyn"},
		{"offset of .eh_frame", func(i *Image, b []byte) { b[section(i, ".eh_frame")+24+7] = 0xff }, ehFrameError, "section .eh_frame at 0xff"},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := read(t, path)
			good, err := Parse("x", data)
			if err != nil {
				t.Fatal(err)
			}
			test.damage(good, data)
			i, err := Parse("x", data)
			if err != nil {
				t.Fatal(err)
			}
			err = test.try(i)
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "object: x: ") {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

func symbolsError(i *Image) error { _, err := i.Symbols(); return err }
func relocsError(i *Image) error  { return i.DynamicRelocations(func(Reloc) bool { return true }) }
func ehFrameError(i *Image) error { _, _, err := i.EHFrame(); return err }

func TestBadHeadersAreErrors(t *testing.T) {
	path := compile(t)
	for _, test := range []struct {
		name   string
		damage func(b []byte) []byte
		says   string
	}{
		{"class", func(b []byte) []byte { b[4] = 3; return b }, "class 3"},
		{"byte order", func(b []byte) []byte { b[5] = 0; return b }, "byte order 0"},
		{"short header", func(b []byte) []byte { return b[:50] }, "50 bytes, want 64"},
		{"truncated", func(b []byte) []byte { return b[:len(b)/2] }, "section headers at 0x"},
		{"program header size", func(b []byte) []byte { b[54] = 8; return b }, "program headers at 0x40: entry size 8, want 56"},
		{"program header offset", func(b []byte) []byte { b[39] = 0xff; return b }, "program headers at 0xff"},
		{"section header size", func(b []byte) []byte { b[58] = 3; return b }, "entry size 3, want 64"},
		{"section names", func(b []byte) []byte { b[62] = 0xfe; return b }, "index 254 of the names' section"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Parse("x", test.damage(read(t, path))); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

// A file of very many names that are each nearly the whole string table would take
// hours; its names are cut off instead.
func TestOverlappingNamesCostLittle(t *testing.T) {
	table := newStrings(append([]byte(strings.Repeat("x", 1<<20)), 0))
	total := 0
	for k := range 1 << 20 {
		name, ok := table.at(uint32(k))
		if !ok {
			break
		}
		total += len(name)
	}
	if total > 20<<20 {
		t.Errorf("%d bytes of names from one megabyte", total)
	}
}

// use calls everything that reads the image.
func use(t *testing.T, i *Image) {
	t.Helper()
	list, _ := i.Symbols()
	if len(list) > int(i.size)+256 {
		t.Errorf("%d symbols from %d bytes", len(list), int(i.size))
	}
	for k := range i.Sections() {
		i.SectionData(&i.Sections()[k])
	}
	for _, s := range i.Segments() {
		if b, err := i.ReadAddr(s.Addr, s.FileSize); err == nil && uint64(len(b)) != s.FileSize {
			t.Errorf("%d bytes, want %d", len(b), s.FileSize)
		}
	}
	i.EHFrame()
	i.EHFrameHdr()
	i.GnuDebugLink()
	i.GnuDebugAltLink()
	i.packageHolds(0)
	i.FunctionSymbols()
	i.BaseAddr()
	i.RelativeTargets(func(_, _ uint64) {})
	slots := 0
	i.VisitSlots(func(*Slot) bool {
		slots++
		return true
	})
	if slots > int(i.size) {
		t.Errorf("%d slots from %d bytes", slots, int(i.size))
	}
	i.PLTRanges()
	i.Dependencies()
	i.SoName()
	i.Interp()
	i.ID()
	i.SectionAt(i.Entry())
}

// Every byte of the headers and tables of a small program, flipped one at a time.
func TestFlippedBytesDoNoHarm(t *testing.T) {
	path := compile(t, "-fPIC", "-shared", "-s")
	data := read(t, path)
	i := open(t, path)
	spans := [][2]uint64{{0, 64 + 56*uint64(len(i.Segments()))}, {uint64(len(data)) - 64*uint64(len(i.Sections())), uint64(len(data))}}
	for _, name := range []string{".dynamic", ".gnu.hash", ".dynsym", ".gnu.version", ".gnu.version_r", ".rela.dyn", ".eh_frame_hdr", ".note.gnu.build-id"} {
		if s := i.Section(name); s != nil {
			spans = append(spans, [2]uint64{s.Off, s.Off + s.FileSize})
		}
	}
	parsed := 0
	for _, span := range spans {
		for at := span[0]; at < span[1]; at++ {
			for _, flip := range []byte{0xff, 0x80, 0x01} {
				data[at] ^= flip
				for _, bare := range []bool{false, true} {
					copied := data
					if bare {
						copied = append([]byte(nil), data...)
						clear(copied[40:48])
						clear(copied[58:64])
					}
					if i, err := Parse("x", copied); err == nil {
						use(t, i)
						parsed++
					}
				}
				data[at] ^= flip
			}
		}
	}
	if parsed == 0 {
		t.Error("nothing could be parsed")
	}
}

func FuzzParse(f *testing.F) {
	// Small images, so that the fuzzer reaches all of their tables.
	for _, flags := range [][]string{
		{"-fPIC", "-shared", "-nostdlib", "-s"}, {"-fPIC", "-shared", "-nostdlib", "-g", "-gz"}, {"-m32", "-fPIC", "-shared", "-nostdlib"}, {"-c"},
	} {
		f.Add(read(f, compile(f, append(flags, "-Wl,-z,noseparate-code")...)), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, bare bool) {
		if bare && len(data) > 64 {
			data = append([]byte(nil), data...)
			clear(data[40:48])
			clear(data[58:64])
		}
		i, err := Parse("fuzz", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "object: fuzz: ") {
				t.Errorf("error %q does not name the file", err)
			}
			return
		}
		use(t, i)
	})
}
