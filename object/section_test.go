package object

import (
	"bytes"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestCompressedSectionsAreInflated(t *testing.T) {
	plainPath := compile(t, "-g", "-gz=none")
	plain := open(t, plainPath)
	for _, test := range []struct{ option, section string }{
		{"zlib", ".debug_info"}, {"zlib-gabi", ".debug_info"}, {"zstd", ".debug_info"}, {"zlib-gnu", ".zdebug_info"},
	} {
		t.Run(test.option, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			run(t, "objcopy", "--compress-debug-sections="+test.option, plainPath, path)
			i := open(t, path)
			for _, name := range []string{".debug_info", ".debug_line", ".debug_str", ".debug_abbrev"} {
				s := i.Section(name)
				if s == nil {
					t.Fatalf("no %s", name)
				}
				got, err := i.SectionData(s)
				if err != nil {
					t.Fatal(err)
				}
				want, err := plain.SectionData(plain.Section(name))
				if err != nil || len(want) == 0 {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes differ from the %d uncompressed ones", name, len(got), len(want))
				}
			}
			s := i.Section(test.section)
			if s == nil || s.FileSize >= plain.Section(".debug_info").FileSize {
				t.Fatalf("%s is not compressed: %+v", test.section, s)
			}
			damageCompressed(t, path, s)
		})
	}
}

// damageCompressed changes a compressed section in several ways; each must be an
// error that names the file and the section, or give the right number of bytes.
func damageCompressed(t *testing.T, path string, s *Section) {
	t.Helper()
	for _, change := range []struct {
		name string
		do   func(section []byte)
	}{
		{"contents", func(b []byte) { clear(b[len(b)/2:]) }},
		{"size too small", func(b []byte) { copy(b[4:], []byte{0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0}) }},
		{"size impossible", func(b []byte) { copy(b[4:], bytes.Repeat([]byte{0x7f}, 12)) }},
		{"kind", func(b []byte) { b[0] = 77 }},
	} {
		data := read(t, path)
		change.do(data[s.Off : s.Off+s.FileSize])
		i, err := Parse("x", data)
		if err != nil {
			t.Fatal(err)
		}
		_, err = i.SectionData(i.Section(".debug_info"))
		if err == nil {
			t.Errorf("%s: no error", change.name)
		} else if !strings.HasPrefix(err.Error(), "object: x: section "+s.Name+" at 0x") {
			t.Errorf("%s: error %q", change.name, err)
		}
	}
}

