package object

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// machSources have what the tests look for in Mach-O files: weak, private and common
// symbols, thread-local data, exception tables and Objective-C methods.
var machSources = map[string]string{
	"a.c": `
int common_data;
__attribute__((visibility("hidden"))) int hidden(int a) { return a + 3; }
static __attribute__((noinline)) int helper(int a) { return a * common_data; }
__attribute__((noinline)) int fun(int a) { return helper(a) + helper(a + 1) + hidden(a); }
__attribute__((weak)) int weakling(void) { return 3; }
extern int elsewhere(int) __attribute__((weak_import));
int start(int n) { return fun(n) + (elsewhere ? elsewhere(n) : 1); }
`,
	"b.cc": `
int may(int);
namespace ns {
template <class T> int f(T t) { try { return may((int)t); } catch (...) { return 2; } }
template int f<long>(long);
}
thread_local int tl = 4;
int use_tl() { return tl++; }
`,
	"c.m": `
__attribute__((objc_root_class)) @interface Thing
- (int)twice:(int)a;
@end
@implementation Thing
- (int)twice:(int)a { return 2 * a; }
@end
`,
}

// machTarget is what fixtures are built for.
type machTarget struct {
	arch, triple string
	linked       bool // the linker knows it
	sources      []string
	flags        []string
}

var machTargets = []machTarget{
	{"arm64", "arm64-apple-macos11", true, []string{"a.c", "b.cc", "c.m"}, nil},
	{"x86_64", "x86_64-apple-macos10.15", true, []string{"a.c", "b.cc", "c.m"}, nil},
	{"arm64e", "arm64e-apple-macos11", false, []string{"a.c"}, nil},
	{"armv7", "armv7-apple-ios8", false, []string{"a.c"}, []string{"-mthumb"}},
	{"i386", "i386-apple-macos10.7", false, []string{"a.c"}, nil},
}

// machFiles are the files built for one target.
type machFiles struct {
	dir     string
	objects []string
	dylib   string // "" where the linker does not know the target
	program string
	dsym    string // the bundle of the dylib
}

var machBuilt = struct {
	sync.Mutex
	files map[string]machFiles
}{files: make(map[string]machFiles)}

// buildMach builds the fixtures of a target, once.
func buildMach(t testing.TB, arch string) machFiles {
	t.Helper()
	realtest.Need(t, realtest.Clang, realtest.LD64, realtest.Dsymutil)
	machBuilt.Lock()
	defer machBuilt.Unlock()
	if f, ok := machBuilt.files[arch]; ok {
		return f
	}
	target := machTargets[slices.IndexFunc(machTargets, func(m machTarget) bool { return m.arch == arch })]
	f := machFiles{dir: filepath.Join(fixtures.dir, "mach-"+arch)}
	if err := os.MkdirAll(f.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(f.dir, name) }
	for _, source := range target.sources {
		write(t, in(source), []byte(machSources[source]))
		object := in(source + ".o")
		args := append([]string{"-target", target.triple, "-g", "-O1", "-fexceptions", "-funwind-tables", "-fobjc-runtime=macosx",
			"-nostdinc", "-ffreestanding", "-fno-common", "-c", in(source), "-o", object}, target.flags...)
		tool(t, realtest.Clang, args...)
		f.objects = append(f.objects, object)
	}
	if target.linked {
		link := []string{"-arch", arch, "-platform_version", "macos", "11.0", "11.0", "-undefined", "dynamic_lookup"}
		f.dylib, f.program = in("libt.dylib"), in("program")
		tool(t, realtest.LD64, slices.Concat(link, []string{"-dylib", "-install_name", "@rpath/libt.dylib", "-o", f.dylib}, f.objects)...)
		tool(t, realtest.LD64, slices.Concat(link, []string{"-e", "_start", "-headerpad", "0x400", "-o", f.program}, f.objects, []string{f.dylib})...)
		tool(t, realtest.Dsymutil, f.dylib)
		f.dsym = f.dylib + ".dSYM"
	}
	machBuilt.files[arch] = f
	return f
}

// dwarfFile is the file inside of the dSYM.
func (f *machFiles) dwarfFile() string {
	return filepath.Join(f.dsym, "Contents", "Resources", "DWARF", filepath.Base(f.dylib))
}

// tool runs a program that the test needs and returns what it writes.
func tool(t testing.TB, c realtest.Capability, args ...string) string {
	t.Helper()
	realtest.Need(t, c)
	path, err := c.Find()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "ZERO_AR_DATE=")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", path, args, err, stderr.Bytes())
	}
	return string(out)
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// buildGo compiles a program for macOS with Go's own linker, whose debug sections are
// compressed the old way.
func buildGo(t testing.TB, arch string, flags ...string) string {
	t.Helper()
	realtest.Need(t, realtest.GoTool)
	dir := filepath.Join(fixtures.dir, "go-"+arch)
	out := filepath.Join(dir, "program"+filepath.Base(filepath.Join(flags...)))
	if _, err := os.Stat(out); err == nil {
		return out
	}
	write(t, filepath.Join(dir, "go.mod"), []byte("module program\n"))
	write(t, filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { println(\"hello\") }\n"))
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", out, ".")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	return out
}

// forEachMach runs a test on thin Mach-O files of every kind.
func forEachMach(t *testing.T, test func(t *testing.T, path string, i *Image)) {
	run := func(name, path string) {
		t.Run(name, func(t *testing.T) { test(t, path, open(t, path)) })
	}
	for _, target := range machTargets {
		t.Run(target.arch, func(t *testing.T) {
			f := buildMach(t, target.arch)
			for _, path := range f.objects {
				run(filepath.Base(path), path)
			}
			if f.dylib != "" {
				run("dylib", f.dylib)
				run("program", f.program)
				run("dSYM", f.dwarfFile())
			}
		})
	}
	t.Run("big-endian", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.o")
		write(t, path, swapMach(t, read(t, buildMach(t, "i386").objects[0])))
		test(t, path, open(t, path))
	})
	t.Run("Go arm64", func(t *testing.T) {
		path := buildGo(t, "arm64")
		test(t, path, open(t, path))
	})
}

// swapMach turns the headers and symbols of a 32-bit object file into those of a
// PowerPC one, whose byte order is the other: no compiler of today makes them.
func swapMach(t testing.TB, data []byte) []byte {
	t.Helper()
	little, big := binary.LittleEndian, binary.BigEndian
	words := func(off, count int) {
		for k := range count {
			big.PutUint32(data[off+4*k:], little.Uint32(data[off+4*k:]))
		}
	}
	little.PutUint32(data[4:], cpuPPC)
	little.PutUint32(data[8:], 0)
	count, at := int(little.Uint32(data[16:])), machHeaderSize32
	words(0, 7)
	for range count {
		kind, size := little.Uint32(data[at:]), int(little.Uint32(data[at+4:]))
		switch kind {
		case lcSegment:
			sections := int(little.Uint32(data[at+48:]))
			words(at, 2)
			words(at+24, 8)
			for k := range sections {
				words(at+machSegmentSize32+k*machSectionSize32+32, 9)
			}
		case lcSymtab:
			symbols, n := int(little.Uint32(data[at+8:])), int(little.Uint32(data[at+12:]))
			for k := range n {
				e := symbols + k*nlistSize32
				words(e, 1)
				words(e+8, 1)
				big.PutUint16(data[e+6:], little.Uint16(data[e+6:]))
			}
			words(at, size/4)
		default:
			words(at, size/4)
		}
		at += size
	}
	return data
}
