package object

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func number(t testing.TB, s string, base int) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		t.Fatalf("readelf printed %q where a number should be", s)
	}
	return v
}

var sectionLine = regexp.MustCompile(`^ *\[ *(\d+)\] (\S*) +\S+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) +([A-Za-z]*) +(\d+) +(\d+) +(\d+)$`)

func TestSectionsAsReadelfListsThem(t *testing.T) {
	forEachImage(t, func(t *testing.T, path string, i *Image) {
		count := 0
		for line := range strings.Lines(run(t, "readelf", "-SW", path)) {
			m := sectionLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if m == nil {
				continue
			}
			k := number(t, m[1], 10)
			if count++; k >= uint64(len(i.Sections())) {
				t.Fatalf("section %d of %d", k, len(i.Sections()))
			}
			s := i.Sections()[k]
			got := fmt.Sprintf("%s addr=%x off=%x size=%x es=%x link=%d info=%d align=%d alloc=%v write=%v exec=%v",
				s.Name, s.Addr, s.Off, s.Size, s.EntSize, s.Link, s.Info, s.Align, s.Alloc(), s.Writable(), s.Executable())
			want := fmt.Sprintf("%s addr=%x off=%x size=%x es=%x link=%s info=%s align=%s alloc=%v write=%v exec=%v",
				m[2], number(t, m[3], 16), number(t, m[4], 16), number(t, m[5], 16), number(t, m[6], 16), m[8], m[9], m[10],
				strings.Contains(m[7], "A"), strings.Contains(m[7], "W"), strings.Contains(m[7], "X"))
			if got != want {
				t.Errorf("section %d\n got %s\nwant %s", k, got, want)
			}
		}
		if count != len(i.Sections()) {
			t.Errorf("%d sections, want %d", len(i.Sections()), count)
		}
	})
}

var segmentLine = regexp.MustCompile(`^  ([A-Z_0-9]+) +0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+) 0x([0-9a-f]+) (R| )(W| )(E| ) (0x)?([0-9a-f]+)$`)

func TestSegmentsAsReadelfListsThem(t *testing.T) {
	forEachImage(t, func(t *testing.T, path string, i *Image) {
		count := 0
		out := run(t, "readelf", "-lW", path)
		for line := range strings.Lines(out) {
			m := segmentLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if m == nil {
				continue
			}
			if count >= len(i.Segments()) {
				t.Fatalf("%d segments, want more", len(i.Segments()))
			}
			s := i.Segments()[count]
			count++
			perm := strings.NewReplacer(" ", "-", "R", "r", "W", "w", "E", "x").Replace(m[6] + m[7] + m[8])
			name := strings.TrimPrefix(strings.TrimPrefix(s.Type.String(), "PT_"), "GNU_")
			got := fmt.Sprintf("%s off=%x addr=%x file=%x mem=%x %s align=%x", name, s.Off, s.Addr, s.FileSize, s.MemSize, s.Perm, s.Align)
			want := fmt.Sprintf("%s off=%x addr=%x file=%x mem=%x %s align=%x", strings.TrimPrefix(m[1], "GNU_"),
				number(t, m[2], 16), number(t, m[3], 16), number(t, m[4], 16), number(t, m[5], 16), perm, number(t, m[10], 16))
			if got != want {
				t.Errorf("segment %d\n got %s\nwant %s", count-1, got, want)
			}
		}
		if count != len(i.Segments()) {
			t.Errorf("%d segments, want %d", len(i.Segments()), count)
		}
		interp := ""
		if m := regexp.MustCompile(`interpreter: ([^\]]+)\]`).FindStringSubmatch(out); m != nil {
			interp = m[1]
		}
		if i.Interp() != interp {
			t.Errorf("interpreter %q, want %q", i.Interp(), interp)
		}
	})
}