func TestLyingSizesTakeNoMemory(t *testing.T) {
	// A valid header that promises a gigabyte from a megabyte that is none.
	packed := append([]byte{0x78, 0x9c}, make([]byte, 1<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := memoryContents(nil).inflateZlib(packed, 1<<30); err == nil {
		t.Fatal("no error")
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 32<<20 {
		t.Errorf("%d bytes were taken", taken)
	}
}

func TestMiniDebugInfoNamesWhatIsStripped(t *testing.T) {
	dir := t.TempDir()
	path := compile(t, "-fPIE", "-pie", "-g")
	full := open(t, path)
	symbols, err := full.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	// As distributions do it: the functions that .dynsym lacks.
	var keep strings.Builder
	var want []Symbol
	for _, s := range symbols {
		if s.IsFunc() && !s.Dynamic {
			keep.WriteString(s.Name + "\n")
			want = append(want, s)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("keep"), []byte(keep.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	run(t, "objcopy", "--only-keep-debug", path, in("debug"))
	run(t, "objcopy", "-S", "--remove-section", ".comment", "--keep-symbols="+in("keep"), in("debug"), in("mini"))
	run(t, "xz", "-k", in("mini"))
	run(t, "strip", "--strip-all", "-o", in("stripped"), path)
	run(t, "objcopy", "--add-section", ".gnu_debugdata="+in("mini.xz"), in("stripped"), in("out"))

	i := open(t, in("out"))
	if i.Section(".symtab") != nil {
		t.Fatal("the program is not stripped")
	}
	found := make(map[oracleSymbol]Symbol)
	got, err := i.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got {
		found[oracleSymbol{s.Name, s.Addr, s.Defined(), ""}] = s
	}
	if len(want) < 4 {
		t.Fatalf("only %d functions to find", len(want))
	}
	for _, w := range want {
		s, ok := found[oracleSymbol{w.Name, w.Addr, true, ""}]
		if !ok {
			t.Errorf("%s at %#x is missing", w.Name, w.Addr)
			continue
		}
		if s.Size != w.Size || s.Kind != w.Kind || s.Section != w.Section || s.Source != GnuDebugdata {
			t.Errorf("%+v, want %+v", s, w)
		}
	}

	// Damaged, it costs its own symbols only.
	data := read(t, in("out"))
	s := i.Section(".gnu_debugdata")
	clear(data[s.Off+s.FileSize/2:][:40])
	broken, err := Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	list, err := broken.Symbols()
	if err == nil || !strings.Contains(err.Error(), "object: x: section .gnu_debugdata at 0x") {
		t.Errorf("error %v", err)
	}
	if len(list) == 0 || len(list) >= len(got) {
		t.Errorf("%d symbols are left of %d", len(list), len(got))
	}
	debugFile(t, path, in("debug"))
}

// debugFile reads a separate debug file, whose loaded sections are empty.
func debugFile(t *testing.T, path, debugPath string) {
	t.Helper()
	whole, debug := open(t, path), open(t, debugPath)
	if whole.ID() != debug.ID() || whole.ID() == "" {
		t.Errorf("IDs %q and %q", whole.ID(), debug.ID())
	}
	if data, _, err := debug.EHFrame(); len(data) > 0 || err != nil {
		t.Errorf("the debug file has %d bytes of .eh_frame, %v", len(data), err)
	}
	static := 0
	want, err := whole.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range want {
		if s.Source == Symtab {
			static++
		}
	}
	if got, err := debug.Symbols(); err != nil || len(got) != static {
		t.Errorf("the debug file has %d symbols, %v, want %d", len(got), err, static)
	}
}

func TestDebugLinkIsRead(t *testing.T) {
	dir := t.TempDir()
	path, debug, out := compile(t, "-g"), filepath.Join(dir, "some.debug"), filepath.Join(dir, "out")
	run(t, "objcopy", "--only-keep-debug", path, debug)
	run(t, "objcopy", "--add-gnu-debuglink="+debug, path, out)
	name, crc, ok := open(t, out).GnuDebugLink()
	if want := crc32.ChecksumIEEE(read(t, debug)); !ok || name != "some.debug" || crc != want {
		t.Errorf("link %q, %#x, %v, want some.debug, %#x", name, crc, ok, want)
	}
	if name, _, ok := open(t, path).GnuDebugLink(); ok {
		t.Errorf("a program without one links to %q", name)
	}
}

func TestReadAddrGivesTheBytesOfTheFile(t *testing.T) {
	forEachImage(t, func(t *testing.T, path string, i *Image) {
		if i.Type == Relocatable {
			if _, err := i.ReadAddr(0, 1); !errors.Is(err, ErrNotMapped) {
				t.Errorf("a relocatable file: %v", err)
			}
			return
		}
		for _, name := range []string{".text", ".rodata", ".data", ".eh_frame"} {
			s := i.Section(name)
			if s == nil && name == ".data" {
				continue // not every program has one
			}
			if s == nil {
				t.Fatalf("no %s", name)
			}
			want, err := i.SectionData(s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := i.ReadAddr(s.Addr, s.Size)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
			if at := i.SectionAt(s.Addr + s.Size - 1); at == nil || at.Name != name {
				t.Errorf("section at the end of %s is %+v", name, at)
			}
		}
		bss := i.Section(".bss")
		if b, err := i.ReadAddr(bss.Addr+bss.Size-1, 1); !errors.Is(err, ErrNotMapped) {
			t.Errorf(".bss gives %d bytes, %v", len(b), err)
		}
		for _, wild := range [][2]uint64{{1<<64 - 1, 1}, {1<<64 - 1, 1<<64 - 1}, {i.Section(".text").Addr, 1<<64 - 1}, {0x10, 1 << 40}} {
			if b, err := i.ReadAddr(wild[0], wild[1]); !errors.Is(err, ErrNotMapped) {
				t.Errorf("ReadAddr(%#x, %#x) gives %d bytes, %v", wild[0], wild[1], len(b), err)
			}
		}
	})
}

// Big-endian and 32-bit files of no particular machine, which objcopy makes of any
// bytes on every host.
func TestBothByteOrdersAndClassesAreRead(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "some.txt")
	if err := os.WriteFile(in, []byte("hello\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"elf32-big", "elf64-big", "elf32-little", "elf64-little"} {
		t.Run(form, func(t *testing.T) {
			path := filepath.Join(dir, form)
			run(t, "objcopy", "-I", "binary", "-O", form, in, path)
			i := open(t, path)
			if big := i.ByteOrder.String() == "BigEndian"; big != strings.HasSuffix(form, "big") || int(i.Class) != map[bool]int{true: 64, false: 32}[strings.HasPrefix(form, "elf64")] {
				t.Errorf("byte order %v, class %d", i.ByteOrder, i.Class)
			}
			if data, err := i.SectionData(i.Section(".data")); err != nil || string(data) != "hello\n" {
				t.Errorf(".data %q, %v", data, err)
			}
			list, err := i.Symbols()
			if err != nil || len(list) != 3 {
				t.Fatalf("%d symbols, %v, want 3", len(list), err)
			}
			want := readelfSymbols(t, path, i.Type)
			for k := range list {
				s := &list[k]
				if facts := want[oracleKey(s, i.Type)]; facts == nil || !facts.rest[asReadelf(s)] {
					t.Errorf("%+v is not what readelf says", *s)
				}
			}
		})
	}
}
