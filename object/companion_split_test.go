package object

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// skeleton is what a skeleton unit says of its other half.
type skeleton struct {
	name, dir string
	id        uint64
}

// skeletons reads the units with the standard library's reader of DWARF.
func skeletons(t *testing.T, path string) []skeleton {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	var list []skeleton
	r := d.Reader()
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return list
		}
		s := skeleton{}
		for _, attr := range []dwarf.Attr{dwarf.AttrDwoName, 0x2130} { // and DW_AT_GNU_dwo_name
			if name, ok := e.Val(attr).(string); ok {
				s.name = name
			}
		}
		s.dir, _ = e.Val(dwarf.AttrCompDir).(string)
		if id, ok := e.Val(0x2131).(int64); ok { // DW_AT_GNU_dwo_id
			s.id = uint64(id)
		}
		if s.name != "" {
			list = append(list, s)
		}
		r.SkipChildren()
	}
}

// buildSplit builds a program with split units in their own folder.
func buildSplit(t *testing.T, flags ...string) (dir, program string) {
	t.Helper()
	return buildSplitWith(t, realtest.GCC, flags...)
}

func buildSplitWith(t *testing.T, compiler realtest.Capability, flags ...string) (dir, program string) {
	t.Helper()
	realtest.Need(t, compiler, realtest.GCC)
	dir = t.TempDir()
	program = filepath.Join(dir, "program")
	var objects []string
	for name, text := range map[string]string{"a": "int f(int);\nint main(int n, char **v) { return f(n); }\n", "b": "int f(int n) { return n + 1; }\n"} {
		source, object := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".o")
		write(t, source, []byte(text))
		tool(t, compiler, append([]string{"-g", "-gsplit-dwarf", "-c", source, "-o", object}, flags...)...)
		objects = append(objects, object)
	}
	tool(t, realtest.GCC, append([]string{"-o", program}, objects...)...)
	return dir, program
}

func TestSplitUnitsAreFoundByEachRule(t *testing.T) {
	dir, program := buildSplit(t, "-gdwarf-4")
	units := skeletons(t, program)
	if len(units) != 2 {
		t.Fatalf("%d split units", len(units))
	}
	move := func(to string) {
		for _, u := range units {
			from := filepath.Join(u.dir, u.name)
			if filepath.IsAbs(u.name) {
				from = u.name
			}
			base := filepath.Base(from)
			write(t, filepath.Join(to, base), read(t, filepath.Join(dir, base)))
		}
	}
	away := filepath.Join(t.TempDir(), "away")
	moved := filepath.Join(away, "bin", "program")
	write(t, moved, read(t, program))
	move(filepath.Join(away, "bin"))
	move(filepath.Join(away, "units"))
	for _, test := range []struct {
		name, program, compDir string
		dirs                   []string
		want                   string
	}{
		{"as named", program, "", nil, dir},
		{"beside the program", moved, "/no/such/folder", nil, filepath.Join(away, "bin")},
		{"in a folder", program, "/no/such/folder", []string{filepath.Join(away, "units")}, filepath.Join(away, "units")},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := (&DebugSearch{Dirs: test.dirs}).Split(open(t, test.program))
			defer s.Close()
			for _, u := range units {
				name, compDir := u.name, u.dir
				if test.compDir != "" {
					name, compDir = "objects/"+filepath.Base(u.name), test.compDir
				}
				if test.program == program && test.dirs != nil {
					name = "gone/" + filepath.Base(name)
					os.Remove(filepath.Join(dir, filepath.Base(name)))
				}
				i, err := s.Open(name, compDir, u.id)
				if err != nil {
					t.Fatal(err)
				}
				if i.Section(".debug_info.dwo") == nil || filepath.Dir(i.Name()) != test.want {
					t.Errorf("found %s, want one in %s", i.Name(), test.want)
				}
				if again, err := s.Open(name, compDir, u.id); again != i || err != nil {
					t.Errorf("opened twice: %v", err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := s.Open(units[0].name, units[0].dir, units[0].id); err == nil {
				t.Error("opened after Close")
			}
		})
	}
}

func TestPackagesOfSplitUnitsAreLookedUpByID(t *testing.T) {
	realtest.Need(t, realtest.LLVMDwp)
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		// LLVM's packager does not come to an end on GCC's DWARF 5.
		_, program := buildSplitWith(t, realtest.Clang, version)
		units := skeletons(t, program)
		tool(t, realtest.LLVMDwp, "-e", program, "-o", program+".dwp")
		i := open(t, program)
		s := new(DebugSearch).Split(i)
		defer s.Close()
		for _, u := range units {
			if version == "-gdwarf-5" {
				u.id = skeletonID(t, i, u.name)
			}
			found, err := s.Open(u.name, u.dir, u.id)
			if err != nil || found.Name() != program+".dwp" {
				t.Fatalf("%s: found %v, %v", version, found, err)
			}
			// Another ID is not in the package: the unit's own file is the one.
			if found, err = s.Open(u.name, u.dir, u.id+1); err != nil || !strings.HasSuffix(found.Name(), ".dwo") {
				t.Errorf("%s: found %v, %v", version, found, err)
			}
		}
		if len(units) != 2 {
			t.Errorf("%s: %d split units", version, len(units))
		}
		listed := false
		for _, c := range new(DebugSearch).Companions(i) {
			listed = listed || c.Kind == DWPFile && c.Err == nil && c.Path == program+".dwp"
		}
		if !listed {
			t.Errorf("%s: the package is not among the companions", version)
		}
	}
}