func TestHeaderNotesAndDynamicTableAsReadelfPrintsThem(t *testing.T) {
	forEachImage(t, func(t *testing.T, path string, i *Image) {
		header := run(t, "readelf", "-hW", path)
		line := func(label string) string {
			_, rest, _ := strings.Cut(header, label+":")
			rest, _, _ = strings.Cut(rest, "\n")
			return strings.TrimSpace(rest)
		}
		if entry := fmt.Sprintf("%#x", i.Entry()); entry != line("Entry point address") {
			t.Errorf("entry %s, want %s", entry, line("Entry point address"))
		}
		word, _, _ := strings.Cut(line("  Type"), " ")
		want := map[string]Type{"EXEC": Executable, "DYN": Shared, "REL": Relocatable, "CORE": Core}[word]
		if i.Type != want {
			t.Errorf("type %v, want %v", i.Type, want)
		}
		machines := map[string]Arch{"Advanced Micro Devices X86-64": AMD64, "Intel 80386": I386, "AArch64": ARM64}
		if i.Arch != machines[line("Machine")] {
			t.Errorf("architecture %v, want %q", i.Arch, line("Machine"))
		}
		class := map[string]Class{"ELF32": Class32, "ELF64": Class64}[line("Class")]
		if i.Class != class || i.Format != ELF {
			t.Errorf("%v of class %v, want ELF of class %v", i.Format, i.Class, class)
		}
		id := ""
		if m := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindStringSubmatch(run(t, "readelf", "-n", path)); m != nil {
			id = m[1]
		}
		if i.ID() != id {
			t.Errorf("ID %q, want %q", i.ID(), id)
		}
		var needed []string
		name := ""
		for _, m := range regexp.MustCompile(`\((NEEDED|SONAME)\).*\[(.*)\]`).FindAllStringSubmatch(run(t, "readelf", "-dW", path), -1) {
			if m[1] == "NEEDED" {
				needed = append(needed, m[2])
			} else {
				name = m[2]
			}
		}
		if !slices.Equal(i.Dependencies(), needed) || i.SoName() != name {
			t.Errorf("needs %v, is %q, want %v, %q", i.Dependencies(), i.SoName(), needed, name)
		}
		if len(i.Sections()) == 0 || i.Type == Relocatable {
			return
		}
		bare := withoutSections(t, path)
		if bare.ID() != id || !slices.Equal(bare.Dependencies(), needed) || bare.SoName() != name {
			t.Errorf("without section headers: ID %q, needs %v, is %q, want %q, %v, %q", bare.ID(), bare.Dependencies(), bare.SoName(), id, needed, name)
		}
	})
}

// oracleSymbol is what identifies a symbol.
type oracleSymbol struct {
	name    string
	addr    uint64
	defined bool
	section string // in a relocatable file
}

// oracleFacts is what else readelf says of it, once for each table.
type oracleFacts struct {
	versions, rest map[string]bool
	dynamic        bool
}

var symbolLine = regexp.MustCompile(`^ *\d+: ([0-9a-f]+) +(\S+) (\S+) +(\S+) +\S+ +(?:\[.*\] )?(\S+) (.*)$`)

// readelfSymbols lists all symbols, without sections, files and the nameless.
func readelfSymbols(t testing.TB, path string, of Type) map[oracleSymbol]*oracleFacts {
	t.Helper()
	symbols := make(map[oracleSymbol]*oracleFacts)
	dynamic := false
	for line := range strings.Lines(run(t, "readelf", "-sW", path)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "Symbol table") {
			dynamic = strings.Contains(line, ".dynsym")
		}
		m := symbolLine.FindStringSubmatch(line)
		if m == nil || m[3] == "SECTION" || m[3] == "FILE" || m[6] == "" {
			continue
		}
		name, _, _ := strings.Cut(m[6], " (") // the number of the version
		name, version := splitVersion(name)
		key := oracleSymbol{name, number(t, m[1], 16), m[5] != "UND", ""}
		if of == Relocatable {
			key.section = m[5]
		}
		facts := symbols[key]
		if facts == nil {
			facts = &oracleFacts{make(map[string]bool), make(map[string]bool), false}
			symbols[key] = facts
		}
		size, err := strconv.ParseUint(m[2], 0, 64)
		if err != nil {
			t.Fatalf("size %q", m[2])
		}
		facts.versions[version] = true
		facts.rest[fmt.Sprintf("%d %s %s %s", size, m[3], m[4], m[5])] = true
		facts.dynamic = facts.dynamic || dynamic
	}
	return symbols
}

