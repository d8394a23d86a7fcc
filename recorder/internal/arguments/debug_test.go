package arguments

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// functions are those of an image whose names have a part.
func functions(t testing.TB, im *object.Image, part string) []object.Symbol {
	t.Helper()
	all, err := im.FunctionSymbols()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s object.Symbol) bool { return !strings.Contains(s.Name, part) })
}

// Arguments of what the compiler has changed are where DWARF has them at the entry, or nowhere.
func TestChangedSignaturesGoByDWARFOrNotAtAll(t *testing.T) {
	source := `
#include <stdlib.h>
struct s { int a, b, c; };
static int __attribute__((noinline)) part(struct s *p, int unused, int k, int l) { int t = 0; for (int i = 0; i < l; i++) t += p->a * i ^ k; return t; }
int one(struct s *p, int k, int l) { return part(p, 1, k, l) + 1; }
int two(struct s *p, int k, int l) { return part(p, 2, k + 1, l) + 2; }
int main(int c, char **v) { struct s s = {c, 2, 3}; return one(&s, c, 7) + two(&s, atoi(v[0]), c); }
`
	im := compiled(t, source, "-O3", "-fno-inline", "-fipa-sra", "-fno-ipa-cp")
	d, err := Open(t.Context(), im, &object.DebugSearch{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	clones := functions(t, im, "part.")
	if len(clones) == 0 {
		t.Skip("this compiler makes no clone")
	}
	for _, fn := range clones {
		s, err := d.Function(fn.Addr, []string{fn.Name}, false)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Entry(true, nil)
		if err != nil {
			t.Fatalf("%s: %v", fn.Name, err)
		}
		if !slices.ContainsFunc(p.Omitted, func(l string) bool { return strings.HasPrefix(l, "unused:") }) {
			t.Errorf("%s: unused is taken for an argument: %v", fn.Name, p.Arguments)
		}
		for name, want := range map[string]isa.Reg{"k": d.abi.integers[1], "l": d.abi.integers[2]} {
			i := slices.IndexFunc(p.Arguments, func(a reel.Argument) bool { return a.Name == name })
			if i < 0 || p.Capture.Fields[i].Value.Reg != want {
				t.Errorf("%s: %s is %v of %v, want %v", fn.Name, name, p.Capture.Fields, p.Arguments, want)
			}
		}
		if _, err := s.Return(true, nil); !errors.Is(err, ErrUnplaced) {
			t.Errorf("%s: its result is %v", fn.Name, err)
		}
	}
}

// compiled is the image of a C program.
func compiled(t testing.TB, source string, flags ...string) *object.Image {
	t.Helper()
	realtest.Need(t, realtest.GCC)
	path := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("gcc", slices.Concat([]string{"-g", "-x", "c", "-", "-o", path}, flags)...)
	cmd.Stdin = strings.NewReader(source)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, said)
	}
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

func TestWithoutDebugInformationRegistersHaveNames(t *testing.T) {
	var d *Debug
	s, err := d.Function(0x1000, []string{"f"}, false)
	if err != nil || !errors.Is(s.Missing(), ErrNoDebug) {
		t.Fatal(err, s.Missing())
	}
	p, err := s.Entry(true, nil)
	if err != nil || len(p.Arguments) != len(hostABI().integers) || p.Arguments[5].Name != "arg6" {
		t.Errorf("%+v, %v", p, err)
	}
	one := Expression{Text: "arg2:s", Name: "arg2", Format: 's'}
	if p, err = s.Entry(false, []Expression{one}); err != nil || p.Capture.Fields[0].Kind != stub.FieldString || p.Arguments[0].Name != "arg2" {
		t.Errorf("%+v, %v", p, err)
	}
	var unknown *UnknownError
	if _, err = s.Entry(false, []Expression{{Text: "size", Name: "size"}}); !errors.As(err, &unknown) {
		t.Error(err)
	}
}

// plans makes all plans of all functions of a file, whatever is in it.
func plans(t testing.TB, data []byte) {
	im, err := object.Parse("damaged", data)
	if err != nil {
		return
	}
	defer im.Close()
	d, err := Open(t.Context(), im, &object.DebugSearch{})
	if err != nil {
		return
	}
	defer d.Close()
	all, _ := im.FunctionSymbols()
	for _, fn := range all {
		s, err := d.Function(fn.Addr, []string{fn.Name}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, make := range []func(bool, []Expression) (*Plan, error){s.Entry, s.Return} {
			if p, err := make(true, nil); err == nil {
				_ = p.Capture.LayOut()
			}
		}
		for reg := range d.abi.dwarf {
			d.Variable(fn.Addr+1, &stub.Operand{Reg: d.abi.dwarf[reg], Size: 4}, Frame{})
			d.Variable(fn.Addr, &stub.Operand{Memory: true, Origin: stub.OriginStack, Off: int32(8 * reg), Size: 8}, Frame{7, 8, true})
		}
		_, _ = s.Entry(false, []Expression{{Name: "c", Steps: []Step{field("next", true), field("name", true)}}})
	}
}

// Damage is an error, or a value that isn't there; it neither panics nor takes long.
func TestDamagedDebugInformation(t *testing.T) {
	data, offsets := debugSections(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		bad := slices.Clone(data)
		for range 1 + rnd.IntN(4) {
			at := offsets[rnd.IntN(len(offsets))]
			bad[at[0]+rnd.IntN(at[1])] = byte(rnd.Uint32())
		}
		start := time.Now()
		plans(t, bad)
		if took := time.Since(start); took > 20*time.Second {
			t.Fatalf("it took %v", took)
		}
	}
}

// debugSections is a program, and where its debug sections are: offsets and sizes.
func debugSections(t testing.TB) (data []byte, offsets [][2]int) {
	t.Helper()
	data, err := os.ReadFile(realtest.Build(t, "arguments"))
	if err != nil {
		t.Fatal(err)
	}
	im, err := object.Parse("arguments", data)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	for _, s := range im.Sections() {
		switch s.Name {
		case ".debug_info", ".debug_abbrev", ".debug_loclists", ".debug_str":
			offsets = append(offsets, [2]int{int(s.Off), int(s.FileSize)})
		}
	}
	return data, offsets
}

func FuzzDebug(f *testing.F) {
	data, offsets := debugSections(f)
	f.Add(uint8(0), uint32(100), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, section uint8, at uint32, change []byte) {
		bad := slices.Clone(data)
		o := offsets[int(section)%len(offsets)]
		copy(bad[o[0]+int(at)%o[1]:o[0]+o[1]], change)
		plans(t, bad)
	})
}
