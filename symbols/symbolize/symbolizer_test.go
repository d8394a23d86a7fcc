package symbolize

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// source has calls that are inlined three deep, in C that every compiler here reads.
const source = `
int sink;
static inline __attribute__((always_inline)) int innermost(int x) { sink += x; return x * 3; }
static inline __attribute__((always_inline)) int inner(int x) { return innermost(x) +
	innermost(x + 1); }
__attribute__((noinline)) int outer(int x) { return inner(x) - 7; }
__attribute__((noinline)) int caller(int x)
{
	int y = outer(x);
	y += outer(y);
	return y;
}
int main(int argc, char **argv) { return caller(argc); }
`

// codeAddresses are the addresses of every byte of the named functions.
func codeAddresses(t *testing.T, path string, names ...string) []uint64 {
	t.Helper()
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	list, err := im.Symbols()
	realtest.Must(t, err)
	var addrs []uint64
	for _, s := range list {
		if s.IsFunc() && slices.Contains(names, s.Name) {
			for a := s.Addr; a < s.Addr+s.Size; a++ {
				addrs = append(addrs, a)
			}
		}
	}
	if len(addrs) == 0 {
		t.Fatalf("%s has none of %q", path, names)
	}
	return addrs
}

// checkSlid names every address of an image at a load address, as first frames and as return
// addresses, and checks the answers against llvm-symbolizer's.
func checkSlid(t *testing.T, im *Image, base uint64, addrs []uint64) {
	t.Helper()
	want := truth(t, im.Path, addrs)
	s := New(local(t))
	realtest.Must(t, s.SetImages([]*Image{im}))
	for k, link := range addrs {
		// A return address behind each instruction's byte stands for that byte.
		stack := []Frame{{Address: link - base + im.Load}, {Address: link + 1 - base + im.Load}, {Address: link - base + im.Load, Kind: Exact}}
		n := 0
		s.Stack(context.Background(), stack, func(f *Named) bool {
			if got := frames(f.Calls); !slices.Equal(got, want[k]) {
				t.Errorf("%#x, frame %d: %q (%s), want %q", link, n, got, f.Reason, want[k])
			}
			if f.Image != im || f.Offset != f.Address-im.Load {
				t.Errorf("%#x, frame %d: image %v, offset %#x", link, n, f.Image, f.Offset)
			}
			n++
			return !t.Failed()
		})
	}
}

func TestSlideAndInlineFramesOfExecutablesOfBothKinds(t *testing.T) {
	for _, c := range []struct {
		flags []string
		load  uint64
	}{
		{[]string{"-pie", "-fPIE"}, 0x55d2c0a0f000},
		{[]string{"-no-pie", "-fno-pie"}, 0x400000},
		{[]string{"-no-pie", "-fno-pie", "-Wl,-Ttext-segment=0x10000000"}, 0x10000000},
	} {
		t.Run(c.flags[0], func(t *testing.T) {
			path := compile(t, realtest.GCC, "prog.c", source, append([]string{"-g", "-O1"}, c.flags...)...)
			im, err := object.Open(path)
			realtest.Must(t, err)
			defer im.Close()
			given := Describe(im)
			given.Load = c.load
			checkSlid(t, given, im.BaseAddr(), codeAddresses(t, path, "outer", "caller", "main"))
		})
	}
}

func TestSlideOfMachOIsFromText(t *testing.T) {
	realtest.Need(t, realtest.Clang, realtest.LD64, realtest.Dsymutil)
	dir := t.TempDir()
	realtest.Must(t, os.WriteFile(filepath.Join(dir, "prog.c"), []byte(source), 0o600))
	realtest.Output(t, dir, realtest.Clang, "-target", "arm64-apple-macos11", "-g", "-O1", "-ffreestanding", "-c", "prog.c")
	realtest.Output(t, dir, realtest.LD64, "-arch", "arm64", "-platform_version", "macos", "11.0", "11.0", "-e", "_main",
		"-undefined", "dynamic_lookup", "-o", "prog", "prog.o")
	realtest.Output(t, dir, realtest.Dsymutil, "prog")
	realtest.Must(t, os.Remove(filepath.Join(dir, "prog.o"))) // so that only the dSYM can tell

	path := filepath.Join(dir, "prog")
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	if im.BaseAddr() == 0 {
		t.Fatal("an executable is linked above __PAGEZERO")
	}
	given := Describe(im)
	given.Load = 0x102a3c000
	var addrs []uint64
	list, err := im.Symbols()
	realtest.Must(t, err)
	for _, s := range list {
		switch s.Name {
		case "_outer", "_caller":
			addrs = append(addrs, s.Addr, s.Addr+4, s.Addr+8)
		case "_main": // one jump
			addrs = append(addrs, s.Addr)
		}
	}
	checkSlid(t, given, im.BaseAddr(), addrs)
}