// oracleKey is what readelf's symbol is found by.
func oracleKey(s *Symbol, of Type) oracleSymbol {
	key := oracleSymbol{s.Name, s.Addr, s.Defined(), ""}
	if of == Relocatable {
		key.section = sectionAsReadelf(s)
	}
	return key
}

// asReadelf writes a symbol's facts as readelf does.
func asReadelf(s *Symbol) string {
	return fmt.Sprintf("%d %s %s %s", s.Size, strings.ToUpper(s.Kind.String()), strings.ToUpper(s.Binding.String()), sectionAsReadelf(s))
}

func sectionAsReadelf(s *Symbol) string {
	section := map[uint32]string{SectionUndef: "UND", SectionAbs: "ABS", SectionCommon: "COM"}[s.Section]
	if section == "" {
		section = strconv.Itoa(int(s.Section))
	}
	return section
}

func TestSymbolsAsReadelfListsThem(t *testing.T) {
	test := func(t *testing.T, path string, i *Image) {
		want := readelfSymbols(t, path, i.Type)
		list, err := i.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[oracleSymbol]bool)
		for k := range list {
			s := &list[k]
			key := oracleKey(s, i.Type)
			facts := want[key]
			if facts == nil {
				t.Errorf("%+v is not in readelf's list", *s)
				continue
			}
			if seen[key] {
				t.Errorf("%+v is there twice", *s)
			}
			seen[key] = true
			if !facts.rest[asReadelf(s)] {
				t.Errorf("%s: %q, want one of %v", s.Name, asReadelf(s), facts.rest)
			}
			if !facts.versions[s.Version] || s.Version == "" && len(facts.versions) > 1 {
				t.Errorf("%s: version %q, want one of %v", s.Name, s.Version, facts.versions)
			}
			if s.Dynamic != facts.dynamic {
				t.Errorf("%s: dynamic %v, want %v", s.Name, s.Dynamic, facts.dynamic)
			}
		}
		if len(list) != len(want) {
			t.Errorf("%d symbols, want %d", len(list), len(want))
		}
		if len(want) == 0 {
			t.Error("nothing was compared")
		}
	}
	forEachImage(t, test)
	forLargePrograms(t, test)
}

var relocLine = regexp.MustCompile(`^([0-9a-f]{8,16})  ([0-9a-f]{8,16}) (R_\S+) *(.*)$`)

// oracleReloc is a relocation as readelf prints it; RELR gives the place only.
type oracleReloc struct {
	offset    uint64
	kind, sym uint32
	addend    int64
}

// readelfRelocs lists the RELA or REL relocations and the places of the RELR ones.
func readelfRelocs(t testing.TB, path string, i *Image) (relocs []oracleReloc, relr []uint64) {
	t.Helper()
	inRELR := false
	for line := range strings.Lines(run(t, "readelf", "-rW", path)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "Relocation section") {
			inRELR = strings.Contains(line, ".relr")
		}
		if m := regexp.MustCompile(`^([0-9a-f]{16})$`).FindStringSubmatch(line); inRELR && m != nil {
			relr = append(relr, number(t, m[1], 16))
		}
		m := relocLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		info := number(t, m[2], 16)
		r := oracleReloc{offset: number(t, m[1], 16), kind: uint32(info), sym: uint32(info >> 32)}
		if i.Class == Class32 {
			r.kind, r.sym = uint32(info&0xff), uint32(info>>8)
			relocs = append(relocs, r)
			continue
		}
		fields := strings.Fields(m[4])
		sign := int64(1)
		if n := len(fields); n > 1 && fields[n-2] == "-" {
			sign = -1
		}
		if last := fields[len(fields)-1]; strings.HasPrefix(last, "-") {
			sign, fields[len(fields)-1] = -1, last[1:]
		}
		r.addend = sign * int64(number(t, fields[len(fields)-1], 16))
		relocs = append(relocs, r)
	}
	return relocs, relr
}

