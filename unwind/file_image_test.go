package unwind_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// machO links a dynamic library of one function that calls another.
func machO(t *testing.T, arch, target string) string {
	t.Helper()
	realtest.Need(t, realtest.Clang, realtest.LD64)
	dir := t.TempDir()
	source, obj, out := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.o"), filepath.Join(dir, "liba.dylib")
	const text = "int other(int *);\nint caller(int x) { int y[40]; y[3] = x; return other(y) + y[5]; }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"clang-19", "-target", target, "-O1", "-ffreestanding", "-nostdinc", "-funwind-tables", "-c", "-o", obj, source},
		{"ld64.lld-19", "-arch", arch, "-platform_version", "macos", "11.0", "11.0", "-dylib", "-undefined", "dynamic_lookup", "-o", out, obj},
	} {
		if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, said)
		}
	}
	return out
}

func TestCompactUnwindInformationGivesRows(t *testing.T) {
	for arch, target := range map[string]string{"x86_64": "x86_64-apple-macos11", "arm64": "arm64-apple-macos11"} {
		t.Run(arch, func(t *testing.T) {
			file, err := object.Open(machO(t, arch, target))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			functions, err := file.FunctionSymbols()
			if err != nil || len(functions) == 0 {
				t.Fatal(functions, err)
			}
			im := unwind.NewFileImage(file, 0)
			var m cfi.Machine
			f := functions[0]
			row, _, err := im.Row(&m, f.Addr+f.Size/2)
			if err != nil || row == nil || row.CFA.Kind != cfi.RegOffset {
				t.Fatalf("%s at %#x: row %+v, %v", f.Name, f.Addr, row, err)
			}
			if row, _, err := im.Row(&m, f.Addr+f.Size+1<<20); row != nil || err != nil {
				t.Errorf("behind the code: row %+v, %v", row, err)
			}
			if unwind.ArchOf(file.Arch) == nil {
				t.Errorf("no walk is possible on %v", file.Arch)
			}
		})
	}
}

func TestFileWithoutCFIHasNoRows(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	path := realtest.Build(t, "shapes_of_frames", "-g0", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
	file, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	im := unwind.NewFileImage(file, 0)
	var m cfi.Machine
	symbols, err := file.FunctionSymbols()
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, s := range symbols {
		if s.Name != "recursive" && s.Name != "many_registers" {
			continue
		}
		looked++
		if row, signal, err := im.Row(&m, s.Addr); row != nil || signal || err != nil {
			t.Errorf("%s: row %+v, %v", s.Name, row, err)
		}
	}
	if looked != 2 || im.Err() != nil {
		t.Errorf("%d functions, %v", looked, im.Err())
	}
}
