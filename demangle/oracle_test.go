package demangle

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// mangledNames returns the mangled names in the symbol tables of ELF files, each once.
func mangledNames(t *testing.T, paths ...string) []string {
	t.Helper()
	var names []string
	for _, path := range paths {
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []func() ([]elf.Symbol, error){f.DynamicSymbols, f.Symbols} {
			symbols, err := list()
			if err != nil {
				continue // many have only one table
			}
			for _, s := range symbols {
				if strings.HasPrefix(s.Name, "_Z") || strings.HasPrefix(s.Name, "_R") {
					names = append(names, s.Name)
				}
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// libraries lists the libraries that a program is linked with.
func libraries(t *testing.T, path string) []string {
	t.Helper()
	out, err := exec.Command("ldd", path).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", path, err)
	}
	var paths []string
	for _, m := range regexp.MustCompile(`=> (/\S+)`).FindAllStringSubmatch(string(out), -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// agreesWithLLVM compares names with what LLVM's demangler makes of them. It counts only
// those that it can read, and leaves out Rust's first mangling, which it takes for C++.
func agreesWithLLVM(t *testing.T, names []string, atLeast int) {
	t.Helper()
	cmd := exec.Command(realtest.Tool(t, realtest.LLVMCxxfilt))
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("llvm-cxxfilt: %v", err)
	}
	want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(want) != len(names) {
		t.Fatalf("llvm-cxxfilt answered %d of %d names", len(want), len(names))
	}
	compared, differ := 0, 0
	for k, name := range names {
		if _, legacy := rustLegacyName(name, false); legacy || want[k] == name {
			continue
		}
		compared++
		if got := spent(t, name, false); got != want[k] {
			if differ++; differ <= 10 {
				t.Logf("Name(%q)\n got %q\nwant %q", name, got, want[k])
			}
		}
	}
	if compared < atLeast {
		t.Errorf("%d names were compared, want %d at least", compared, atLeast)
	}
	if differ*1000 > compared {
		t.Errorf("%d of %d names differ", differ, compared)
	}
}

// LLVM's own names, Clang's, and those of the C++ runtime.
func TestNamesOfLLVMAsItWritesThem(t *testing.T) {
	paths := libraries(t, realtest.Tool(t, realtest.Clang))
	agreesWithLLVM(t, mangledNames(t, append(paths, libraries(t, realtest.Tool(t, realtest.LLVMCxxfilt))...)...), 40_000)
}

// The names of Rust's compiler, as LLVM writes them.
func TestNamesOfRustcAsLLVMWritesThem(t *testing.T) {
	out, err := exec.Command(realtest.Tool(t, realtest.Rustc), "--print", "sysroot").Output()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "lib", "librustc_driver-*.so"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no libraries: %v", err)
	}
	agreesWithLLVM(t, mangledNames(t, paths...), 10_000)
}

// TestNamesOfGivenFilesAsLLVMWritesThem compares the names of more ELF files, whose paths are in
// CALLREEL_NAMES with colons between them.
func TestNamesOfGivenFilesAsLLVMWritesThem(t *testing.T) {
	list := os.Getenv("CALLREEL_NAMES")
	if list == "" {
		return
	}
	agreesWithLLVM(t, mangledNames(t, filepath.SplitList(list)...), 1)
}

// Rust's library has the demangler that Rust's own tools use, and names the functions of a
// backtrace with it. A program each of whose functions has one of the names makes it name all.
func TestOldRustNamesAsRustWritesThem(t *testing.T) {
	rustc := realtest.Tool(t, realtest.Rustc)
	data, err := os.ReadFile(filepath.Join("testdata", "rust_legacy.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(data))
	var source, list strings.Builder
	source.WriteString(rustBacktrace)
	for k, name := range names {
		// The library has functions of some of these names; a hash of its own tells ours.
		name = fmt.Sprintf("%sfedcba9876543%03xE", name[:len(name)-17], k)
		names[k] = name
		fmt.Fprintf(&source, "#[export_name=%q] #[inline(never)] pub extern \"C\" fn f%d() { show(%d); std::hint::black_box(%d); }\n", name, k, k, k)
		fmt.Fprintf(&list, "f%d,", k)
	}
	fmt.Fprintf(&source, "fn main() { let all: &[extern \"C\" fn()] = &[%s]; for f in all { std::hint::black_box(f)(); } }\n", list.String())
	dir := t.TempDir()
	at := filepath.Join(dir, "names.rs")
	if err := os.WriteFile(at, []byte(source.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(rustc, "-C", "opt-level=0", "-C", "debuginfo=0", "-o", filepath.Join(dir, "names"), at).CombinedOutput(); err != nil {
		t.Fatalf("rustc: %v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(dir, "names")).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(names) || len(names) < 80 {
		t.Fatalf("%d of %d names were written", len(lines), len(names))
	}
	for _, line := range lines {
		number, want, _ := strings.Cut(line, "\t")
		k, err := strconv.Atoi(number)
		if err != nil || k >= len(names) {
			t.Fatalf("%q", line)
		}
		if got := Name(names[k]); got != want {
			t.Errorf("Name(%q)\n got %q\nwant %q", names[k], got, want)
		}
	}
}

// rustBacktrace writes a number and what the function is called that calls show with it.
const rustBacktrace = `#![allow(non_snake_case)]
use std::backtrace::Backtrace;

#[export_name = "show_caller"]
#[inline(never)]
pub extern "C" fn show(k: usize) {
    let text = format!("{}", Backtrace::force_capture());
    let mut next = false;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(at) = line.find(": ") else { continue };
        if !line[..at].bytes().all(|c| c.is_ascii_digit()) {
            continue;
        }
        if next {
            println!("{}\t{}", k, &line[at + 2..]);
            return;
        }
        next = line.contains("show_caller");
    }
    println!("{}\t?", k);
}
`