func TestFramesWithoutANameSayWhy(t *testing.T) {
	path := compile(t, realtest.GCC, "prog.c", source, "-g")
	stripped := compile(t, realtest.GCC, "prog.c", source, "-s", "-static", "-nostdlib", "-Wl,-e,main")
	text := filepath.Join(t.TempDir(), "notes.txt")
	realtest.Must(t, os.WriteFile(text, []byte("no image"), 0o600))
	images := []*Image{
		{Path: path, Load: 0x10000000, Size: 0x4000},
		{Path: stripped, Load: 0x20000000, Size: 0x4000},
		{Path: text, Load: 0x30000000, Size: 0x4000},
		{Path: path, ID: "0123", Load: 0x40000000, Size: 0x4000},
		{Path: "[vdso]", Load: 0x50000000, Size: 0x4000},
		{Path: path, Gone: true, Load: 0x60000000, Size: 0x4000},
		{Path: "/nowhere/a", Load: 0x70000000, Size: 0x4000},
		{Path: "/nowhere/b", Load: 0x70002000, Size: 0x4000},
		{Load: 0x80000000, Size: 0x4000},
		{Path: path, Offset: 0x7000, Load: 0x90000000, Size: 0x4000},
	}
	s := New(local(t))
	realtest.Must(t, s.SetImages(images))
	for addr, want := range map[uint64]string{
		0x1000:     "no image at this address",
		0x10000000: "",
		0x20001000: "",
		0x30001000: "notes.txt",
		0x40001000: "refused",
		0x50001000: "memory without a file",
		0x60001000: "deleted",
		0x70000001: "no such file",
		0x70003000: "two images at this address: a and b",
		0x80000001: "neither ID nor path",
		0x90000001: "offset 0x7000",
	} {
		var n Named
		s.Exact(context.Background(), addr, &n)
		if len(n.Calls) > 0 || n.Reason == "" || !strings.Contains(n.Reason, want) {
			t.Errorf("%#x: %v, %q; want %q", addr, n.Calls, n.Reason, want)
		}
	}
}

// A capture may list the mapping of the code alone, as profilers do.
func TestImageWhoseFirstMappingIsMissingIsPlacedByItsSegments(t *testing.T) {
	path := compile(t, realtest.GCC, "prog.c", source, "-g", "-O1")
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	for _, seg := range im.Segments() {
		if seg.Type != object.SegmentLoad || seg.Perm&object.PermX == 0 {
			continue
		}
		page := seg.Off &^ 0xfff
		given := &Image{Path: path, Load: 0x7f0000000000, Size: 0x10000, Offset: page}
		checkSlid(t, given, seg.Addr-(seg.Off-page), codeAddresses(t, path, "outer", "main"))
		return
	}
	t.Fatal("no code")
}

// Kernels with larger pages map more of the file in front of the code.
func TestImageIsPlacedByItsSegmentsWhereKernelsHaveLargerPages(t *testing.T) {
	path := compile(t, realtest.GCC, "prog.c", source, "-g", "-O1", "-Wl,-z,max-page-size=0x10000,-z,common-page-size=0x1000,-z,separate-code",
		"-Wl,-Ttext-segment=0x400000,--section-start=.init=0x41f000", "-no-pie")
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	for _, seg := range im.Segments() {
		if seg.Type != object.SegmentLoad || seg.Perm&object.PermX == 0 {
			continue
		}
		placed := map[uint64]bool{}
		for page := uint64(object.MinPageSize); page <= object.MaxPageSize; page *= 4 {
			offset := seg.Off &^ (page - 1)
			placed[offset] = true
			if offset != 0 { // what is mapped from the file's beginning is placed by that
				given := &Image{Path: path, Load: 0x7f0000000000, Size: 0x10000, Offset: offset}
				checkSlid(t, given, seg.Addr-(seg.Off-offset), codeAddresses(t, path, "outer", "main"))
			}
		}
		if len(placed) != 3 {
			t.Errorf("code at %#x of the file begins in %d places", seg.Off, len(placed))
		}
		return
	}
	t.Fatal("no code")
}

func TestFrameBehindASignalsTrampolineIsTakenAsItIs(t *testing.T) {
	// main starts right behind caller, so the byte before main's entry belongs to another line.
	path := compile(t, realtest.GCC, "prog.c", source, "-g", "-O1", "-falign-functions=1")
	entry := codeAddresses(t, path, "caller")[0]
	im := &Image{Path: path, Load: 0x10000000, Size: 0x10000}
	at := im.Load + entry
	s := New(local(t))
	realtest.Must(t, s.SetImages([]*Image{im}))
	name := func(stack ...Frame) string {
		last := ""
		s.Stack(context.Background(), stack, func(n *Named) bool {
			last = ""
			if len(n.Calls) > 0 {
				last = n.Calls[len(n.Calls)-1].Function
			}
			return true
		})
		return last
	}
	inside := Frame{Address: at + 4}
	nowhere := Frame{Address: 0x1000, Kind: Signal} // a trampoline without symbols
	for _, c := range []struct {
		what  string
		stack []Frame
		exact bool
	}{
		{"first", []Frame{{Address: at}}, true},
		{"first, said to be behind a call", []Frame{{Address: at, Kind: Return}}, false},
		{"return address", []Frame{inside, {Address: at}}, false},
		{"interrupted", []Frame{inside, {Address: at, Kind: Exact}}, true},
		{"marked for a signal itself", []Frame{inside, {Address: at, Kind: Signal}}, true},
		{"behind a marked trampoline", []Frame{inside, nowhere, {Address: at}}, true},
		{"behind a marked frame that is none", []Frame{inside, {Address: at + 4, Kind: Signal}, {Address: at}}, false},
	} {
		if got := name(c.stack...); (got == "caller") != c.exact {
			t.Errorf("%s: %q", c.what, got)
		}
	}
}

