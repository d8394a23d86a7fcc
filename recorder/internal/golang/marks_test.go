package golang

import (
	"encoding/binary"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// However a program is built, all functions of package mark that it calls are found, and the number that mark.Recording looks at.
func TestFunctionsOfPackageMarkAreFound(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		for _, flags := range [][]string{nil, {"-gcflags=all=-N -l"}, {"-buildmode=pie"}, {"-ldflags=-s -w"}, {"-buildmode=pie", "-ldflags=-s -w"}} {
			t.Run(arch+strings.Join(flags, ""), func(t *testing.T) { wantMarksFound(t, arch, flags) })
		}
	}
}

func wantMarksFound(t *testing.T, arch string, flags []string) {
	t.Helper()
	o := testimage.Open(t, realtest.BuildGoFor(t, arch, "gomarks", flags...))
	notes := MarkNotes(o)
	var names []string
	for i := range notes {
		names = append(names, notes[i].Name)
		if notes[i].Provider != sdt.Provider || notes[i].Semaphore == 0 || notes[i].Semaphore != notes[0].Semaphore {
			t.Errorf("%q: %+v", flags, notes[i])
		}
	}
	var want []string
	for _, m := range maps.All(markFunctions) {
		want = append(want, m.name)
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("%q: %q, not %q", flags, names, want)
	}
	symbols, err := o.Symbols()
	if err != nil && !strings.Contains(strings.Join(flags, " "), "-s") {
		t.Fatal(err)
	}
	for i := range symbols {
		if s := &symbols[i]; s.Name == markPackage+"semaphores" && s.Addr != notes[0].Semaphore {
			t.Errorf("%q: the semaphore is at %#x, not %#x", flags, s.Addr, notes[0].Semaphore)
		}
	}
}

// Registers are those of Go's calling convention.
func TestArgumentsOfMarksAreWhereGoPassesThem(t *testing.T) {
	for letters, want := range map[string][2]string{
		"": {}, "s": {"8@%rax[%rbx]", "8@x0[x1]"}, "si": {"8@%rax[%rbx] -8@%rcx", "8@x0[x1] -8@x2"}, "su": {"8@%rax[%rbx] 8@%rcx", "8@x0[x1] 8@x2"},
		"ss": {"8@%rax[%rbx] 8@%rcx[%rdi]", "8@x0[x1] 8@x2[x3]"}, "sf": {"8@%rax[%rbx] 8f@%xmm0", "8@x0[x1] 8f@d0"},
	} {
		for i, arch := range []object.Arch{object.AMD64, object.ARM64} {
			if n := markRegistersOf[arch].note("x", letters, 1); n.Text != want[i] || len(n.Arguments) != len(letters) {
				t.Errorf("%q: %q", letters, n.Text)
			}
		}
	}
}

func TestOtherProgramsHaveNoMarks(t *testing.T) {
	for _, path := range []string{testimage.Path(t, "libc"), realtest.BuildGo(t, "goroutines")} {
		if notes := MarkNotes(testimage.Open(t, path)); notes != nil {
			t.Errorf("%s: %+v", path, notes)
		}
	}
}

// FuzzMarkNotes damages the table of functions, and the code of package mark.
func FuzzMarkNotes(f *testing.F) { fuzzMarkNotes(f, "amd64") }

// FuzzMarkNotesOfARM64 does the same to one for arm64.
func FuzzMarkNotesOfARM64(f *testing.F) { fuzzMarkNotes(f, "arm64") }

func fuzzMarkNotes(f *testing.F, arch string) {
	f.Helper()
	whole, err := os.ReadFile(realtest.BuildGoFor(f, arch, "gomarks", "-ldflags=-s -w"))
	if err != nil {
		f.Fatal(err)
	}
	im, err := object.Parse("whole", whole)
	if err != nil {
		f.Fatal(err)
	}
	notes := MarkNotes(im)
	table, text := im.Section(".gopclntab"), im.Section(".text")
	if table == nil || text == nil || len(notes) == 0 {
		f.Fatal("no table, no text, or no marks")
	}
	code := uint32(notes[0].Addr - text.Addr)
	f.Add(uint32(0), uint64(0), code)
	f.Add(uint32(8), ^uint64(0), code+4)
	f.Add(uint32(72), uint64(1)<<40, code+512)
	f.Fuzz(func(t *testing.T, at uint32, bits uint64, inText uint32) {
		data := slices.Clone(whole)
		for _, x := range []struct {
			part []byte
			at   uint32
		}{{data[table.Off : table.Off+table.FileSize], at}, {data[text.Off : text.Off+text.FileSize], inText}} {
			if int(x.at)+8 <= len(x.part) {
				binary.LittleEndian.PutUint64(x.part[x.at:], binary.LittleEndian.Uint64(x.part[x.at:])^bits)
			}
		}
		im, err := object.Parse("damaged", data)
		if err != nil {
			t.Skip()
		}
		if n := len(MarkNotes(im)); n > len(markFunctions) {
			t.Errorf("%d functions", n)
		}
		Constants(im)
	})
}