func TestRelocationsAsReadelfListsThem(t *testing.T) {
	forEachImage(t, func(t *testing.T, path string, i *Image) {
		if i.Type == Relocatable {
			if err := i.DynamicRelocations(func(r Reloc) bool { t.Errorf("%+v", r); return true }); err != nil {
				t.Error(err)
			}
			return
		}
		want, relr := readelfRelocs(t, path, i)
		packed := i.Arch != ARM64 // GNU ld 2.40 doesn't pack those of arm64
		if len(want)+len(relr) == 0 || packed && strings.Contains(t.Name(), "RELR") && len(relr) == 0 {
			t.Error("nothing is compared")
		}
		images := []*Image{i}
		if i.Type == Shared { // a static program's table is found by section only
			images = append(images, withoutSections(t, path))
		}
		for _, i := range images {
			var got []oracleReloc
			var places []uint64
			err := i.DynamicRelocations(func(r Reloc) bool {
				if r.FromTable == ".relr.dyn" || r.FromTable == "DT_RELR" {
					places = append(places, r.Offset)
					return true
				}
				o := oracleReloc{r.Offset, r.Type, r.SymIndex, r.Addend}
				if i.Class == Class32 {
					o.addend = 0 // readelf does not print what the place holds
				}
				got = append(got, o)
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d relocations differ from readelf's %d", i.Name(), len(got), len(want))
			}
			slices.Sort(places)
			slices.Sort(relr)
			if !slices.Equal(places, relr) {
				t.Errorf("%s: %d RELR places differ from readelf's %d", i.Name(), len(places), len(relr))
			}
		}
	})
}

// Data that holds addresses of functions: those of the table of program.
func TestRelativeTargetsNameTheFunctionsInData(t *testing.T) {
	for _, flags := range [][]string{
		{"-fPIE", "-pie"}, {"-fPIE", "-pie", "-Wl,-z,pack-relative-relocs"}, {"-fPIC", "-shared"}, {"-static-pie"}, i386PIE, i386Library,
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			path := compile(t, flags...)
			i := open(t, path)
			table := symbolsNamed(t, i, "table")
			if len(table) != 1 {
				t.Fatalf("%d symbols named table", len(table))
			}
			bare := withoutSections(t, path)
			for _, from := range []*Image{i, bare} {
				targets := make(map[uint64]uint64)
				if err := from.RelativeTargets(func(place, target uint64) { targets[place] = target }); err != nil {
					t.Fatal(err)
				}
				for k, name := range []string{"add", "sub", "visible", "add"} {
					place := table[0].Addr + uint64(k*i.Class.AddrSize())
					if want := symbolsNamed(t, i, name)[0].Addr; targets[place] != want {
						t.Errorf("%s: entry %d of the table is %#x, want %s at %#x", from.Name(), k, targets[place], name, want)
					}
				}
				pick := symbolsNamed(t, i, "pick")[0].Addr
				found := false
				for _, target := range targets {
					found = found || target == pick
				}
				if !found && !slices.Contains(flags, "-shared") {
					t.Errorf("%s: the resolver of the ifunc at %#x is no target", from.Name(), pick)
				}
			}
		})
	}
}

func TestPLTRangesAreTheirSections(t *testing.T) {
	i := open(t, library(t, "libc.so.6"))
	for _, r := range i.PLTRanges() {
		s := i.Section(r.Name)
		if s == nil || s.Addr != r.Start || s.Addr+s.Size != r.End || !s.Executable() {
			t.Errorf("%+v is not its section %+v", r, s)
		}
	}
	if len(i.PLTRanges()) == 0 {
		t.Error("libc has no PLT")
	}
}

