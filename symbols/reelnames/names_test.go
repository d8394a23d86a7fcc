package reelnames

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

// stripped builds a program and returns it without symbols, a folder with its debug file by that name, and where it has
// the function.
func stripped(t *testing.T, function string) (program, debugDir string, addr uint64) {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.Objcopy)
	whole := realtest.Build(t, "threads", "-Wl,--build-id")
	dir := t.TempDir()
	program, debugDir = filepath.Join(dir, "bin", "server"), filepath.Join(dir, "debug")
	for _, folder := range []string{filepath.Dir(program), debugDir} {
		realtest.Must(t, os.Mkdir(folder, 0o700))
	}
	objcopy, err := realtest.Objcopy.Find()
	realtest.Must(t, err)
	realtest.Must(t, exec.Command(objcopy, "--strip-all", whole, program).Run())
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", whole, filepath.Join(debugDir, "server.debug")).Run())
	f, err := elf.Open(whole)
	realtest.Must(t, err)
	defer f.Close()
	list, err := f.Symbols()
	realtest.Must(t, err)
	for _, s := range list {
		if s.Name == function {
			return program, debugDir, s.Value
		}
	}
	t.Fatalf("%s has no %s", whole, function)
	return "", "", 0
}

// nameOf names one function.
func nameOf(names *Names, im *reel.Image, fn *reel.Function) reel.Naming {
	known := []reel.Naming{{Name: fn.Name}}
	names.Name(im, []*reel.Function{fn}, known)
	return known[0]
}

func idOf(t *testing.T, path string) string {
	t.Helper()
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	return im.ID()
}

func TestFunctionsWithoutSymbolsAreNamedByTheDebugFile(t *testing.T) {
	program, debugDir, addr := stripped(t, "counted_a")
	id := idOf(t, program)
	unnamed := fmt.Sprintf("server+0x%x", addr)
	for name, k := range map[string]struct {
		image    reel.Image
		function string
		addr     uint64
		want     string
	}{
		"the program is here":       {reel.Image{Path: program, ID: id}, unnamed, addr, "counted_a"},
		"it is not":                 {reel.Image{Path: "/no/such/server", ID: id}, unnamed, addr, "counted_a"},
		"it was found in the code":  {reel.Image{Path: program, ID: id}, fmt.Sprintf("found_0x%x", addr), addr, "counted_a"},
		"a part of the function":    {reel.Image{Path: program, ID: id}, fmt.Sprintf("server+0x%x", addr+4), addr + 4, "counted_a+0x4"},
		"it has a name":             {reel.Image{Path: program, ID: id}, "mine", addr, "mine"},
		"another address":           {reel.Image{Path: program, ID: id}, "server+0x10", addr, "server+0x10"},
		"an address of no function": {reel.Image{Path: program, ID: id}, "server+0x10", 0x10, "server+0x10"},
		"another ID":                {reel.Image{Path: program, ID: "00ff"}, unnamed, addr, unnamed},
		"an ID that is none":        {reel.Image{Path: program, ID: "../../x"}, unnamed, addr, unnamed},
		"no ID":                     {reel.Image{Path: program}, unnamed, addr, unnamed},
	} {
		names := New(t.Context(), &symbols.Finder{DebugDirs: []string{debugDir}})
		fn := reel.Function{Name: k.function, Addr: k.addr}
		got := nameOf(names, &k.image, &fn)
		if got.Name != k.want {
			t.Errorf("%s: %q, want %q", name, got.Name, k.want)
		}
		placed := k.addr >= addr && k.image.ID == id
		if placed != (filepath.Base(got.File) == "threads.c" && got.Line > 0) || (k.want != k.function) != (got.From == reel.NamedByDWARF) {
			t.Errorf("%s: named from %q, at %s:%d", name, got.From, got.File, got.Line)
		}
		realtest.Must(t, names.Close())
		if got := nameOf(names, &k.image, &fn); got != (reel.Naming{Name: k.function}) {
			t.Errorf("%s: %+v after Close", name, got)
		}
	}
}

func TestWhatIsNoDebugFileNamesNothing(t *testing.T) {
	program, debugDir, addr := stripped(t, "counted_a")
	file := filepath.Join(debugDir, "server.debug")
	realtest.Must(t, os.Remove(file))
	im := reel.Image{Path: program, ID: idOf(t, program)}
	fn := reel.Function{Name: fmt.Sprintf("server+0x%x", addr), Addr: addr}
	for name, make := range map[string]func() error{
		"a folder": func() error { return os.Mkdir(file, 0o700) },
		"a text":   func() error { return os.WriteFile(file, []byte("text"), 0o600) },
		"a link to a FIFO": func() error {
			fifo := filepath.Join(debugDir, "fifo")
			if err := exec.Command("mkfifo", fifo).Run(); err != nil {
				return err
			}
			return os.Symlink(fifo, file)
		},
		"a link to itself": func() error { return os.Symlink(file, file) },
	} {
		realtest.Must(t, make())
		names := New(t.Context(), &symbols.Finder{DebugDirs: []string{debugDir}})
		if got := nameOf(names, &im, &fn); got.Name != fn.Name {
			t.Errorf("%s: %q", name, got.Name)
		}
		realtest.Must(t, names.Close())
		realtest.Must(t, os.Remove(file))
	}
}

