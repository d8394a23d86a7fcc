package dwarf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// readAll reads everything that the bytes hold, and checks that what comes out is
// in order, whatever they say.
func readAll(t *testing.T, data []byte, opts Options) (functions int, errs []error) {
	t.Helper()
	return readInto(t, data, opts, new(Contents))
}

func readInto(t *testing.T, data []byte, opts Options, c *Contents) (functions int, errs []error) {
	t.Helper()
	im, err := object.Parse("x", data)
	if err != nil {
		return 0, []error{err}
	}
	d, err := Open(context.Background(), im, opts)
	if err != nil {
		return 0, []error{err}
	}
	errs = d.Problems()
	for k := range d.Units() {
		if err := d.Read(&d.Units()[k], c); err != nil {
			var where *Problem
			if !errors.As(err, &where) || where.Section == "" || where.File == "" {
				t.Errorf("error %q names no place", err)
			}
			errs = append(errs, err)
		}
		checkContents(t, d, c)
		functions += len(c.Functions)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return functions, errs
}

// checkContents checks what is promised of Contents.
func checkContents(t *testing.T, d *Data, c *Contents) {
	t.Helper()
	within := func(s Span, n int) bool { return uint64(s.First)+uint64(s.Count) <= uint64(n) }
	for _, r := range c.Ranges {
		region, ok := d.regionOf(r.Low)
		if r.Low >= r.High || !ok || r.High > region.High {
			t.Errorf("range %x holds no code", r)
		}
	}
	for _, f := range c.Functions {
		if f.Ranges.Count == 0 || !within(f.Ranges, len(c.Ranges)) || !within(f.Inlines, len(c.Inlines)) || int(f.File) >= len(c.Files) {
			t.Fatalf("function %+v refers to nothing", f)
		}
		d.Bytes(f.Name)
		depth := uint32(0)
		for _, call := range c.Inlines[f.Inlines.First:][:f.Inlines.Count] {
			if !within(call.Ranges, len(c.Ranges)) || int(call.CallFile) >= len(c.Files) {
				t.Fatalf("inlined call %+v refers to nothing", call)
			}
			if call.Depth == 0 || call.Depth > depth+1 {
				t.Fatalf("inlined call at depth %d follows one at depth %d", call.Depth, depth)
			}
			depth = call.Depth
			d.Bytes(call.Name)
		}
	}
	for _, f := range c.Files {
		d.Bytes(f.CompDir)
		d.Bytes(f.Dir)
		d.Bytes(f.Name)
	}
	for k, r := range c.Rows {
		if int(r.File) >= len(c.Files) {
			t.Fatalf("row %+v refers to nothing", r)
		}
		if k > 0 && !c.Rows[k-1].End && r.Addr <= c.Rows[k-1].Addr {
			t.Fatalf("row at %#x follows one at %#x", r.Addr, c.Rows[k-1].Addr)
		}
	}
	if n := len(c.Rows); n > 0 && !c.Rows[n-1].End {
		t.Fatal("the last sequence has no end")
	}
}

// small are images that use much of the format and little room.
var small = []struct {
	by    realtest.Capability
	flags string
}{
	{realtest.GCC, "-O2 -gdwarf-5 -fPIC -shared -nostdlib -DFREESTANDING"},
	{realtest.GCC, "-O2 -gdwarf-2 -fPIC -shared -nostdlib -DFREESTANDING"},
	{realtest.GCC, "-O2 -gdwarf-4 -c -DFREESTANDING"},
	{realtest.Clang, "-O2 -gdwarf-5 -fPIC -shared -nostdlib -DFREESTANDING"},
	{realtest.Clang, "-O2 -gdwarf-4 -target powerpc-linux-gnu " + freestanding},
}

func smallImage(t testing.TB, by realtest.Capability, flags string) []byte {
	t.Helper()
	data, err := os.ReadFile(build(t, by, "nest.c", strings.Fields(flags)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// debugSections calls visit with each section that is read and holds no text.
func debugSections(t *testing.T, data []byte, visit func(im *object.Image, k int, s *object.Section)) {
	t.Helper()
	im, err := object.Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	for k := range im.Sections() {
		s := &im.Sections()[k]
		switch s.Name {
		case ".debug_info", ".debug_abbrev", ".debug_line", ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets", ".rela.debug_info":
			if s.FileSize > 0 {
				visit(im, k, s)
			}
		}
	}
}

func TestFlippedBytesDoNoHarm(t *testing.T) {
	for _, b := range small {
		t.Run(string(b.by)+" "+b.flags, func(t *testing.T) {
			t.Parallel()
			data := smallImage(t, b.by, b.flags)
			whole, errs := readAll(t, data, Options{Workers: 1})
			if whole == 0 || len(errs) > 0 {
				t.Fatal(whole, errs)
			}
			told := 0
			var c Contents
			debugSections(t, data, func(_ *object.Image, _ int, s *object.Section) {
				for at := s.Off; at < s.Off+s.FileSize; at++ {
					for _, flip := range []byte{0xff, 0x80, 0x01} {
						data[at] ^= flip
						if _, errs := readInto(t, data, Options{Workers: 1}, &c); len(errs) > 0 {
							told++
						}
						data[at] ^= flip
					}
				}
			})
			if told == 0 {
				t.Error("no damage was told")
			}
		})
	}
}

func TestTruncatedSectionsGiveWhatIsLeft(t *testing.T) {
	for _, b := range small {
		t.Run(string(b.by)+" "+b.flags, func(t *testing.T) {
			t.Parallel()
			data := smallImage(t, b.by, b.flags)
			var c Contents
			whole, _ := readInto(t, data, Options{Workers: 1}, &c)
			debugSections(t, data, func(im *object.Image, k int, s *object.Section) {
				header, size := sectionSizeField(im, k)
				kept := make([]byte, size)
				copy(kept, data[header:])
				most := 0
				for n := range s.FileSize {
					if size == 8 {
						im.ByteOrder.PutUint64(data[header:], n)
					} else {
						im.ByteOrder.PutUint32(data[header:], uint32(n))
					}
					functions, errs := readInto(t, data, Options{Workers: 1}, &c)
					if s.Name == ".debug_info" && len(errs) == 0 {
						t.Errorf("%s of %#x bytes of %#x: nothing was told", s.Name, n, s.FileSize)
					}
					most = max(most, functions)
				}
				copy(data[header:], kept)
				if s.Name == ".debug_info" && most < whole-1 {
					t.Errorf("at most %d of %d functions were left", most, whole)
				}
			})
		})
	}
}

// sectionSizeField returns where a section header's sh_size is, and its size.
func sectionSizeField(im *object.Image, k int) (at, size int) {
	data, err := im.Bytes(0, im.Size())
	if err != nil {
		panic(err)
	}
	if im.Class == object.Class32 {
		return int(im.ByteOrder.Uint32(data[32:])) + 40*k + 20, 4
	}
	return int(im.ByteOrder.Uint64(data[40:])) + 64*k + 32, 8
}

func TestDamageInOneUnitLeavesTheOthers(t *testing.T) {
	a := build(t, realtest.GCC, "nest.c", "-O2", "-g", "-c")
	path := filepath.Join(t.TempDir(), "out")
	run(t, "", realtest.Tool(t, realtest.GXX), "-nostdlib", "-shared", "-Wl,--allow-multiple-definition,-z,undefs", "-o", path,
		build(t, realtest.GXX, "shapes.cc", "-O2", "-g", "-fPIC", "-c"), a)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	im, err := object.Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), im, Options{})
	if err != nil {
		t.Fatal(err)
	}
	units := d.Units()
	if len(units) != 2 {
		t.Fatalf("%d units, want 2", len(units))
	}
	var c Contents
	var whole [2]int
	for k := range whole {
		if err := d.Read(&units[k], &c); err != nil {
			t.Fatal(err)
		}
		whole[k] = len(c.Functions)
	}
	// The code of an entry that no table has, early in the first unit.
	info := im.Section(".debug_info")
	for at := units[0].Size / 8; at < units[0].Size/8+16; at++ {
		data[info.Off+at] = 0xff
	}
	if d, err = Open(t.Context(), im, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Read(&d.Units()[0], &c); err == nil || !strings.Contains(err.Error(), "section .debug_info at 0x") {
		t.Errorf("error %v", err)
	}
	if n := len(c.Functions); n >= whole[0] || len(c.Rows) == 0 {
		t.Errorf("%d functions and %d rows are left of the damaged unit, which had %d functions", n, len(c.Rows), whole[0])
	}
	if err := d.Read(&d.Units()[1], &c); err != nil || len(c.Functions) != whole[1] {
		t.Errorf("%d functions are left of the other unit, want %d; %v", len(c.Functions), whole[1], err)
	}
}

func FuzzRead(f *testing.F) {
	for _, b := range small {
		f.Add(smallImage(f, b.by, b.flags))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		readAll(t, data, Options{Workers: 1})
	})
}

func FuzzSplit(f *testing.F) {
	flags := strings.Fields("-O2 -fPIC -shared -nostdlib -DFREESTANDING -gsplit-dwarf")
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		path := build(f, realtest.Clang, "nest.c", append(flags, version)...)
		dwos, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.dwo"))
		if err != nil || len(dwos) != 1 {
			f.Fatal(dwos, err)
		}
		packed := filepath.Join(f.TempDir(), "out.dwp")
		run(f, "", realtest.Tool(f, realtest.LLVMDwp), dwos[0], "-o", packed)
		for _, name := range []string{dwos[0], packed} {
			skeleton, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			split, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(skeleton, split)
		}
	}
	f.Fuzz(func(t *testing.T, data, split []byte) {
		readAll(t, data, Options{Workers: 1, Split: func(string, string, uint64) (*object.Image, error) {
			return object.Parse("split", split)
		}})
	})
}
