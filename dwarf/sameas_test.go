package dwarf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// What the standard library's reader does not understand is checked against the same
// program, built so that it does.
func TestEveryWayOfWritingItDownSaysTheSame(t *testing.T) {
	const s390x, powerpc = " -target s390x-linux-gnu " + freestanding, " -target powerpc-linux-gnu " + freestanding
	for _, b := range []struct {
		by           realtest.Capability
		source, as   string
		flags, plain string
	}{
		{realtest.Clang, "nest.c", "64-bit format", "-O2 -gdwarf-5 -gdwarf64", "-O2 -gdwarf-5"},
		{realtest.Clang, "nest.c", "64-bit format, version 4", "-O2 -gdwarf-4 -gdwarf64", "-O2 -gdwarf-4"},
		{realtest.Clang, "nest.c", "big-endian with tables of offsets", "-O2 -gdwarf-5" + s390x, "-O2 -gdwarf-4" + s390x},
		{realtest.Clang, "nest.c", "big-endian, 32 bit, with tables of offsets", "-O2 -gdwarf-5" + powerpc, "-O2 -gdwarf-4" + powerpc},
		{realtest.Clang, "shapes.cc", "MD5 sums of files", "-O2 -gdwarf-5 -gembed-source -lstdc++", "-O2 -gdwarf-5 -lstdc++"},
	} {
		t.Run(b.as, func(t *testing.T) {
			t.Parallel()
			got := list(t, openData(t, build(t, b.by, b.source, strings.Fields(b.flags)...), Options{}))
			want := list(t, openData(t, build(t, b.by, b.source, strings.Fields(b.plain)...), Options{}))
			compare(t, got, want)
		})
	}
}

// splitter opens split units where the linker's input was.
func splitter(t *testing.T, dir string) func(name, compDir string, id uint64) (*object.Image, error) {
	return func(name, compDir string, id uint64) (*object.Image, error) {
		im, err := object.Open(filepath.Join(dir, filepath.Base(name)))
		if err == nil {
			t.Cleanup(func() { im.Close() })
		}
		return im, err
	}
}

func TestSplitUnitsSayWhatWholeOnesSay(t *testing.T) {
	for _, b := range []struct {
		by            realtest.Capability
		source, flags string
		packed        bool
	}{
		{realtest.GCC, "nest.c", "-O2 -gdwarf-5 -DNESTED", false}, // llvm-dwp 19 never ends on it
		{realtest.GCC, "nest.c", "-O2 -gdwarf-4 -DNESTED", true},
		{realtest.GXX, "shapes.cc", "-O2 -gdwarf-5", true},
		{realtest.GXX, "shapes.cc", "-O2 -gdwarf-4 -fdebug-types-section", true},
		{realtest.Clang, "nest.c", "-O2 -gdwarf-5", true},
		{realtest.Clang, "nest.c", "-O2 -gdwarf-4", true},
		{realtest.Clang, "shapes.cc", "-O2 -gdwarf-5 -lstdc++", true},
		{realtest.Clang, "shapes.cc", "-O2 -gdwarf-5 -fsplit-dwarf-inlining -lstdc++", true},
	} {
		t.Run(string(b.by)+" "+b.source+" "+b.flags, func(t *testing.T) {
			t.Parallel()
			flags := strings.Fields(b.flags)
			want := list(t, openData(t, build(t, b.by, b.source, flags...), Options{}))
			path := build(t, b.by, b.source, append(flags, "-gsplit-dwarf")...)
			dir := filepath.Dir(path)
			found, err := filepath.Glob(filepath.Join(dir, "*.dwo"))
			if err != nil || len(found) != 1 {
				t.Fatalf("%q, %v: want one .dwo file", found, err)
			}
			compare(t, list(t, openData(t, path, Options{Split: splitter(t, dir)})), want)

			if !b.packed {
				return
			}
			// The same from a package, with the units of another program beside it.
			other := build(t, realtest.GXX, "shapes.cc", "-O1", flags[1], "-gsplit-dwarf")
			more, err := filepath.Glob(filepath.Join(filepath.Dir(other), "*.dwo"))
			if err != nil || len(more) != 1 {
				t.Fatalf("%q, %v: want one .dwo file", more, err)
			}
			packed := filepath.Join(t.TempDir(), "out.dwp")
			run(t, dir, realtest.Tool(t, realtest.LLVMDwp), more[0], found[0], "-o", packed)
			im := openImage(t, packed)
			split := func(string, string, uint64) (*object.Image, error) { return im, nil }
			compare(t, list(t, openData(t, path, Options{Split: split})), want)
		})
	}
}

