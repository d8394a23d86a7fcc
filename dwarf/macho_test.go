package dwarf

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// machFiles builds the sources for an Apple machine: object files, a library and
// its dSYM.
func machFiles(t *testing.T, arch, triple, version string) (objects []string, dsym string) {
	t.Helper()
	realtest.Need(t, realtest.Clang, realtest.LD64, realtest.Dsymutil)
	dir := t.TempDir()
	for _, name := range []string{"nest.c", "shapes.cc"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		// Sections have two names there.
		text = []byte(strings.ReplaceAll(string(text), `section(".text.apart")`, `section("__TEXT,__apart")`))
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
		object := strings.TrimSuffix(name, filepath.Ext(name)) + ".o"
		run(t, dir, realtest.Tool(t, realtest.Clang), "-target", triple, version, "-O2", "-g", "-nostdinc", "-DFREESTANDING", "-c", "-o", object, name)
		objects = append(objects, filepath.Join(dir, object))
	}
	run(t, dir, realtest.Tool(t, realtest.LD64), "-arch", arch, "-platform_version", "macos", "11.0", "11.0", "-dylib", "-undefined", "dynamic_lookup",
		"-install_name", "@rpath/libt.dylib", "-o", "libt.dylib", "nest.o")
	run(t, dir, realtest.Tool(t, realtest.Dsymutil), "libt.dylib")
	return objects, filepath.Join(dir, "libt.dylib.dSYM/Contents/Resources/DWARF/libt.dylib")
}

func TestAppleImagesSayTheSameToTheStandardLibrarysReader(t *testing.T) {
	for _, target := range []struct{ arch, triple, version string }{
		{"arm64", "arm64-apple-macos11", "-gdwarf-4"},
		{"x86_64", "x86_64-apple-macos10.15", "-gdwarf-4"},
		{"arm64", "arm64-apple-macos11", "-gdwarf-5"},
	} {
		t.Run(target.arch+" "+target.version, func(t *testing.T) {
			objects, dsym := machFiles(t, target.arch, target.triple, target.version)
			linked := list(t, openData(t, dsym, Options{}))
			t.Run("dSYM", func(t *testing.T) {
				compare(t, linked, yardMach(t, dsym))
			})
			// dsymutil reads the object files; so must we, where there is no dSYM.
			t.Run("object", func(t *testing.T) {
				d := openData(t, objects[0], Options{})
				if d.image.Type != object.Relocatable {
					t.Fatalf("type %s", d.image.Type)
				}
				got, want := byFunction(list(t, d)), byFunction(linked)
				if !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
			t.Run("C++ object", func(t *testing.T) {
				functions, inlines, rows := list(t, openData(t, objects[1], Options{})).counts()
				if functions == 0 || inlines == 0 || rows == 0 {
					t.Errorf("%d functions, %d inlined calls, %d rows", functions, inlines, rows)
				}
			})
		})
	}
}

func TestGoProgramsForAppleMachinesAreRead(t *testing.T) {
	path := goProgram(t, "GOOS=darwin", "GOARCH=arm64")
	d := openData(t, path, Options{})
	if d.image.Format != object.MachO || !strings.HasPrefix(d.image.Section(".debug_info").Name, "__zdebug_") {
		t.Fatalf("%s with section %s", d.image.Format, d.image.Section(".debug_info").Name)
	}
	compare(t, list(t, d), yardMach(t, path))
}
