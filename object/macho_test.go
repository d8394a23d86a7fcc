package object

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestMachHeadersSegmentsAndSectionsAsTheStandardLibraryReadsThem(t *testing.T) {
	forEachMach(t, func(t *testing.T, path string, i *Image) {
		want, err := macho.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		archs := map[macho.Cpu]Arch{macho.Cpu386: I386, macho.CpuAmd64: AMD64, macho.CpuArm: ARM, macho.CpuArm64: ARM64, macho.CpuPpc: PPC}
		types := map[macho.Type]Type{macho.TypeObj: Relocatable, macho.TypeExec: Executable, macho.TypeDylib: Shared, 10: DebugCompanion}
		if i.Format != MachO || i.Arch != archs[want.Cpu] || i.Type != types[want.Type] || i.ByteOrder.String() != want.ByteOrder.String() {
			t.Errorf("%v %v %v %v, want Mach-O %v %v %v", i.Format, i.Arch, i.Type, i.ByteOrder, want.Cpu, want.Type, want.ByteOrder)
		}
		if wide := want.Magic == macho.Magic64; wide != (i.Class == Class64) {
			t.Errorf("class %d, magic %#x", i.Class, want.Magic)
		}
		var segments []*macho.Segment
		for _, load := range want.Loads {
			if s, ok := load.(*macho.Segment); ok {
				segments = append(segments, s)
			}
		}
		if len(segments) != len(i.Segments()) {
			t.Fatalf("%d segments, want %d", len(i.Segments()), len(segments))
		}
		for k, s := range i.Segments() {
			got := fmt.Sprintf("%s %#x %#x %#x %#x", s.Name, s.Addr, s.MemSize, s.Off, s.FileSize)
			w := segments[k]
			if want := fmt.Sprintf("%s %#x %#x %#x %#x", w.Name, w.Addr, w.Memsz, w.Offset, w.Filesz); got != want {
				t.Errorf("segment %d: %s, want %s", k, got, want)
			}
			if perm := machPerm(w.Prot); perm != s.Perm {
				t.Errorf("segment %d: %v, want %v", k, s.Perm, perm)
			}
			if s.Name == "__TEXT" && i.BaseAddr() != s.Addr {
				t.Errorf("base address %#x, want %#x", i.BaseAddr(), s.Addr)
			}
		}
		if len(i.Sections()) != len(want.Sections)+1 {
			t.Fatalf("%d sections, want %d", len(i.Sections())-1, len(want.Sections))
		}
		for k := range i.Sections()[1:] {
			sameSection(t, i, &i.Sections()[k+1], want.Sections[k])
		}
	})
}

// sameSection compares a section's header and contents.
func sameSection(t *testing.T, i *Image, s *Section, want *macho.Section) {
	t.Helper()
	if s.Name != want.Name || s.Segment != want.Seg || s.Addr != want.Addr || s.Size != want.Size || s.Align != 1<<want.Align {
		t.Errorf("%+v, want %+v", *s, want.SectionHeader)
	}
	const pureCode, someCode, debug = 0x80000000, 0x400, 0x02000000
	if code := want.Flags&(pureCode|someCode) != 0; code != s.Executable() {
		t.Errorf("%s: executable %v", s.Name, s.Executable())
	}
	if alloc := want.Flags&debug == 0 && want.Seg != "__DWARF"; alloc != s.Alloc() {
		t.Errorf("%s: loaded %v", s.Name, s.Alloc())
	}
	if i.Section(s.Segment+","+s.Name).Name != s.Name || i.Section(s.Name) == nil {
		t.Errorf("%s,%s is not found by its name", s.Segment, s.Name)
	}
	if elf.SectionType(s.Type) == elf.SHT_NOBITS {
		if zeroFill := want.Flags&0xff == 1 || want.Flags&0xff == 0x12; !zeroFill && i.Type != DebugCompanion {
			t.Errorf("%s has no bytes", s.Name)
		}
		return
	}
	if s.Off != uint64(want.Offset) || s.FileSize != want.Size {
		t.Errorf("%s: at %#x, %#x bytes, want %#x, %#x", s.Name, s.Off, s.FileSize, want.Offset, want.Size)
	}
	data, err := want.Data()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(s.Name, "__zdebug_") {
		return // inflated here; compared with the DWARF reader's below
	}
	if got, err := i.SectionData(s); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%s: %d bytes, %v, want %d", s.Name, len(got), err, len(data))
	}
}