// skeletonID reads the ID from the header of the skeleton unit of that name, which
// the standard library does not tell (DWARF 5 §7.5.1.2). Units stand in the order of
// skeletons.
func skeletonID(t *testing.T, i *Image, name string) uint64 {
	t.Helper()
	info, err := i.SectionData(i.Section(".debug_info"))
	if err != nil {
		t.Fatal(err)
	}
	for k, u := range skeletons(t, i.Name()) {
		rest := info
		for ; k > 0; k-- {
			rest = rest[4+i.ByteOrder.Uint32(rest):]
		}
		if u.name == name {
			return i.ByteOrder.Uint64(rest[12:])
		}
	}
	t.Fatalf("no unit %s", name)
	return 0
}

func TestFilesWithoutSplitUnitsAreRefused(t *testing.T) {
	_, program := buildSplit(t)
	s := new(DebugSearch).Split(open(t, program))
	defer s.Close()
	if _, err := s.Open(program, "", 1); !errors.Is(err, ErrNoDebug) || !strings.Contains(err.Error(), program+": refused: it has no section .debug_info.dwo") {
		t.Errorf("the program itself: %v", err)
	}
	if _, err := s.Open(os.DevNull, "", 1); !errors.Is(err, ErrNoDebug) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
	if _, err := s.Open("", "", 1); !errors.Is(err, ErrNoDebug) {
		t.Errorf("no name: %v", err)
	}
}

func TestDamagedPackageIndicesHoldNothing(t *testing.T) {
	realtest.Need(t, realtest.LLVMDwp)
	_, program := buildSplit(t, "-gdwarf-4")
	path := program + ".dwp"
	tool(t, realtest.LLVMDwp, "-e", program, "-o", path)
	id := skeletons(t, program)[0].id
	data := read(t, path)
	i, err := Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	if !i.packageHolds(id) {
		t.Fatal("the unit is not found")
	}
	s := i.Section(".debug_cu_index")
	for at := s.Off; at < s.Off+s.FileSize; at++ {
		for flip := 1; flip < 256; flip <<= 1 {
			data[at] ^= byte(flip)
			i.packageHolds(id) // must end
			data[at] ^= byte(flip)
		}
	}
}
