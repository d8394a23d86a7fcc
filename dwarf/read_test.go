package dwarf

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// goProgram builds a program with Go itself: its libraries make some hundred units.
func goProgram(t testing.TB, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	const text = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(fmt.Sprint(1)) }\n"
	for name, data := range map[string]string{"main.go": text, "go.mod": "module made\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, append(append([]string{"env", "GOFLAGS=", "CGO_ENABLED=0"}, env...), realtest.Tool(t, realtest.GoTool), "build", "-o", "out", ".")...)
	return filepath.Join(dir, "out")
}

func TestGoProgramsSayTheSameToTheStandardLibrarysReader(t *testing.T) {
	path := goProgram(t)
	got, want := list(t, openData(t, path, Options{})), yard(t, path)
	compare(t, got, want)
}

func TestSeveralGoroutinesReadTheSame(t *testing.T) {
	path := goProgram(t)
	want := list(t, openData(t, path, Options{}))
	d := openData(t, path, Options{Workers: 4})
	var next atomic.Int64
	var running sync.WaitGroup
	parts := make([]listing, 4)
	for k := range parts {
		running.Go(func() {
			var c Contents
			for {
				n := int(next.Add(1)) - 1
				if n >= len(d.Units()) {
					return
				}
				if err := d.Read(&d.Units()[n], &c); err != nil {
					t.Error(err)
				}
				parts[k].add(d, &c)
			}
		})
	}
	running.Wait()
	var got listing
	for k := range parts {
		got.functions = append(got.functions, parts[k].functions...)
		got.rows = append(got.rows, parts[k].rows...)
	}
	got.sort()
	compare(t, &got, want)
}

func TestReadingTakesNoMemoryOnceItHasSome(t *testing.T) {
	d := openData(t, build(t, realtest.GXX, "shapes.cc", "-O2", "-g"), Options{})
	var c Contents
	for _, u := range d.Units() {
		if n := testing.AllocsPerRun(20, func() {
			if err := d.Read(&u, &c); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestOneContentsReadsSeveralImages(t *testing.T) {
	a := openData(t, build(t, realtest.GXX, "shapes.cc", "-O2", "-g"), Options{})
	b := openData(t, build(t, realtest.GCC, "nest.c", "-O2", "-gdwarf-4"), Options{})
	var c Contents
	for range 2 {
		for _, d := range []*Data{a, b} {
			var got listing
			for k := range d.Units() {
				if err := d.Read(&d.Units()[k], &c); err != nil {
					t.Error(err)
				}
				got.add(d, &c)
			}
			got.sort()
			if want := list(t, d); !slices.Equal(got.lines(), want.lines()) {
				t.Error("what was read before shows")
			}
		}
	}
}

func TestSummarySaysWhatThereIs(t *testing.T) {
	d := openData(t, build(t, realtest.GXX, "shapes.cc", "-O2", "-gdwarf-4", "-fdebug-types-section"), Options{})
	s := d.Summary()
	if !slices.Equal(s.Versions, []int{4}) || s.Units != 1 || s.TypeUnits == 0 || s.PartialUnits != 0 || s.Format64 || s.Alt {
		t.Errorf("%+v", s)
	}
	info := d.image.Section(".debug_info")
	if s.InfoSize != info.FileSize || s.LineSize != d.image.Section(".debug_line").FileSize {
		t.Errorf("%+v: sizes differ from those of the sections", s)
	}
	var total uint64
	for _, u := range d.Units() {
		total += u.Size
	}
	if total != s.InfoSize {
		t.Errorf("units of %d bytes in %d", total, s.InfoSize)
	}
	if s := openData(t, build(t, realtest.Clang, "nest.c", "-O2", "-gdwarf-5", "-gdwarf64"), Options{}).Summary(); !s.Format64 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkRead reads a Go program, whose DWARF is like a compiler's of C++ in size
// and makeup. Bytes are those of .debug_info and .debug_line.
func BenchmarkRead(b *testing.B) {
	d := openData(b, goProgram(b), Options{})
	s := d.Summary()
	b.SetBytes(int64(s.InfoSize + s.LineSize))
	b.ReportAllocs()
	var c Contents
	for b.Loop() {
		for k := range d.Units() {
			if err := d.Read(&d.Units()[k], &c); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkReadDeeplyInlined reads C++ code that was inlined into other code.
func BenchmarkReadDeeplyInlined(b *testing.B) {
	d := openData(b, build(b, realtest.GXX, "shapes.cc", "-O2", "-g"), Options{})
	b.SetBytes(int64(d.Summary().InfoSize + d.Summary().LineSize))
	b.ReportAllocs()
	var c Contents
	for b.Loop() {
		if err := d.Read(&d.Units()[0], &c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpenCompressed inflates.
func BenchmarkOpenCompressed(b *testing.B) {
	plain := goProgram(b)
	path := filepath.Join(b.TempDir(), "out")
	run(b, "", realtest.Tool(b, realtest.Objcopy), "--compress-debug-sections=zlib", plain, path)
	im := openImage(b, path)
	var size int64
	for b.Loop() {
		d, err := Open(b.Context(), im, Options{})
		if err != nil {
			b.Fatal(err)
		}
		size = int64(d.Summary().InfoSize)
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(size)
}
