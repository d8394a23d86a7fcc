package cfi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

var dwarfdumpRow = regexp.MustCompile(`^\s+0x([0-9a-f]+): CFA=([A-Z0-9]+)([+-]\d+)?(?:: (.*))?$`)

// llvmName is LLVM's name of a register of ours: it calls those of AArch64 by their 32-bit halves.
func llvmName(arch object.Arch, name string) string {
	name = strings.ToUpper(name)
	if arch != object.ARM64 {
		return name
	}
	if name == "SP" {
		return "WSP"
	}
	switch {
	case strings.HasPrefix(name, "X"):
		return "W" + name[1:]
	case strings.HasPrefix(name, "V"):
		return "B" + name[1:]
	}
	return name
}

// TestRowsAreThoseOfLLVM compares CFA and saved registers of libraries with llvm-dwarfdump's rows.
func TestRowsAreThoseOfLLVM(t *testing.T) {
	realtest.Need(t, realtest.Dwarfdump, realtest.Clang, realtest.LD64)
	const source = "int g(int *, ...); int f(int a, int b, int c) { int x[9]; g(x, a); g(x, b); return g(x + a, c) + a * b; }" +
		"double h(double a, double b) { g(0); g(0); return a + b; } int v(int n) { int x[n]; g(x); return x[1]; }"
	for _, test := range []struct {
		name  string
		least int
		path  func() string
	}{
		{"x86-64", 500, func() string { return library(t, "libgcc_s.so.1") }},
		{"aarch64-linux-gnu", 8, nil},
		{"i386-linux-gnu", 8, nil},
		{"armv7-linux-gnueabihf", 8, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.so")
			if test.path != nil {
				path = test.path()
			} else {
				in := filepath.Join(filepath.Dir(path), "x.c")
				if err := os.WriteFile(in, []byte(source), 0o666); err != nil {
					t.Fatal(err)
				}
				run(t, realtest.Clang, "-target", test.name, "-O1", "-g", "-fdwarf-exceptions", "-funwind-tables", "-fuse-ld=lld", "-nostdlib", "-shared", "-fPIC", "-o", path, in)
			}
			if n := compareWithLLVM(t, path); n < test.least {
				t.Errorf("only %d rows compared", n)
			}
		})
	}
}

// readImage reads the frames of an image, which is open for the length of the test.
func readImage(t *testing.T, path string) (*object.Image, *Info) {
	t.Helper()
	im, err := object.Open(path)
	realtest.Must(t, err)
	t.Cleanup(func() { im.Close() })
	info, err := ReadImage(im)
	realtest.Must(t, err)
	return im, info
}

// compareWithLLVM returns how many rows it has compared.
func compareWithLLVM(t *testing.T, path string) (compared int) {
	t.Helper()
	im, info := readImage(t, path)
	var m Machine
	lines := bufio.NewScanner(bytes.NewReader(run(t, realtest.Dwarfdump, "--eh-frame", "--debug-frame", path)))
	for lines.Scan() {
		f := dwarfdumpRow.FindStringSubmatch(lines.Text())
		if f == nil {
			continue
		}
		pc, _ := strconv.ParseUint(f[1], 16, 64)
		row, _, err := info.RowAt(&m, pc)
		if err != nil {
			t.Fatalf("%#x: %v", pc, err)
		}
		var regs []string
		for _, r := range row.Regs {
			name := llvmName(im.Arch, info.Registers.Name(r.Reg))
			if name == "RA" {
				name = "RIP"
			}
			switch r.Kind {
			case Offset:
				regs = append(regs, fmt.Sprintf("%s=[CFA%+d]", name, r.Offset))
			case Register:
				regs = append(regs, name+"="+llvmName(im.Arch, info.Registers.Name(uint32(r.Rule.Reg))))
			}
		}
		offset := ""
		if row.CFA.Offset != 0 {
			offset = fmt.Sprintf("%+d", row.CFA.Offset)
		}
		got := fmt.Sprintf("%s%s: %s", llvmName(im.Arch, info.Registers.Name(uint32(row.CFA.Reg))), offset, strings.Join(regs, ", "))
		if want := fmt.Sprintf("%s%s: %s", f[2], f[3], f[4]); !strings.Contains(f[4], "expr") && got != want {
			t.Errorf("%#x: %s, llvm-dwarfdump says %s", pc, got, want)
		}
		compared++
	}
	return compared
}

func TestImagesAreAskedInTheUnwindersOrder(t *testing.T) {
	for _, m := range machTargets {
		path, _ := machLibraries(t, m, "-O2", "-fomit-frame-pointer")
		im, err := object.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := ReadImage(im)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string]int{}
		var machine Machine
		if err := info.Compact.Entries(func(e CompactEntry) bool {
			_, section, err := info.RowAt(&machine, e.Start)
			if err != nil && e.Encoding != 0 {
				t.Errorf("%#x: %v", e.Start, err)
			}
			sections[section]++
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if sections["__unwind_info"] == 0 {
			t.Errorf("%s: %v", m.ld, sections)
		}
		if _, _, err := info.RowAt(&machine, 1); !errors.Is(err, ErrNotDescribed) {
			t.Errorf("%s: address 1: %v", m.ld, err)
		}
		im.Close()
	}
}

// firstCFA is what holds at a function's first instruction.
var firstCFA = map[string]string{"amd64": "cfa=rsp+8 ra=[cfa-8]", "arm64": "cfa=sp+0"}

func TestDebugFrameIsReadWhereThereIsNothingElse(t *testing.T) {
	path := compile(t, "int g(int *); int f(int a) { return g(&a); }", "-g", "-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-shared", "-fPIC", "-nostartfiles", "-nostdlib")
	im, info := readImage(t, path)
	var m Machine
	symbols, err := im.FunctionSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name != "f" {
			continue
		}
		if row, section, err := info.RowAt(&m, s.Addr); err != nil || section != ".debug_frame" || row.Format(info.Registers.Name) != firstCFA[runtime.GOARCH] {
			t.Errorf("%v, %s, %v", row, section, err)
		}
	}
	bare := compile(t, "int f(int a) { return a; }", "-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-shared", "-fPIC", "-nostartfiles", "-nostdlib")
	none, err := object.Open(bare)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if info, err := ReadImage(none); !errors.Is(err, ErrNone) {
		t.Errorf("%+v, %v", info, err)
	}
}