func TestReelsAreReadWithTheNames(t *testing.T) {
	program, debugDir, addr := stripped(t, "counted_a")
	path := filepath.Join(t.TempDir(), "x.reel")
	w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(1000)}, reel.Image{Path: program, ID: idOf(t, program)})
	_, err := w.AddFunctions([]reel.Function{{Name: fmt.Sprintf("server+0x%x", addr), Image: 1, Addr: addr, Size: 4}, {Name: "mine", Image: 1, Addr: addr + 64}})
	realtest.Must(t, err)
	realtest.Must(t, w.Close())
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	names := New(t.Context(), &symbols.Finder{DebugDirs: []string{debugDir}})
	defer names.Close()
	f.NameBy(names)
	one, _ := f.Function(1)
	var all []string
	for _, fn := range f.Functions {
		all = append(all, fn.Name)
	}
	if got := fmt.Sprint(one.Name, all); got != "counted_a[counted_a mine]" {
		t.Errorf("%s", got)
	}
}

func TestLinesOfFunctionsWithNamesAreLookedForAsFarAsAsked(t *testing.T) {
	program, debugDir, addr := stripped(t, "counted_a")
	im := reel.Image{Path: program, ID: idOf(t, program)}
	fn := reel.Function{Name: "mine", Addr: addr}
	elsewhere := reel.Image{Path: "/elsewhere/" + filepath.Base(program), ID: im.ID}
	for _, k := range []struct {
		lines Lines
		dirs  []string
		image reel.Image
		want  bool
	}{
		{LinesAtHand, []string{debugDir}, im, true},
		{AllLines, []string{debugDir}, im, true},
		{NoLines, []string{debugDir}, im, false},
		{LinesAtHand, nil, im, false},
		{LinesAtHand, []string{debugDir}, elsewhere, true}, // the program ran on another machine
		{LinesAtHand, nil, elsewhere, false},
	} {
		names := New(t.Context(), &symbols.Finder{DebugDirs: k.dirs})
		names.Lines = k.lines
		looked := 0
		names.Looked = func(*reel.Image) { looked++ }
		got := nameOf(names, &k.image, &fn)
		if got.Name != "mine" || got.From != reel.NamedByRecorder || (got.Line > 0) != k.want || (looked == 0) != (k.lines == NoLines) {
			t.Errorf("%v with %v: %+v, looked %d times", k.lines, k.dirs, got, looked)
		}
		realtest.Must(t, names.Close())
	}
}

func TestWhereSymbolsShareAnAddressTheNameIsTheRecordersChoice(t *testing.T) {
	program, debugDir, addr := stripped(t, "counted_a")
	im := reel.Image{Path: program, ID: idOf(t, program)}
	// What objcopy adds comes behind, and is as large: a map has the last of such for code.
	debug := filepath.Join(debugDir, "server.debug")
	objcopy, err := realtest.Objcopy.Find()
	realtest.Must(t, err)
	add := fmt.Sprintf("=.text:0x%x,function,global", addr-textOf(t, program))
	out, err := exec.Command(objcopy, "--add-symbol", "zz"+add, "--add-symbol", "__counted"+add, debug).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for own, want := range map[string]string{
		fmt.Sprintf("server+0x%x", addr): "zz", // shorter than counted_a
		"__counted":                      "zz", // the only one that a stripped image had
		"counted_b":                      "counted_b",
		"_Z1av":                          "zz",
	} {
		names := New(t.Context(), &symbols.Finder{DebugDirs: []string{debugDir}})
		names.Lines = NoLines
		fn := reel.Function{Name: own, Addr: addr}
		if got := nameOf(names, &im, &fn); got.Name != want {
			t.Errorf("%s: %q, want %q", own, got.Name, want)
		}
		realtest.Must(t, names.Close())
	}
}

func textOf(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	return f.Section(".text").Addr
}

func TestAfterPrepareNothingIsLookedFor(t *testing.T) {
	program, debugDir, addr := stripped(t, "counted_a")
	other := filepath.Join(filepath.Dir(program), "other")
	realtest.Must(t, os.Link(program, other))
	path := filepath.Join(t.TempDir(), "x.reel")
	id := idOf(t, program)
	w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(1000)}, reel.Image{Path: program, ID: id})
	_, err := w.AddFunctions([]reel.Function{{Name: fmt.Sprintf("server+0x%x", addr), Image: 1, Addr: addr, Size: 4}})
	realtest.Must(t, err)
	realtest.Must(t, w.Close())
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	names := New(t.Context(), &symbols.Finder{DebugDirs: []string{debugDir}})
	defer names.Close()
	looked := 0
	names.Looked = func(*reel.Image) { looked++ }
	f.NameBy(names)
	names.Prepare(f)
	if got, _ := f.Naming(1); got.Name != "counted_a" || got.Line == 0 {
		t.Errorf("%+v", got)
	}
	fn := reel.Function{Name: "x+0x10", Addr: 0x10}
	if got := nameOf(names, &reel.Image{Path: other, ID: "00" + id}, &fn); got.Name != fn.Name || looked != 1 {
		t.Errorf("%+v, %d images looked for", got, looked)
	}
}
