package symbols

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

const twoFunctions = "int f(int x) { return x * 3; }\nint main(int c, char **v) { return f(c); }\n"

// explained makes the map of a file and returns what was missing, and why it names no code at an address.
func explained(t *testing.T, path string, addr uint64) (missing, reason string) {
	t.Helper()
	m, stats, err := BuildMap(t.Context(), image(t, path), BuildOptions{Search: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range stats.Missing {
		missing += err.Error() + "\n"
	}
	frames, why := m.Lookup(addr, nil)
	if len(frames) > 0 {
		t.Errorf("%s at %#x: %+v", path, addr, frames)
	}
	return missing, m.Explain(why)
}

func TestRefusedDebugFileIsTold(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "t.c"), twoFunctions)
	objcopy := realtest.Tool(t, realtest.Objcopy)
	run(t, dir, nil, realtest.Tool(t, realtest.GCC), "-g", "-Wl,--build-id=none", "-o", "t", "t.c")
	run(t, dir, nil, objcopy, "--only-keep-debug", "t", "t.debug")
	run(t, dir, nil, objcopy, "--strip-all", "--add-gnu-debuglink=t.debug", "t", "stripped")
	path := filepath.Join(dir, "stripped")
	entry := image(t, path).Entry()
	if m, _, err := BuildMap(t.Context(), image(t, path), BuildOptions{Search: true}); err != nil || !m.HasDWARF() {
		t.Fatalf("the debug file isn't found: %v", err)
	}
	debug, err := os.OpenFile(filepath.Join(dir, "t.debug"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := debug.WriteString("changed"); err != nil {
		t.Fatal(err)
	}
	debug.Close()
	missing, reason := explained(t, path, entry)
	for _, text := range []string{missing, reason} {
		if !strings.Contains(text, "t.debug: refused: its CRC is 0x") {
			t.Errorf("%q", text)
		}
	}
	if !strings.Contains(reason, "stripped") {
		t.Errorf("%q", reason)
	}
}

func TestMissingDwzFileIsTold(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "t.c"), twoFunctions)
	run(t, dir, nil, realtest.Tool(t, realtest.GCC), "-g", "-o", "one", "t.c")
	run(t, dir, nil, realtest.Tool(t, realtest.GCC), "-g", "-o", "two", "t.c")
	run(t, dir, nil, realtest.Tool(t, realtest.Dwz), "-m", "common.dwz", "one", "two")
	path := filepath.Join(dir, "one")
	if _, stats, err := BuildMap(t.Context(), image(t, path), BuildOptions{Search: true}); err != nil || len(stats.Missing) > 0 {
		t.Fatalf("%v, missing %v", err, stats)
	}
	if err := os.Remove(filepath.Join(dir, "common.dwz")); err != nil {
		t.Fatal(err)
	}
	if missing, _ := explained(t, path, 1); !strings.Contains(missing, `dwz has made, "common.dwz"`) {
		t.Errorf("%q", missing)
	}
	// A map that lacks something is none to be kept.
	store, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := Finder{Store: store}
	m, err := f.Find(t.Context(), Wanted{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if kept, err := f.Stored(Wanted{Path: path}); err == nil {
		kept.Close()
		t.Error("the map was stored")
	}
}

// Labels of RISC-V's assembler stand for places in functions, and mapping symbols for nothing.
// What dwz has put elsewhere is fetched, too, for a debug file that was fetched and for one that is here.
func TestDwzFilesAreFetched(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "t.c"), twoFunctions)
	for _, name := range []string{"one", "two"} {
		run(t, dir, nil, realtest.Tool(t, realtest.GCC), "-g", "-Wl,--build-id", "-o", name, "t.c")
	}
	whole, _, err := BuildMap(t.Context(), image(t, filepath.Join(dir, "one")), BuildOptions{})
	realtest.Must(t, err)
	addr := image(t, filepath.Join(dir, "one")).Entry()
	whole.Functions(func(start, _ uint64, name string) bool {
		if name == "main" {
			addr = start
		}
		return true
	})
	run(t, dir, nil, realtest.Tool(t, realtest.Dwz), "-m", "common.dwz", "one", "two")
	common := image(t, filepath.Join(dir, "common.dwz")).ID()
	one := image(t, filepath.Join(dir, "one")).ID()
	served := t.TempDir()
	for id, file := range map[string]string{common: "common.dwz", one: "one"} {
		realtest.Must(t, os.MkdirAll(filepath.Join(served, id), 0o700))
		realtest.Must(t, os.Rename(filepath.Join(dir, file), filepath.Join(served, id, FetchDebugInfo)))
	}
	for name, w := range map[string]Wanted{
		"fetched": {ID: one},
		"here":    {ID: one, Path: filepath.Join(served, one, FetchDebugInfo)},
	} {
		store := newStore(t)
		m, err := (&Finder{Store: store, Fetcher: &folder{dir: served}}).Find(t.Context(), w)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		frames, _ := m.Lookup(addr, nil)
		if len(frames) != 1 || frames[0].Linkage != "main" || frames[0].Line == 0 || len(m.missing) > 0 {
			t.Errorf("%s: %+v, missing %v", name, frames, m.missing)
		}
		realtest.Must(t, m.Close())
		if m, err = (&Finder{Store: store}).Stored(w); err != nil {
			t.Errorf("%s: it isn't in the store: %v", name, err)
		} else {
			m.Close()
		}
	}
}

