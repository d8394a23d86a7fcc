package object

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// run runs a tool and returns what it writes.
func run(t testing.TB, tool string, args ...string) string {
	t.Helper()
	path := realtest.Tool(t, realtest.Capability(tool))
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		// A tool of another version may lack the option.
		realtest.NeedThat(t, tool+" "+strings.Join(args, " "), fmt.Errorf("%w: %s", err, stderr.String()))
	}
	return string(out)
}

// program has what the tests look for: functions with cold parts, pointers to
// functions in data, an ifunc, thread-local data and imports.
// It includes nothing, so that it needs no headers of the other word size.
const program = `
extern void *stderr;
int fprintf(void *, const char *, ...);
void abort(void);
__thread int in_thread = 7;
int in_bss[1000];
const char in_rodata[] = "read only";
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
int visible(int a, int b) { return a * b + in_thread; }
int (*const table[])(int, int) = { add, sub, visible, add };
static int picked(int a) { return a + 1; }
static int (*pick(void))(int) { return picked; }
int chosen(int) __attribute__((ifunc("pick")));
int splits(int n) {
	for (int k = 0; k < n; k++) in_bss[k % 1000] += table[k % 4](k, n);
	if (__builtin_expect(n > 1000000, 0)) { fprintf(stderr, "too many: %d\n", n); abort(); }
	return in_bss[0];
}
int main(int n, char **v) { return splits(n) + chosen(n) + in_rodata[0]; }
`

// fixtures holds what compile has built, for all tests of the run.
var fixtures struct {
	dir   string
	paths map[string]string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "object")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fixtures.dir, fixtures.paths = dir, make(map[string]string)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// compile builds program with the flags, once, and returns the path of the result,
// which must not be changed.
func compile(t testing.TB, flags ...string) string {
	t.Helper()
	key := strings.Join(flags, " ")
	if path, ok := fixtures.paths[key]; ok {
		return path
	}
	in, out := filepath.Join(fixtures.dir, "in.c"), filepath.Join(fixtures.dir, fmt.Sprintf("out%d", len(fixtures.paths)))
	if err := os.WriteFile(in, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	run(t, "gcc", append(flags, "-O2", "-freorder-blocks-and-partition", "-o", out, in)...)
	fixtures.paths[key] = out
	return out
}

// builds are the ways of building program that differ in what an image holds.
var builds = []struct {
	name  string
	flags []string
}{
	{"PIE", []string{"-fPIE", "-pie"}},
	{"fixed address", []string{"-fno-pie", "-no-pie"}},
	{"library", []string{"-fPIC", "-shared", "-Wl,-soname,libtry.so.1"}},
	{"static", []string{"-static"}},
	{"static PIE", []string{"-static-pie"}},
	{"RELR", []string{"-fPIE", "-pie", "-Wl,-z,pack-relative-relocs"}},
	{"GNU hash only", []string{"-fPIC", "-shared", "-Wl,--hash-style=gnu"}},
	{"old hash only", []string{"-fPIC", "-shared", "-Wl,--hash-style=sysv"}},
	{"relocatable", []string{"-c"}},
	{"i386 PIE", i386PIE},
	{"i386 library", i386Library},
	{"i386 relocatable", []string{"-m32", "-c"}},
}

// i386 code without a 32-bit C library, which few machines have.
var (
	i386PIE     = []string{"-m32", "-fPIE", "-pie", "-nostdlib", "-Wl,--unresolved-symbols=ignore-all"}
	i386Library = []string{"-m32", "-fPIC", "-shared", "-nostdlib"}
)

// libraries are real ones, found as gcc would link them.
var libraries = []string{"libc.so.6", "libcrypto.so.3", "libstdc++.so.6", "libgcc_s.so.1"}

func library(t testing.TB, name string) string {
	t.Helper()
	path := strings.TrimSpace(run(t, "gcc", "-print-file-name="+name))
	_, err := os.Stat(path)
	realtest.NeedThat(t, name, err)
	return path
}

// forEachImage runs a test on the fixtures and the libraries.
func forEachImage(t *testing.T, test func(t *testing.T, path string, i *Image)) {
	for _, build := range builds {
		t.Run(build.name, func(t *testing.T) {
			path := compile(t, build.flags...)
			test(t, path, open(t, path))
		})
	}
	for _, name := range libraries {
		t.Run(name, func(t *testing.T) {
			path := library(t, name)
			test(t, path, open(t, path))
		})
	}
}

// forLargePrograms runs a test on programs that happen to be installed: extra
// samples, on which nothing depends.
func forLargePrograms(t *testing.T, test func(t *testing.T, path string, i *Image)) {
	for _, path := range []string{"/usr/bin/python3", "/usr/bin/node"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) { test(t, path, open(t, path)) })
	}
}

// open opens an image for the length of the test.
func open(t testing.TB, path string) *Image {
	t.Helper()
	i, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// read returns a file's bytes, to be changed.
func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// withoutSections returns the file with its section headers cut off.
func withoutSections(t testing.TB, path string) *Image {
	t.Helper()
	data := read(t, path)
	if data[4] == 2 {
		clear(data[40:48])
		clear(data[58:64])
	} else {
		clear(data[32:36])
		clear(data[46:52])
	}
	i, err := Parse(path+" (no section headers)", data)
	if err != nil {
		t.Fatal(err)
	}
	if len(i.Sections()) > 0 {
		t.Fatal("the section headers are still there")
	}
	return i
}

// symbolsNamed returns the symbols of that name.
func symbolsNamed(t testing.TB, i *Image, name string) []Symbol {
	t.Helper()
	list, err := i.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var found []Symbol
	for _, s := range list {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// all returns the bytes of the image.
func all(t testing.TB, i *Image) []byte {
	t.Helper()
	data, err := i.Bytes(0, i.Size())
	if err != nil {
		t.Fatal(err)
	}
	return data
}