func TestMissingSplitUnitsAreToldAndCostTheirOwnOnly(t *testing.T) {
	path := build(t, realtest.GCC, "nest.c", "-O2", "-gdwarf-5", "-gsplit-dwarf")
	other := build(t, realtest.GCC, "nest.c", "-O1", "-gdwarf-5", "-gsplit-dwarf")
	dwos, err := filepath.Glob(filepath.Join(filepath.Dir(other), "*.dwo"))
	if err != nil || len(dwos) == 0 {
		t.Fatal(dwos, err)
	}
	stale := openImage(t, dwos[0])
	for _, test := range []struct {
		name, says string
		split      func(name, compDir string, id uint64) (*object.Image, error)
	}{
		{"no way", "no way to open it", nil},
		{"no file", "no such file", splitter(t, t.TempDir())},
		{"of another build", "has no unit with ID 0x", func(string, string, uint64) (*object.Image, error) { return stale, nil }},
		{"no split file", "no DWARF", func(string, string, uint64) (*object.Image, error) { return openImage(t, path), nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := openData(t, path, Options{Split: test.split})
			var c Contents
			for range 2 { // the second time from memory
				err := d.Read(&d.Units()[0], &c)
				if !errors.Is(err, ErrNoSplit) || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "dwarf: "+path+": section .debug_info at 0x") {
					t.Errorf("error %v, want one that says %q", err, test.says)
				}
			}
			if len(c.Rows) == 0 {
				t.Error("the line table, which is not split off, is lost")
			}
		})
	}
}

func TestCompressedSectionsSayTheSame(t *testing.T) {
	plain := build(t, realtest.GXX, "shapes.cc", "-O2", "-g", "-gz=none")
	want := list(t, openData(t, plain, Options{}))
	for _, option := range []string{"--compress-debug-sections=zlib", "--compress-debug-sections=zstd", "--compress-debug-sections=zlib-gnu", "--only-keep-debug"} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "out")
			run(t, "", realtest.Tool(t, realtest.Objcopy), option, plain, path)
			compare(t, list(t, openData(t, path, Options{})), want)
			if workers := list(t, openData(t, path, Options{Workers: 1})); !slices.Equal(workers.lines(), want.lines()) {
				t.Error("one worker reads something else")
			}
		})
	}
}

// dwz moves what units have in common into partial units, and with -m into a file
// that several images share.
func TestSupplementaryFilesNameEverything(t *testing.T) {
	dwz := realtest.Tool(t, realtest.Dwz)
	for _, b := range []struct {
		by            realtest.Capability
		source, flags string
	}{
		{realtest.GXX, "shapes.cc", "-O2 -gdwarf-5"},
		{realtest.GXX, "shapes.cc", "-O2 -gdwarf-4"},
		{realtest.GCC, "nest.c", "-O2 -gdwarf-5 -DNESTED"},
	} {
		t.Run(b.source+" "+b.flags, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plain := build(t, b.by, b.source, strings.Fields(b.flags)...)
			want := list(t, openData(t, plain, Options{})).withoutDeclarations()
			for _, name := range []string{"one", "two"} {
				data, err := os.ReadFile(plain)
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, name), data, 0o777)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			run(t, dir, dwz, "-m", "shared", "one", "two")
			alt := openImage(t, filepath.Join(dir, "shared"))
			one := filepath.Join(dir, "one")
			compare(t, list(t, openData(t, one, Options{Alt: alt})).withoutDeclarations(), want)

			// Without the other file, names are lost and nothing else.
			lost := list(t, openData(t, one, Options{}))
			if a, b, c := lost.counts(); len(want.functions) != a || b == 0 || len(want.rows) != c {
				t.Errorf("%d functions, %d inlined calls, %d rows are left", a, b, c)
			}
			named := 0
			for _, f := range lost.functions {
				if f.name != "" {
					named++
				}
			}
			if named == len(want.functions) {
				t.Error("no name is in the other file, so that the test tests nothing")
			}
		})
	}
}

func TestImagesWithoutDWARFAreToldApart(t *testing.T) {
	path := build(t, realtest.GCC, "nest.c", "-O2", "-g0")
	_, err := Open(context.Background(), openImage(t, path), Options{})
	if !errors.Is(err, ErrNoDWARF) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(stopped, openImage(t, build(t, realtest.GCC, "nest.c", "-O2", "-g")), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
