package object

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestFunctionStartsAsObjdumpListsThem(t *testing.T) {
	realtest.Need(t, realtest.LLVMObjdump)
	test := func(path string) {
		i := open(t, path)
		var want []string
		for line := range strings.Lines(tool(t, realtest.LLVMObjdump, "--macho", "--function-starts", path)) {
			if line = strings.TrimSpace(line); !strings.HasSuffix(line, ":") && line != "" {
				want = append(want, line)
			}
		}
		starts, err := i.FunctionStarts()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range starts {
			got = append(got, fmt.Sprintf("%016x", s))
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	for _, arch := range []string{"arm64", "x86_64"} {
		f := buildMach(t, arch)
		test(f.dylib)
		test(f.program)
	}
}

func TestFunctionSymbolsGetSizes(t *testing.T) {
	for _, arch := range []string{"arm64", "x86_64"} {
		f := buildMach(t, arch)
		// The debug map tells the true sizes; symbols reach to the next start.
		i := open(t, f.dylib)
		list, err := i.FunctionSymbols()
		if err != nil {
			t.Fatal(err)
		}
		size := make(map[string]uint64)
		for k := range list {
			size[list[k].Name] = list[k].Size
			if k > 0 && list[k-1].Addr+list[k-1].Size > list[k].Addr {
				t.Errorf("%s: %+v overlaps %+v", arch, list[k-1], list[k])
			}
		}
		files, err := i.OSO()
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, file := range files {
			for _, fn := range file.Functions {
				count++
				if size[fn.Name] < fn.Size || size[fn.Name] > fn.Size+15 {
					t.Errorf("%s: %s has %d bytes, want %d and padding", arch, fn.Name, size[fn.Name], fn.Size)
				}
			}
		}
		if count < 6 {
			t.Errorf("%s: %d functions in the debug map", arch, count)
		}
	}
	// In ELF, sizes that are there stay; what assembly leaves out is filled in.
	elfImage := open(t, compile(t))
	list, err := elfImage.FunctionSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		for _, raw := range symbolsNamed(t, elfImage, s.Name) {
			if raw.Addr == s.Addr && raw.Size != 0 && raw.Size != s.Size {
				t.Errorf("%+v, want the size of %+v", s, raw)
			}
		}
		if s.Size == 0 {
			t.Errorf("%+v has no size", s)
		}
	}
}

func TestThumbBitOfELFSymbols(t *testing.T) {
	realtest.Need(t, realtest.Clang, realtest.LLVMObjdump)
	dir := t.TempDir()
	write(t, dir+"/a.c", []byte("int thumb(int a) { return a + 1; }\n__attribute__((target(\"arm\"))) int plain(int a) { return a + 2; }\n"))
	tool(t, realtest.Clang, "-target", "armv7-linux-gnueabihf", "-mthumb", "-O1", "-c", dir+"/a.c", "-o", dir+"/a.o")
	i := open(t, dir+"/a.o")
	for name, want := range map[string]bool{"thumb": true, "plain": false} {
		found := symbolsNamed(t, i, name)
		if len(found) != 1 || found[0].Thumb != want || found[0].Addr%2 != 0 {
			t.Errorf("%s: %+v, want Thumb %v", name, found, want)
		}
	}
}
