package object

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestMachEntryDependenciesAndNames(t *testing.T) {
	f := buildMach(t, "arm64")
	lib, program := open(t, f.dylib), open(t, f.program)
	if lib.SoName() != "@rpath/libt.dylib" || lib.Entry() != 0 {
		t.Errorf("library %q, entry %#x", lib.SoName(), lib.Entry())
	}
	if deps := program.Dependencies(); !slices.Equal(deps, []string{"@rpath/libt.dylib"}) {
		t.Errorf("needs %q", deps)
	}
	if program.Interp() != "/usr/lib/dyld" {
		t.Errorf("loader %q", program.Interp())
	}
	if start := symbolsNamed(t, program, "_start"); len(start) != 1 || start[0].Addr != program.Entry() {
		t.Errorf("entry %#x, want that of %+v", program.Entry(), start)
	}
	if ranges := lib.PLTRanges(); len(ranges) == 0 || ranges[0].Name != "__stubs" {
		t.Errorf("stubs %+v", ranges)
	}
}

// Old programs start with the state of a thread (LC_UNIXTHREAD) instead of LC_MAIN;
// such a command is put behind the others here.
func TestEntryFromAThreadsState(t *testing.T) {
	realtest.Need(t, realtest.LLVMObjdump)
	for arch, state := range map[string]struct{ flavor, words, pc int }{"arm64": {6, 68, 32}, "x86_64": {4, 42, 16}} {
		f := buildMach(t, arch)
		i, data := open(t, f.program), read(t, f.program)
		o := i.ByteOrder
		size := 16 + 4*state.words
		end := machHeaderSize64 + int(o.Uint32(data[20:]))
		if free := int(i.Section(".text").Off) - end; free < size {
			t.Fatalf("%s: %d bytes are free behind the load commands", arch, free)
		}
		for _, c := range i.mach.commands {
			if c.kind == lcMain {
				o.PutUint32(data[c.off:], 0x7f) // a command that nobody knows is passed over
			}
		}
		for k, word := range []int{lcUnixThread, size, state.flavor, state.words} {
			o.PutUint32(data[end+4*k:], uint32(word))
		}
		clear(data[end+16:][:4*state.words])
		o.PutUint64(data[end+16+8*state.pc:], 0x123456789a)
		o.PutUint32(data[16:], o.Uint32(data[16:])+1)
		o.PutUint32(data[20:], o.Uint32(data[20:])+uint32(size))
		path := t.TempDir() + "/old"
		write(t, path, data)
		said := tool(t, realtest.LLVMObjdump, "--macho", "--private-headers", path)
		if !regexp.MustCompile(`(pc|rip)\s+0x0*123456789a`).MatchString(said) {
			t.Fatalf("%s: the program counter is put at the wrong place", arch)
		}
		if got := open(t, path).Entry(); got != 0x123456789a {
			t.Errorf("%s: entry %#x", arch, got)
		}
		o.PutUint32(data[end+8:], 99) // a kind of state that is not known
		if odd, err := Parse("x", data); err != nil || odd.Entry() != 0 {
			t.Errorf("%s: unknown state: entry %#x, %v", arch, odd.Entry(), err)
		}
	}
}

func TestEncryptedPartIsTold(t *testing.T) {
	path := buildMach(t, "arm64").dylib
	if _, _, ok := open(t, path).Encrypted(); ok {
		t.Error("nothing is encrypted")
	}
	data := read(t, path)
	i := open(t, path)
	for _, c := range i.mach.commands {
		if c.kind == lcUUID { // of the same size
			for k, word := range []uint32{lcEncryptionInfo64, 24, 0x4000, 0x1000, 1, 0} {
				i.ByteOrder.PutUint32(data[int(c.off)+4*k:], word)
			}
		}
	}
	encrypted, err := Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	if off, size, ok := encrypted.Encrypted(); !ok || off != 0x4000 || size != 0x1000 {
		t.Errorf("%#x, %#x, %v", off, size, ok)
	}
	if encrypted.ID() != "" || encrypted.UUID() != "" {
		t.Errorf("ID %q without LC_UUID", encrypted.ID())
	}
}

func TestUUIDAsDwarfdumpPrintsIt(t *testing.T) {
	realtest.Need(t, realtest.Dwarfdump)
	forEachMach(t, func(t *testing.T, path string, i *Image) {
		want := ""
		if m := regexp.MustCompile(`UUID: (\S+) \((\S+)\)`).FindStringSubmatch(tool(t, realtest.Dwarfdump, "--uuid", path)); m != nil {
			want = m[1]
			if i.ArchName() != m[2] {
				t.Errorf("architecture %s, want %s", i.ArchName(), m[2])
			}
		}
		if i.UUID() != want || i.ID() != strings.ToLower(strings.ReplaceAll(want, "-", "")) {
			t.Errorf("UUID %s, ID %s, want %s", i.UUID(), i.ID(), want)
		}
		if i.Type == Shared && want == "" {
			t.Error("no UUID")
		}
	})
}

func TestBaseAddrOfELF(t *testing.T) {
	fixed := compile(t, "-fno-pie", "-no-pie")
	base := open(t, fixed).BaseAddr()
	if base == 0 || base%MinPageSize != 0 {
		t.Errorf("fixed address: %#x", base)
	}
	for _, flags := range [][]string{{"-fPIE", "-pie"}, {"-c"}} {
		if base := open(t, compile(t, flags...)).BaseAddr(); base != 0 {
			t.Errorf("%v: %#x", flags, base)
		}
	}
	// As in vmlinux: the last loadable segment is at address 0.
	data := read(t, fixed)
	i := open(t, fixed)
	for k := len(i.Segments()) - 1; k >= 0; k-- {
		if i.Segments()[k].Type == SegmentLoad {
			i.ByteOrder.PutUint64(data[headerSize64+k*segmentSize64+16:], 0)
			break
		}
	}
	odd, err := Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	if got := odd.BaseAddr(); odd.loads[0].Addr != 0 || got != base {
		t.Errorf("a segment at 0 behind the text: %#x, want %#x", got, base)
	}
}
