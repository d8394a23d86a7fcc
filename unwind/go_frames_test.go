package unwind_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
	"github.com/callreel/callreel/unwind"
)

// goProgram builds a program for an architecture.
func goProgram(t *testing.T, arch string) *object.Image {
	t.Helper()
	im, err := object.Open(realtest.BuildGoSource(t, "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }\n", []string{"GOARCH=" + arch}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// Rows of the runtime's own table are those of the CFI that the linker writes beside DWARF, but where functions change stacks.
func TestGoTableHasTheRowsOfItsCFI(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			file := goProgram(t, arch)
			s := file.Section(".debug_frame")
			if s == nil {
				t.Fatal("the program has no .debug_frame")
			}
			data, err := file.SectionData(s)
			if err != nil {
				t.Fatal(err)
			}
			debug, err := cfi.ParseDebugFrame(data, s.Addr, cfi.Options{ByteOrder: file.ByteOrder, AddrSize: 8, Name: file.Name(), Take: file.Take})
			if err != nil {
				t.Fatal(err)
			}
			table, err := pclntab.Open(file)
			if err != nil || table == nil {
				t.Fatal(table, err)
			}
			im := unwind.NewFileImage(file, 0)
			var m cfi.Machine
			looked, outermost := 0, 0
			for k := range table.Len() {
				f, err := table.Func(k)
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(string(table.Name(f.Name)), "go:") {
					continue // marks of the linker's, without code
				}
				for pc := f.Start; pc < table.CodeEnd(f); pc += 4 {
					row, signal, err := im.Row(&m, pc)
					if err != nil || row == nil || signal {
						t.Fatalf("%s at %#x: row %+v, %v", table.Name(f.Name), pc, row, err)
					}
					got := row.Clone()
					if f.Flags&pclntab.TopFrame != 0 && string(table.Name(f.Name)) != "runtime.sigtramp" {
						if outermost++; got.RA().Kind != cfi.Undefined {
							t.Errorf("%s is outermost, and has %+v", table.Name(f.Name), got)
						}
						continue
					}
					if f.Flags&pclntab.SPWrite != 0 {
						continue
					}
					fde, ok := debug.Find(pc)
					if !ok {
						continue
					}
					want, err := m.RowAt(fde, pc)
					if err != nil {
						t.Fatal(err)
					}
					looked++
					if !reflect.DeepEqual(got.CFA, want.CFA) || arch == "amd64" && !reflect.DeepEqual(got.RA(), want.RA()) {
						t.Fatalf("%s at %#x: %+v, CFI has %+v", table.Name(f.Name), pc, got, want)
					}
				}
			}
			if looked < 10_000 || outermost == 0 {
				t.Errorf("%d addresses, %d in outermost functions", looked, outermost)
			}
		})
	}
}
