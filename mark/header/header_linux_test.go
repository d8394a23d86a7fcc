package header

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// compiler is one way to build.
type compiler struct {
	name  string
	flags []string
}

func (c compiler) String() string { return c.name + " " + strings.Join(c.flags, " ") }

// folder has the header and the sources.
func folder(t *testing.T) string {
	t.Helper()
	realtest.Need(t, realtest.AMD64) // the expected code is its
	dir := t.TempDir()
	text, err := io.ReadAll(Reader())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Name), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// build compiles sources of testdata, or those with a path.
func (c compiler) build(t *testing.T, dir, out string, sources ...string) string {
	t.Helper()
	path := filepath.Join(dir, out)
	args := append(slices.Clone(c.flags), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", dir, "-o", path)
	if strings.HasPrefix(c.name, "clang") {
		args = append(args, "-fuse-ld=lld-19")
	}
	for _, s := range sources {
		if !filepath.IsAbs(s) {
			s = filepath.Join("testdata", s)
		}
		args = append(args, s)
	}
	if said, err := exec.Command(c.name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c, err, said)
	}
	return path
}

func run(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(path).Output()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(out)
}

// ways are compilers, standards and what is done to code.
func ways(t *testing.T, gcc, clang string, standards ...string) (list []compiler) {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.GXX, realtest.Clang)
	how := []string{"-O0", "-O2", "-Os", "-O2 -flto", "-O2 -fPIC", "-O3 -fno-pie -no-pie", "-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections"}
	for _, name := range []string{gcc, clang} {
		for i, h := range how {
			std := standards[i%len(standards)]
			list = append(list, compiler{name, append(strings.Fields(h), "-std="+std)})
		}
		for _, std := range standards {
			list = append(list, compiler{name, []string{"-O1", "-std=" + std}})
		}
	}
	return list
}

// place is where a value may be: a register, or a constant.
const place = `(%[a-z0-9]+|\$-?\d+)`

// expected matches what a note has.
func expected(name, arguments string) string {
	return regexp.QuoteMeta(name) + " " + strings.ReplaceAll(arguments, "@", "@"+place)
}

// inC are the notes of every.c. Their order is the code's.
var inC = []string{
	expected("thread_name", "8@"), expected("begin__frame", ""),
	expected(`begin_z6__100 % "quoted" \ {a|b}`, "-4@ 1@ -2@ 8f@ 4f@ 8@ 4@ 1@"),
	expected(`end_z16__100 % "quoted" \ {a|b}`, "8@ -4@ -8@ 8@ 8@ 8@ 8f@ -4@"),
	expected("end", ""), expected("begin_s_z3", "8@ 8@ 8@"), expected("end_s", "8@"),
	expected("async_begin__request", "8@ -4@"), expected("async_step__request", "8@"), expected("async_end__request", "8@"),
	expected("async_begin_s", "8@ 8@"), expected("async_step_s", "8@ 8@"), expected("async_end_s", "8@ 8@"),
	expected("flow_out__job", "8@"), expected("flow_in__job", "8@"), expected("flow_out_s", "8@ 8@"), expected("flow_in_s", "8@ 8@"),
	expected("counter__queue", "-8@"), expected("counterf__load", "-8@"), expected("counterf__small", "-8@"), expected("counterf__as double", "-8@"),
	expected("counter_s", "8@ -8@"), expected("counterf_s", "8@ -8@"), expected("counterf_s", "8@ -8@"),
	expected("instant_s", "8@"), expected("pause", ""), expected("resume", ""),
	expected("begin__scoped", "-4@"), expected("instant__still here", ""), expected("end", ""),
	expected("begin_s", "8@"), expected("end", ""),
}

// inCXX are those of every.cc and another.cc.
var inCXX = []string{
	expected("begin_z6__all", "-4@ 4@ 1@ 1@ 8f@ 8@ 8@ 8@"), expected("end_z8__all", "8@ 8@ 4@ -1@ 1@ 8@ 4@ 8@"),
	expected("begin__nothing", ""), expected("begin_s", "8@ -4@ 8@ 4@"),
	expected("counter__jobs", "-8@"), expected("counterf__share", "-8@"), expected("counterf__wide", "-8@"), expected("counter__id", "-8@"),
	expected("begin__twice", "-4@"), expected("begin__twice", "8f@"), expected("begin__twice", "8@"),
	expected("instant__caught", ""), expected("instant__lambda", "-4@"), expected("counterf_s", "8@ -8@"), expected("counterf__as double", "-8@"),
	expected("begin__second", "-4@"), expected("end", ""),
}