// nmLine is a line of llvm-nm -m.
var nmLine = regexp.MustCompile(`^([0-9a-f]*) +\(([^)]*)\) (.*)$`)

func TestMachSymbolsAsNmListsThem(t *testing.T) {
	realtest.Need(t, realtest.LLVMNm)
	forEachMach(t, func(t *testing.T, path string, i *Image) {
		list, err := i.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for k := range list {
			got = append(got, asNm(i, &list[k]))
		}
		for line := range strings.Lines(tool(t, realtest.LLVMNm, "-m", "--no-sort", path)) {
			if m := nmLine.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
				want = append(want, nmWords(m))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("symbols\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// nmWords brings a line of llvm-nm into the form of asNm: some words are about what
// Symbol leaves out.
func nmWords(m []string) string {
	rest, _, _ := strings.Cut(m[3], " (from ")
	rest = strings.TrimSuffix(rest, " (dynamically looked up)")
	for _, word := range []string{"[referenced dynamically] ", "[no dead strip] ", "[alt entry] ", "[cold func] "} {
		rest = strings.ReplaceAll(rest, word, "")
	}
	// What was private before linking is local afterwards.
	rest = strings.ReplaceAll(rest, "non-external (was a private external)", "non-external")
	rest = strings.ReplaceAll(rest, "weak private external", "private external")
	return strings.TrimLeft(m[1], "0") + " " + m[2] + " " + rest
}

// asNm writes a symbol as llvm-nm does.
func asNm(i *Image, s *Symbol) string {
	place, addr := "undefined", ""
	switch {
	case s.Section == SectionAbs:
		place = "absolute"
	case s.Section == SectionCommon:
		place = "common"
	case s.Defined():
		in := &i.Sections()[s.Section]
		place = in.Segment + "," + in.Name
	}
	if s.Defined() {
		addr = strings.TrimLeft(fmt.Sprintf("%x", s.Addr), "0")
	}
	reach := "external"
	switch {
	case s.Binding == Local:
		reach = "non-external"
	case !s.Dynamic:
		reach = "private external"
	case s.Binding == Weak:
		reach = "weak external"
	}
	thumb := ""
	if s.Thumb {
		thumb = "[Thumb] "
	}
	return addr + " " + place + " " + reach + " " + thumb + s.Name
}

func TestMachKindsOfSymbols(t *testing.T) {
	for _, arch := range []string{"arm64", "x86_64"} {
		f := buildMach(t, arch)
		i := open(t, f.dylib)
		for name, want := range map[string]Kind{
			"_fun": Func, "_helper": Func, "-[Thing twice:]": Func, "__ZN2ns1fIlEEiT_": Func,
			"_common_data": Object, "_tl$tlv$init": TLS, "_elsewhere": NoType,
		} {
			found := symbolsNamed(t, i, name)
			if len(found) != 1 || found[0].Kind != want {
				t.Errorf("%s: %s is %+v, want %v", arch, name, found, want)
			}
		}
		// The linker's mark for the header is no function, though it is "in" __text.
		for _, s := range symbolsNamed(t, open(t, f.program), "__mh_execute_header") {
			if s.IsFunc() {
				t.Errorf("%s: %+v", arch, s)
			}
		}
	}
}

func TestELFNamesFindMachSections(t *testing.T) {
	f := buildMach(t, "x86_64")
	i, d := open(t, f.dylib), open(t, f.dwarfFile())
	for _, test := range []struct {
		in         *Image
		name, want string
	}{
		{i, ".text", "__TEXT,__text"}, {i, ".eh_frame", "__TEXT,__eh_frame"}, {i, "__unwind_info", "__TEXT,__unwind_info"},
		{i, ".debug_info", ""}, {i, ".no_such", ""}, {i, "", ""}, {i, "__TEXT,__data", ""}, {i, "__DATA,__data", "__DATA,__data"},
		{d, ".debug_info", "__DWARF,__debug_info"}, {d, ".debug_abbrev", "__DWARF,__debug_abbrev"}, {d, ".apple_namespaces", "__DWARF,__apple_namespac"},
	} {
		got := ""
		if s := test.in.Section(test.name); s != nil {
			got = s.Segment + "," + s.Name
		}
		if got != test.want {
			t.Errorf("%q finds %q, want %q", test.name, got, test.want)
		}
	}
	// A name that is longer than the file's field for it: of a DWARF 5 object.
	out := f.dir + "/dwarf5.o"
	tool(t, realtest.Clang, "-target", "arm64-apple-macos11", "-gdwarf-5", "-nostdinc", "-ffreestanding", "-c", f.dir+"/a.c", "-o", out)
	if s := open(t, out).Section(".debug_str_offsets"); s == nil || s.Name != "__debug_str_offs" {
		t.Errorf(".debug_str_offsets finds %+v", s)
	}
}

func TestMachUnwindTables(t *testing.T) {
	for _, arch := range []string{"arm64", "x86_64"} {
		f := buildMach(t, arch)
		i, d := open(t, f.dylib), open(t, f.dwarfFile())
		if data, addr, err := i.UnwindInfo(); err != nil || len(data) == 0 || addr != i.Section("__TEXT,__unwind_info").Addr {
			t.Errorf("%s: unwind table %d bytes at %#x, %v", arch, len(data), addr, err)
		}
		if s := i.Section(".eh_frame"); s != nil {
			data, addr, err := i.EHFrame()
			if want, _ := i.ReadAddr(s.Addr, s.Size); err != nil || addr != s.Addr || !bytes.Equal(data, want) {
				t.Errorf("%s: .eh_frame %d bytes at %#x, %v", arch, len(data), addr, err)
			}
		} else if arch == "x86_64" {
			t.Error("no .eh_frame")
		}
		// A dSYM has the headers of these sections but not their bytes, save that
		// dsymutil copies .eh_frame.
		if data, _, err := d.UnwindInfo(); len(data) > 0 || err != nil {
			t.Errorf("%s: dSYM: %d bytes, %v", arch, len(data), err)
		}
		copied, _, err := d.EHFrame()
		if own, _, _ := i.EHFrame(); err != nil || len(copied) > 0 && !bytes.Equal(copied, own) {
			t.Errorf("%s: dSYM: .eh_frame %d bytes, %v", arch, len(copied), err)
		}
	}
}

func TestGoMachDebugSectionsAreInflated(t *testing.T) {
	path, plainPath := buildGo(t, "amd64", "-ldflags=-compressdwarf=true"), buildGo(t, "amd64", "-ldflags=-compressdwarf=false")
	packed, plain := open(t, path), open(t, plainPath)
	inflated := 0
	for _, name := range []string{".debug_info", ".debug_abbrev", ".debug_line", ".debug_frame", ".debug_rnglists", ".debug_loclists", ".debug_str_offsets"} {
		s, want := packed.Section(name), plain.Section(name)
		if s == nil || want == nil {
			if (s == nil) != (want == nil) {
				t.Errorf("%s: %v and %v", name, s, want)
			}
			continue
		}
		if strings.HasPrefix(s.Name, "__zdebug_") {
			inflated++
		}
		got, err := packed.SectionData(s)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := plain.SectionData(want); err != nil || len(data) != len(got) {
			t.Errorf("%s: %d bytes, want %d, %v", name, len(got), len(data), err)
		}
	}
	if inflated < 3 {
		t.Errorf("%d compressed sections", inflated)
	}
	f, err := macho.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The standard library inflates for itself and finds units in the same bytes.
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	if e, err := d.Reader().Next(); err != nil || e == nil {
		t.Fatalf("no unit: %v", err)
	}
}