func TestMapsAreOpenedOnceForAllPlacesOfAnImage(t *testing.T) {
	path := compile(t, realtest.GCC, "prog.c", source, "-g")
	asked := 0
	s := New(countedSource{local(t), &asked})
	var images []*Image
	for k := range uint64(4) {
		images = append(images, &Image{Path: path, Load: 0x10000000 * (k + 1), Size: 0x4000})
	}
	realtest.Must(t, s.SetImages(images))
	for k := range uint64(4) {
		var n Named
		s.Exact(context.Background(), 0x10000000*(k+1)+codeAddresses(t, path, "main")[0], &n)
		if len(n.Calls) != 1 || n.Calls[0].Function != "main" {
			t.Errorf("place %d: %+v, %s", k, n.Calls, n.Reason)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}

// countedSource counts what it passes on.
type countedSource struct {
	Source
	n *int
}

func (c countedSource) Module(ctx context.Context, im *Image) (*Module, error) {
	*c.n++
	return c.Source.Module(ctx, im)
}

func TestTooManyImagesAreRefused(t *testing.T) {
	s := New(local(t))
	many := make([]*Image, maxImages+1)
	for k := range many {
		many[k] = &Image{Path: fmt.Sprint(k), Load: uint64(k) << 20, Size: 1}
	}
	if err := s.SetImages(many); err == nil {
		t.Error("taken at once")
	}
	realtest.Must(t, s.SetImages(many[:maxImages]))
	if err := s.AddImage(many[maxImages]); err == nil {
		t.Error("one more was taken")
	}
}

// The Linux kernel's file has a segment at 0 behind its text.
func TestSegmentBelowTheFirstOneDoesNotMoveTheImage(t *testing.T) {
	script := filepath.Join(t.TempDir(), "kernel.lds")
	realtest.Must(t, os.WriteFile(script, []byte(`
PHDRS { text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); percpu PT_LOAD FLAGS(6); }
SECTIONS {
	. = 0xffffffff81000000;
	.text : { *(.text .text.*) } :text
	. = 0xffffffff82000000;
	.data : { *(.data .data.*) *(.bss) *(COMMON) *(.rodata*) *(.eh_frame) } :data
	.percpu 0 : { LONG(1) } :percpu
	/DISCARD/ : { *(.note*) *(.comment) }
}`), 0o600))
	realtest.Need(t, realtest.AMD64) // whose code model for kernels it is
	path := compile(t, realtest.GCC, "kernel.c", source, "-g", "-O1", "-mcmodel=kernel", "-fno-pic", "-no-pie", "-nostdlib", "-static", "-Wl,-T,"+script, "-Wl,-e,main")
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	given := Describe(im)
	if given.Load != 0xffffffff81000000 || given.Size < 0x1000000 {
		t.Errorf("%+v", given)
	}
	given.Load += 0x1e000000 // KASLR
	checkSlid(t, given, 0xffffffff81000000, codeAddresses(t, path, "outer", "caller"))
}

func TestThumbBitIsNoPartOfTheAddress(t *testing.T) {
	realtest.Need(t, realtest.Clang)
	dir := t.TempDir()
	realtest.Must(t, os.WriteFile(filepath.Join(dir, "prog.c"), []byte(source), 0o600))
	realtest.Output(t, dir, realtest.Clang, "-target", "armv7-linux-gnueabi", "-mthumb", "-g", "-O1", "-ffreestanding", "-c", "prog.c", "-o", "prog.o")
	path := filepath.Join(dir, "prog.o")
	im := &Image{Path: path, Load: 0x10000, Size: 0x1000}
	var addrs []uint64
	for _, a := range codeAddresses(t, path, "caller") {
		if a%2 == 0 {
			addrs = append(addrs, a)
		}
	}
	want := truth(t, path, addrs)
	s := New(local(t))
	realtest.Must(t, s.SetImages([]*Image{im}))
	for k, a := range addrs {
		n := 0
		// The address itself, and as the one behind a 16-bit instruction.
		s.Stack(context.Background(), []Frame{{Address: im.Load + a | 1}, {Address: im.Load + a + 2 | 1}}, func(f *Named) bool {
			if got := frames(f.Calls); !slices.Equal(got, want[k]) {
				t.Errorf("%#x, frame %d: %q (%s), want %q", a, n, got, f.Reason, want[k])
			}
			n++
			return true
		})
	}
}