// check holds notes against what is expected: each has to be there, and nothing else.
func check(t *testing.T, path string, notes []note, want []string) {
	t.Helper()
	seen := make([]bool, len(want))
	for _, n := range notes {
		if n.provider != "callreel" {
			t.Errorf("%s: provider %q", path, n.provider)
		}
		known := false
		for i, w := range want {
			if regexp.MustCompile("^" + w + "$").MatchString(n.name + " " + n.arguments) {
				seen[i], known = true, true
			}
		}
		if !known {
			t.Errorf("%s: unexpected: %s %s", path, n.name, n.arguments)
		}
		if n.semaphore == 0 || n.semaphore != notes[0].semaphore {
			t.Errorf("%s: %s has its semaphore at %#x, others at %#x", path, n.name, n.semaphore, notes[0].semaphore)
		}
		if got := code(t, path, n.addr, 5); !bytes.Equal(got, []byte{0x0f, 0x1f, 0x44, 0, 0}) {
			t.Errorf("%s: %s stands at % x", path, n.name, got)
		}
		if n.addr%8 > 3 {
			t.Errorf("%s: %s at %#x reaches into two words", path, n.name, n.addr)
		}
	}
	for i, w := range want {
		if !seen[i] {
			t.Errorf("%s: missing: %s", path, w)
		}
	}
}

func TestNotesOfC(t *testing.T) {
	dir := folder(t)
	for i, c := range ways(t, "gcc", "clang-19", "c99", "c11", "gnu17") {
		t.Run(c.String(), func(t *testing.T) {
			path := c.build(t, dir, fmt.Sprintf("c%d", i), "every.c")
			if got := run(t, path); got != "1 -1 1.50 hello 1\n" {
				t.Errorf("the program said %q", got)
			}
			check(t, path, readNotes(t, path), inC)
		})
	}
}

func TestNotesOfCXX(t *testing.T) {
	dir := folder(t)
	for i, c := range ways(t, "g++", "clang++-19", "c++11", "c++20") {
		t.Run(c.String(), func(t *testing.T) {
			path := c.build(t, dir, fmt.Sprintf("cxx%d", i), "every.cc", "another.cc")
			if got := run(t, path); got != "hello 1 2\n" {
				t.Errorf("the program said %q", got)
			}
			check(t, path, readNotes(t, path), inCXX)
		})
	}
}

// Libraries have semaphores of their own; static ones share the program's.
func TestSharedLibrariesHaveTheirOwnSemaphore(t *testing.T) {
	dir := folder(t)
	for _, c := range ways(t, "g++", "clang++-19", "c++11")[:3] {
		lib := compiler{c.name, append(slices.Clone(c.flags), "-shared", "-fPIC")}.build(t, dir, "libanother.so", "another.cc")
		if names := namesOf(readNotes(t, lib)); !slices.Equal(names, []string{"begin__second", "end"}) && len(names) < 2 {
			t.Errorf("%v: the library has %q", c, names)
		}
		path := c.build(t, dir, "with", "every.cc", lib)
		t.Setenv("LD_LIBRARY_PATH", dir)
		if got := run(t, path); got != "hello 1 2\n" {
			t.Errorf("%v: the program said %q", c, got)
		}
	}
}

func namesOf(notes []note) (names []string) {
	for _, n := range notes {
		names = append(names, n.name)
	}
	return names
}

