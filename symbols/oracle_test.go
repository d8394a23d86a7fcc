package symbols

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// llvmAnswers asks llvm-symbolizer for every address and writes the answers as show
// does; "" where it knows no function.
func llvmAnswers(t testing.TB, path string, addrs []uint64) []string {
	t.Helper()
	var in bytes.Buffer
	for _, addr := range addrs {
		fmt.Fprintf(&in, "%#x\n", addr)
	}
	out := run(t, filepath.Dir(path), in.Bytes(), realtest.Tool(t, realtest.Symbolizer),
		"--obj="+path, "--no-demangle", "--functions=linkage", "--inlines")
	var answers []string
	for _, block := range strings.Split(strings.TrimRight(string(out), "\n"), "\n\n") {
		lines := strings.Split(block, "\n")
		var parts []string
		for k := 0; k+1 < len(lines); k += 2 {
			place := lines[k+1][:max(strings.LastIndexByte(lines[k+1], ':'), 0)] // without the column
			parts = append(parts, lines[k]+" "+place)
		}
		answers = append(answers, strings.ReplaceAll(strings.Join(parts, " < "), "??", ""))
	}
	if len(answers) != len(addrs) {
		t.Fatalf("llvm-symbolizer: %d answers to %d addresses", len(answers), len(addrs))
	}
	return answers
}

// functionAddresses lists addresses in the map's functions: all, or every few where
// there would be more than most.
func functionAddresses(m *Map, most uint64) []uint64 {
	var size uint64
	m.Functions(func(start, end uint64, _ string) bool { size += end - start; return true })
	step := size/most + 1
	var addrs []uint64
	at := uint64(0)
	m.Functions(func(start, end uint64, _ string) bool {
		for addr := start + at%step; addr < end; addr += step {
			addrs = append(addrs, addr)
		}
		at += end - start
		return true
	})
	return addrs
}

// agrees compares with llvm-symbolizer and reports the first differences.
func agrees(t *testing.T, path string, m *Map) {
	t.Helper()
	addrs := functionAddresses(m, 30000)
	if len(addrs) < 100 {
		t.Fatalf("%d addresses in functions", len(addrs))
	}
	wrong := 0
	frames := make([]Frame, 0, 64)
	for k, want := range llvmAnswers(t, path, addrs) {
		var reason Reason
		frames, reason = m.Lookup(addrs[k], frames[:0])
		if got := show(frames, reason); got != want {
			if wrong++; wrong <= 5 {
				t.Errorf("%#x:\ngot  %s\nllvm %s", addrs[k], got, want)
			}
		}
	}
	t.Logf("%d of %d addresses differ", wrong, len(addrs))
}

func TestAnswersAreThoseOfLLVM(t *testing.T) {
	for _, test := range []struct {
		name   string
		by     realtest.Capability
		source string
		flags  []string
	}{
		{"gcc C++ optimized", realtest.GXX, "shapes.cc", []string{"-O2", "-g"}},
		{"gcc C++ unoptimized", realtest.GXX, "shapes.cc", []string{"-O0", "-g"}},
		{"gcc C++ size, DWARF 4", realtest.GXX, "shapes.cc", []string{"-Os", "-gdwarf-4", "-ffunction-sections", "-Wl,--gc-sections"}},
		{"gcc C++ DWARF 2", realtest.GXX, "shapes.cc", []string{"-O2", "-gdwarf-2", "-gstrict-dwarf"}},
		{"gcc C++ link-time", realtest.GXX, "shapes.cc", []string{"-O3", "-g", "-flto"}},
		{"gcc C++ split", realtest.GXX, "shapes.cc", []string{"-O2", "-g", "-gsplit-dwarf"}},
		{"gcc C++ compressed", realtest.GXX, "shapes.cc", []string{"-O2", "-g", "-gz"}},
		{"gcc C static", realtest.GCC, "calls.c", []string{"-O2", "-g", "-static", "-no-pie"}},
		{"gcc C without DWARF", realtest.GCC, "calls.c", []string{"-O2"}},
		{"clang C++ optimized", realtest.Clang, "shapes.cc", []string{"-O2", "-g"}},
		{"clang C++ DWARF 4", realtest.Clang, "shapes.cc", []string{"-O1", "-gdwarf-4", "-ffunction-sections"}},
		{"clang C line tables only", realtest.Clang, "calls.c", []string{"-O2", "-gline-tables-only"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := compile(t, test.by, test.source, test.flags...)
			agrees(t, path, mapOf(t, path, BuildOptions{Search: true}))
		})
	}
}