// A program that exports nothing has no symbol in its hash table, which says nothing of how many there are.
func TestSymbolsOfAProgramThatExportsNothingAreFoundWithoutSections(t *testing.T) {
	dir := t.TempDir()
	source, path := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	if err := os.WriteFile(source, []byte("int puts(const char *); void _exit(int);\nvoid _start(void) { puts(\"x\"); _exit(0); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "gcc", "-O1", "-fPIE", "-pie", "-nostartfiles", "-Wl,--hash-style=gnu", "-o", path, source)
	sameTables(t, open(t, path), withoutSections(t, path))
	if len(symbolsNamed(t, withoutSections(t, path), "puts")) != 1 {
		t.Error("puts isn't among the symbols")
	}
}

// In a relocatable file two functions of one name may be at the same offset of their sections, as static
// functions of files that ld -r put together.
func TestNamesakesInSectionsOfTheirOwnAreTwo(t *testing.T) {
	dir := t.TempDir()
	var objects []string
	for _, name := range []string{"a", "b"} {
		source, path := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".o")
		text := fmt.Sprintf("__attribute__((section(\".text.%[1]s\"), used)) static int helper(int n) { return n * %[2]d; }\n", name, len(objects)+3)
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "gcc", "-O1", "-c", "-o", path, source)
		objects = append(objects, path)
	}
	both := filepath.Join(dir, "both.o")
	run(t, "gcc", append([]string{"-r", "-nostdlib", "-o", both}, objects...)...)
	i := open(t, both)
	found := symbolsNamed(t, i, "helper")
	if len(found) != 2 || found[0].Section == found[1].Section || found[0].Addr != found[1].Addr {
		t.Errorf("%+v, want two in sections of their own", found)
	}
	functions, err := i.FunctionSymbols()
	if err != nil || len(functions) != 2 {
		t.Errorf("functions %+v, %v", functions, err)
	}
}

// The tables without section headers, against those found by section.
func TestTablesAreFoundWithoutSectionHeaders(t *testing.T) {
	for _, build := range builds {
		if slices.Contains(build.flags, "-c") {
			continue // a relocatable file has no program headers to go by
		}
		t.Run(build.name, func(t *testing.T) {
			path := compile(t, build.flags...)
			sameTables(t, open(t, path), withoutSections(t, path))
		})
	}
	for _, name := range libraries {
		t.Run(name, func(t *testing.T) {
			path := library(t, name)
			sameTables(t, open(t, path), withoutSections(t, path))
		})
	}
}

func sameTables(t *testing.T, i, bare *Image) {
	t.Helper()
	list, err := bare.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	all, err := i.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	key := func(s *Symbol) string { return fmt.Sprintf("%s@%s %x %s", s.Name, s.Version, s.Addr, asReadelf(s)) }
	want := make(map[string]bool)
	for k := range all {
		if all[k].Dynamic {
			want[key(&all[k])] = true
		}
	}
	for k := range list {
		if !want[key(&list[k])] {
			t.Errorf("%+v is not among those found by section", list[k])
		}
	}
	if len(list) != len(want) {
		t.Errorf("%d dynamic symbols, want %d", len(list), len(want))
	}
	data, addr, err := bare.EHFrame()
	if err != nil {
		t.Fatal(err)
	}
	wantData, wantAddr, err := i.EHFrame()
	if err != nil || len(wantData) == 0 {
		t.Fatalf("%d bytes of .eh_frame, %v", len(wantData), err)
	}
	if hdr, _, _ := i.EHFrameHdr(); hdr == nil {
		if data != nil {
			t.Error("there is no .eh_frame_hdr, yet .eh_frame was found")
		}
		return
	}
	if addr != wantAddr || !strings.HasPrefix(string(wantData), string(data)) || len(data) == 0 {
		t.Errorf(".eh_frame of %d bytes at %#x, want %d at %#x", len(data), addr, len(wantData), wantAddr)
	}
	// What follows may only be the terminator and further tables behind it.
	if rest := wantData[len(data):]; len(rest) > 0 && i.ByteOrder.Uint32(rest) != 0 {
		t.Errorf(".eh_frame ends %d bytes early", len(rest))
	}
	hdr, addr, err := bare.EHFrameHdr()
	wantHdr, wantAddr, _ := i.EHFrameHdr()
	if err != nil || addr != wantAddr || string(hdr) != string(wantHdr) {
		t.Errorf(".eh_frame_hdr of %d bytes at %#x, %v, want %d at %#x", len(hdr), addr, err, len(wantHdr), wantAddr)
	}
}

// The machine numbers are those of debug/elf, which has them from the gABI.
func TestArchitecturesHaveNames(t *testing.T) {
	for arch, want := range map[Arch]string{AMD64: "amd64", I386: "386", ARM: "arm", ARM64: "arm64", Arch(elf.EM_RISCV): "machine 243"} {
		if arch.String() != want {
			t.Errorf("%d is %q, want %q", arch, arch, want)
		}
	}
}