// Markers are moved only as far as is needed, wherever they stand.
func TestNoNopReachesIntoTwoWords(t *testing.T) {
	dir := folder(t)
	realtest.Need(t, realtest.GCC, realtest.Clang)
	var b strings.Builder
	b.WriteString("#include \"callreel.h\"\n")
	const sites = 2000
	for i := range sites {
		// Odd lengths in front of them, so that they begin everywhere.
		fmt.Fprintf(&b, "int f%d(int a, int b) { ", i)
		for range i % 9 {
			b.WriteString("__asm__ __volatile__ (\"nop\"); ")
		}
		fmt.Fprintf(&b, "CALLREEL_BEGIN(\"s%d\", a, b); a += b * %d; CALLREEL_END(); return a; }\n", i, i)
	}
	b.WriteString("int main(void) { return f0(0, 0); }\n")
	source := filepath.Join(dir, "many.c")
	if err := os.WriteFile(source, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []compiler{{"gcc", []string{"-O1"}}, {"gcc", []string{"-Os"}}, {"clang-19", []string{"-O1"}}} {
		path := c.build(t, dir, "many", source)
		notes := readNotes(t, path)
		if len(notes) < 2*sites {
			t.Errorf("%v: %d notes", c, len(notes))
		}
		begins := [8]int{}
		for _, n := range notes {
			begins[n.addr%8]++
		}
		for at, n := range begins {
			if at > 3 && n > 0 || at <= 3 && n == 0 {
				t.Errorf("%v: %v of the nops begin at the bytes of a word", c, begins)
				break
			}
		}
	}
}

// What can't be recorded isn't there at all.
func TestWithoutMarkersNothingIsEvaluated(t *testing.T) {
	dir := folder(t)
	realtest.Need(t, realtest.GCC, realtest.Clang)
	for _, c := range []compiler{{"gcc", []string{"-std=c99"}}, {"clang-19", []string{"-std=c99"}}} {
		run(t, c.build(t, dir, "off", "off.c"))
	}
}

func TestTheTitleMustBeALiteral(t *testing.T) {
	dir := folder(t)
	realtest.Need(t, realtest.GCC)
	source := filepath.Join(dir, "late.c")
	if err := os.WriteFile(source, []byte("#include \"callreel.h\"\nvoid f(const char *p) { CALLREEL_BEGIN(p); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("gcc", "-c", "-I", dir, "-o", os.DevNull, source).CombinedOutput(); err == nil {
		t.Errorf("it was taken: %s", said)
	}
}

func TestARM64IsAssembled(t *testing.T) {
	dir := folder(t)
	realtest.Need(t, realtest.Clang)
	source := filepath.Join(dir, "arm.c")
	text := "#include \"callreel.h\"\nint f(int a, double d, const char *s) { CALLREEL_SCOPE(\"x\", a, d, CALLREEL_STR(s), 5); CALLREEL_COUNTER(\"c\", d); return CALLREEL_RECORDING(); }\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "arm.so")
	if said, err := exec.Command("clang-19", "--target=aarch64-linux-gnu", "-nostdlibinc", "-ffreestanding", "-O2", "-fPIC", "-shared", "-nostdlib", "-fuse-ld=lld-19", "-Wall", "-Wextra", "-Werror", "-I", dir, "-o", out, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	want := []string{"begin_z3__x -4@x0 8f@x8 8@x1 -4@5", "counterf__c -8@x8", "end "}
	var got []string
	for _, n := range readNotes(t, out) {
		got = append(got, n.name+" "+n.arguments)
		if b := code(t, out, n.addr, 4); !bytes.Equal(b, []byte{0x1f, 0x20, 0x03, 0xd5}) {
			t.Errorf("%s stands at % x", n.name, b)
		}
	}
	shape := regexp.MustCompile(`x\d+`)
	for i := range want {
		if i >= len(got) || shape.ReplaceAllString(got[i], "x") != shape.ReplaceAllString(want[i], "x") {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// Braces are what compilers tell dialects of assembly by, if they know any: gcc knows none for arm64.
func TestTitlesMayHaveBraces(t *testing.T) {
	dir := folder(t)
	source := filepath.Join(dir, "braces.c")
	for _, c := range []struct {
		needs realtest.Capability
		compiler
		braces string
	}{
		{realtest.GCC, compiler{"gcc", nil}, "%{odd|name%}"},
		{realtest.Clang, compiler{"clang-19", nil}, "%{odd|name%}"},
		{realtest.GCCARM64, compiler{"aarch64-linux-gnu-gcc", nil}, "{odd|name}"},
		{realtest.Clang, compiler{"clang-19", []string{"--target=aarch64-linux-gnu"}}, "%{odd|name%}"},
	} {
		t.Run(c.String(), func(t *testing.T) {
			realtest.Need(t, c.needs)
			text := "#include \"callreel.h\"\nvoid f(void) { CALLREEL_INSTANT(\"100%% " + c.braces + "\"); CALLREEL_INSTANT(\"100\\45 \\173odd|name\\175\"); }\n"
			if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "braces.so")
			args := slices.Concat(c.flags, []string{"-nostdlibinc", "-ffreestanding", "-O1", "-fPIC", "-shared", "-nostdlib", "-I", dir, "-o", out, source})
			if strings.HasPrefix(c.name, "clang") {
				args = append(args, "-fuse-ld=lld-19")
			} else {
				args = slices.DeleteFunc(args, func(a string) bool { return a == "-nostdlibinc" })
			}
			if said, err := exec.Command(c.name, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if got, want := namesOf(readNotes(t, out)), "instant__100% {odd|name}"; !slices.Equal(got, []string{want, want}) {
				t.Errorf("%q, want twice %q", got, want)
			}
		})
	}
}

// The Rust of docs/markers-in-code.md makes the same notes.
func TestNotesOfRust(t *testing.T) {
	dir := folder(t)
	rustc := realtest.Tool(t, realtest.Rustc)
	for _, level := range []string{"0", "2"} {
		path := filepath.Join(dir, "rust"+level)
		if said, err := exec.Command(rustc, "--edition", "2021", "-C", "opt-level="+level, "-o", path, "testdata/markers.rs").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		if got := run(t, path); got != "false\n" {
			t.Errorf("the program said %q", got)
		}
		check(t, path, readNotes(t, path), []string{
			expected("begin__frame", "-8@"), expected("counter__queue", "-8@"), expected("counterf__load", "-8@"),
			expected("async_begin__request", "-8@"), expected("async_end__request", "-8@ -8@ -8@"), expected("end", ""),
		})
	}
}

// gdb is one of those that know such notes.
func TestGDBListsMarkers(t *testing.T) {
	dir := folder(t)
	realtest.Need(t, realtest.GCC, realtest.GDB)
	path := compiler{"gcc", []string{"-O2"}}.build(t, dir, "debugged", "every.c")
	out, err := exec.Command("gdb", "-nx", "-batch", "-ex", "info probes stap", "-ex", "break -probe-stap callreel:begin_z6__100", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"counter__queue", "thread_name", "begin__frame"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s isn't in\n%s", want, out)
		}
	}
}