// A debug file of a program without debug information has a symbol table.
func TestDebugFilesOfSymbolsOnlyAreFoundByName(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "t.c"), twoFunctions)
	objcopy := realtest.Tool(t, realtest.Objcopy)
	run(t, dir, nil, realtest.Tool(t, realtest.GCC), "-Wl,--build-id", "-o", "t", "t.c")
	debug := t.TempDir()
	run(t, dir, nil, objcopy, "--only-keep-debug", "t", filepath.Join(debug, "stripped.debug"))
	run(t, dir, nil, objcopy, "--strip-all", "t", "stripped")
	path := filepath.Join(dir, "stripped")
	for _, w := range []Wanted{{Path: path}, {Path: "/elsewhere/stripped", ID: image(t, path).ID()}} {
		m, err := (&Finder{DebugDirs: []string{debug}}).Find(t.Context(), w)
		if err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		if !m.HasSymbols() || m.HasDWARF() {
			t.Errorf("%+v: %s", w, m.Name())
		}
		realtest.Must(t, m.Close())
	}
}

func TestLocalLabelsOfRISCVNameNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.s"), `	.text
	.globl f
	.type f,@function
f:	addi sp,sp,-16
1:	bnez a0, 1b
	call g
	.option arch, +v
	addi sp,sp,16
	ret
	.size f,.-f
	.globl g
g:	nop
	ret
`)
	run(t, dir, nil, realtest.Tool(t, realtest.Clang), "-target", "riscv64-linux-gnu", "-march=rv64gc", "-mrelax", "-c", "f.s", "-o", "f.o")
	ld := filepath.Join(filepath.Dir(realtest.Tool(t, realtest.LD64)), strings.Replace(filepath.Base(realtest.Tool(t, realtest.LD64)), "ld64", "ld", 1))
	run(t, dir, nil, ld, "-e", "f", "-o", "f", "f.o")
	path := filepath.Join(dir, "f")
	m := mapOf(t, path, BuildOptions{})
	named := 0
	for addr := image(t, path).Entry(); named < 16 && addr < image(t, path).Entry()+64; addr += 2 {
		frames, why := m.Lookup(addr, nil)
		if why != Found {
			continue
		}
		if named++; frames[0].Linkage != "f" && frames[0].Linkage != "g" {
			t.Errorf("%#x: %s", addr, frames[0].Linkage)
		}
	}
	if named < 8 {
		t.Errorf("%d places have a name", named)
	}
	for name, is := range map[string]bool{"$x": true, "$d": true, "$xrv64i2p1_m2p0": true, "$d.1": true, ".L0 ": true, ".Ltmp3": true, "$xyz": false, "f": false, "": false} {
		if marksOf(243)([]byte(name)) != is {
			t.Errorf("%q: %v", name, !is)
		}
	}
}