func TestAnswersForGoAreThoseOfLLVM(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module program\n\ngo 1.24\n")
	write(t, filepath.Join(dir, "main.go"), `package main

import "os"

type shape interface{ area() int }

type square struct{ side int }

func (s square) area() int { return s.side * s.side }

func main() {
	sum := 0
	for k := range len(os.Args) {
		var s shape = square{k}
		sum += s.area()
	}
	defer println(sum)
}
`)
	t.Setenv("GOFLAGS", "")
	for _, flags := range []string{"-ldflags=-compressdwarf=false", "-ldflags=-compressdwarf=true"} {
		run(t, dir, nil, realtest.Tool(t, realtest.GoTool), "build", "-o", "program", flags)
		path := filepath.Join(dir, "program")
		agrees(t, path, mapOf(t, path, BuildOptions{}))
	}
}

func TestAnswersForRustAreThoseOfLLVM(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.rs"), `use std::collections::HashMap;
fn main() {
    let mut m: HashMap<String, Vec<u32>> = HashMap::new();
    for a in std::env::args() { m.entry(a.clone()).or_default().push(a.len() as u32); }
    println!("{}", m.values().map(|v| v.iter().sum::<u32>()).sum::<u32>());
}
`)
	run(t, dir, nil, realtest.Tool(t, realtest.Rustc), "-C", "opt-level=2", "-g", "-o", "program", "main.rs")
	path := filepath.Join(dir, "program")
	agrees(t, path, mapOf(t, path, BuildOptions{}))
}

// A dSYM has no code of its own; the names of the image's symbols lose the
// underscore that the compiler puts before them.
func TestAnswersForMachOAreThoseOfLLVM(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.c"), `static inline int twice(int x) { return x + x; }
static inline int thrice(int x) { return twice(x) + x; }
__attribute__((noinline)) int deep(int n) { int s = 0; for (int k = 0; k < n; k++) s ^= thrice(k); return s; }
int entry(int n) { return deep(n) + deep(twice(n)); }
`)
	for _, target := range []string{"arm64-apple-macos11", "x86_64-apple-macos10.15"} {
		arch, _, _ := strings.Cut(target, "-")
		run(t, dir, nil, realtest.Tool(t, realtest.Clang), "-target", target, "-g", "-O1", "-ffreestanding", "-nostdinc", "-c", "a.c")
		run(t, dir, nil, realtest.Tool(t, realtest.LD64), "-arch", arch, "-platform_version", "macos", "11.0", "11.0", "-dylib",
			"-undefined", "dynamic_lookup", "-install_name", "@rpath/libt.dylib", "-o", "libt.dylib", "a.o")
		run(t, dir, nil, realtest.Tool(t, realtest.Dsymutil), "libt.dylib")
		path := filepath.Join(dir, "libt.dylib")
		m := mapOf(t, path, BuildOptions{Search: true})
		if !m.HasDWARF() {
			t.Fatal("the dSYM was not found")
		}
		var got []string
		addrs := functionAddresses(m, 1000)
		for _, addr := range addrs {
			got = append(got, show(m.Lookup(addr, nil)))
		}
		for k, want := range llvmAnswers(t, path, addrs) {
			if got[k] != want {
				t.Errorf("%s %#x:\ngot  %s\nllvm %s", arch, addrs[k], got[k], want)
			}
		}
		if !strings.Contains(strings.Join(got, "\n"), " < ") {
			t.Error("no inlined calls")
		}
	}
}

// LLVM takes all sections of a relocatable file to begin at 0 and mixes them up; so
// this file has one with code.
func TestAnswersForRelocatableFilesAreThoseOfLLVM(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.c"), `static inline int twice(int x) { return x + x; }
int first(int n) { return twice(n) * n; }
int second(int n) { int s = 0; for (int k = 0; k < n; k++) s ^= twice(first(k)); return s; }
`)
	run(t, dir, nil, realtest.Tool(t, realtest.GCC), "-O2", "-g", "-c", "a.c")
	path := filepath.Join(dir, "a.o")
	m := mapOf(t, path, BuildOptions{})
	if !m.Relocatable() {
		t.Error("not relocatable")
	}
	addrs := functionAddresses(m, 1000)
	if len(addrs) == 0 {
		t.Fatal("no functions")
	}
	for k, want := range llvmAnswers(t, path, addrs) {
		if got := show(m.Lookup(addrs[k], nil)); got != want {
			t.Errorf("%#x:\ngot  %s\nllvm %s", addrs[k], got, want)
		}
	}
}

// Padding between functions and behind the last belongs to none: neither DWARF nor
// sized symbols reach into it, whatever the line table says.
func TestPaddingBetweenFunctionsBelongsToNone(t *testing.T) {
	path := compile(t, realtest.GCC, "calls.c", "-O2", "-g", "-falign-functions=64")
	m := mapOf(t, path, BuildOptions{})
	syms, err := image(t, path).FunctionSymbols()
	if err != nil {
		t.Fatal(err)
	}
	gaps := 0
	for k := 1; k < len(syms); k++ {
		a, b := syms[k-1], syms[k]
		if a.Name != "walk" && a.Name != "bare" {
			continue
		}
		for addr := a.Addr + a.Size; addr < b.Addr; addr++ {
			if frames, reason := m.Lookup(addr, nil); reason == Found && frames[0].Linkage == a.Name {
				t.Errorf("%#x behind %s: %s", addr, a.Name, show(frames, reason))
			}
			gaps++
		}
	}
	if gaps == 0 {
		t.Error("no padding to look at")
	}
}

func TestSeparateDebugFileGivesTheSameAnswers(t *testing.T) {
	path := compile(t, realtest.GCC, "calls.c", "-O2", "-g", "-Wl,--build-id")
	whole := mapOf(t, path, BuildOptions{})
	objcopy := realtest.Tool(t, realtest.Objcopy)
	run(t, filepath.Dir(path), nil, objcopy, "--only-keep-debug", path, path+".debug")
	run(t, filepath.Dir(path), nil, objcopy, "--strip-all", "--add-gnu-debuglink="+path+".debug", path)
	split := mapOf(t, path, BuildOptions{Search: true})
	debug := mapOf(t, path+".debug", BuildOptions{})
	stripped := mapOf(t, path, BuildOptions{})
	if stripped.HasDWARF() || !split.HasDWARF() || !debug.HasDWARF() {
		t.Fatal("DWARF in the wrong files")
	}
	for _, addr := range functionAddresses(whole, 10000) {
		want := show(whole.Lookup(addr, nil))
		for _, m := range []*Map{split, debug} {
			if got := show(m.Lookup(addr, nil)); got != want {
				t.Fatalf("%#x in %s:\ngot  %s\nwant %s", addr, m.ImageName(), got, want)
			}
		}
	}
}

// What dwz moved to a file of its own is found through .gnu_debugaltlink.
func TestDwzLosesNoName(t *testing.T) {
	a := compile(t, realtest.GXX, "shapes.cc", "-O2", "-g", "-Wl,--build-id")
	b := compile(t, realtest.GXX, "shapes.cc", "-Os", "-g", "-Wl,--build-id")
	want := mapOf(t, a, BuildOptions{})
	dir := filepath.Dir(a)
	if err := os.Rename(b, filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, realtest.Tool(t, realtest.Dwz), "-m", "common", "program", "other")
	if _, err := os.Stat(filepath.Join(dir, "common")); err != nil {
		t.Fatal(err)
	}
	got := mapOf(t, a, BuildOptions{Search: true})
	for _, addr := range functionAddresses(want, 10000) {
		if g, w := show(got.Lookup(addr, nil)), show(want.Lookup(addr, nil)); g != w {
			t.Fatalf("%#x:\ngot  %s\nwant %s", addr, g, w)
		}
	}
}
